const MAX_SHOWN = 80;

/** A few words in the place of a value: an error shows them without the quotes that a text has. */
export class Kind {
  constructor(private readonly words: string) {}

  toString(): string {
    return this.words;
  }
}

/** A value as an error may show it: what is long is cut, and of what is no text, number or the like only its kind is told. */
export function shortened(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
      return value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value;
    case 'number':
    case 'boolean':
    case 'undefined':
      return value;
    case 'object':
      if (value === null) return value;
      return new Kind(Array.isArray(value) ? 'an array' : 'an object');
    default:
      return new Kind(`a ${typeof value}`);
  }
}
