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

/** The JSON object in a text, or in data; undefined for anything else. Never throws. */
export function objectIn(text: Buffer | string): Readonly<Partial<Record<string, unknown>>> | undefined {
  const json = parsed(text.toString());
  return isObject(json) ? json : undefined;
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
