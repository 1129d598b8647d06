// Reading of what has no known shape: errors of SDKs, and replies in JSON.

/** The value of a JSON text; undefined if it is not JSON. */
export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** An object of JSON: neither null nor an array. */
export function isObject(value: unknown): value is Readonly<Partial<Record<string, unknown>>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A text, or a `Buffer` with one, which browsers do not have. */
type Text = Pick<string, 'length' | 'toString'>;

/** The JSON object in a text, or in data; undefined for anything else. Never throws. */
export function objectIn(text: Text): Readonly<Partial<Record<string, unknown>>> | undefined {
  const json = parsed(text.toString());
  return isObject(json) && !isTooDeep(json, text) ? json : undefined;
}

/**
 * How many levels JSON from outside may have, the outermost object included: as many as Jackson reads from its
 * version 2.15 on, and Debian's earlier. To write more would exhaust the stack.
 */
export const MAX_NESTING = 1_000;

/** Level by level: a recursive walk would exhaust the stack itself. */
export function isTooDeep(value: unknown, { length }: Text): boolean {
  const isNested = (each: unknown) => typeof each === 'object' && each !== null;
  let level = length > MAX_NESTING ? [value].filter(isNested) : [];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > MAX_NESTING) return true;
    level = level.flatMap((each) => Object.values(each as object)).filter(isNested);
  }
  return false;
}

/** A field of any value. */
export function fieldOf(value: unknown, field: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[field] : undefined;
}

/** A field that is a text, and not an empty one. */
export function textOf(value: unknown, field: string): string | undefined {
  const text = fieldOf(value, field);
  return typeof text === 'string' && text !== '' ? text : undefined;
}

/** A map whose values are all texts; undefined for anything else. */
export function textsOf(value: unknown): Readonly<Record<string, string>> | undefined {
  return isObject(value) && Object.values(value).every((each) => typeof each === 'string')
    ? (value as Record<string, string>)
    : undefined;
}

/** The message of an error in one line, as the rest of a sentence: `: …`, or nothing. */
export function messageOf(error: unknown): string {
  const message = (textOf(error, 'message') ?? '').replace(/\s+/g, ' ').trim();
  return message === '' || message === 'UnknownError' ? '' : `: ${message}`;
}

/** Strings, whose digits are not numbers, and numbers. */
const TEXTS_AND_NUMBERS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/**
 * The result of `JSON.parse`, with an integer beyond ±(2^53 − 1) as the text of its digits.
 * @throws {SyntaxError} when the text is not JSON @throws {RangeError} when it has too many levels
 */
export function parseExactJson(json: string): unknown {
  const value: unknown = JSON.parse(json);
  if (isTooDeep(value, json)) throw new RangeError(`more than ${MAX_NESTING} levels of JSON`);
  if (!/\d{16}/.test(json)) return value;
  return JSON.parse(
    json.replace(TEXTS_AND_NUMBERS, (token) =>
      /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)) ? JSON.stringify(token) : token,
    ),
  );
}
