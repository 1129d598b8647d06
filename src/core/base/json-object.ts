/** An object of JSON: neither null nor an array. */
export function isObject(value: unknown): value is Readonly<Partial<Record<string, unknown>>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The JSON object in a text, or in data; undefined for anything else. Never throws. */
export function objectIn(text: Buffer | string): Readonly<Partial<Record<string, unknown>>> | undefined {
  try {
    const json: unknown = JSON.parse(text.toString());
    return isObject(json) ? json : undefined;
  } catch {
    return undefined;
  }
}
