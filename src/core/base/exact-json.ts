/** Strings, whose digits are not numbers, and numbers. */
const TEXTS_AND_NUMBERS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/**
 * The result of `JSON.parse`, with an integer beyond ±(2^53 − 1) as the text of its digits.
 * @throws {SyntaxError} when the text is not JSON
 */
export function parseExactJson(json: string): unknown {
  const value: unknown = JSON.parse(json);
  if (!/\d{16}/.test(json)) return value;
  return JSON.parse(
    json.replace(TEXTS_AND_NUMBERS, (token) =>
      /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)) ? JSON.stringify(token) : token,
    ),
  );
}
