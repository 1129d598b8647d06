import { ConfigError } from '../../core/base/errors.js';

const MAX_SHOWN = 80;

/** A few words in the place of a value: an error shows them without the quotes that a text has. */
export class Kind {
  constructor(private readonly words: string) {}

  toString(): string {
    return this.words;
  }
}

/**
 * A value as an error shows it. A long text is cut; of objects, functions and similar values only the kind is
 * shown.
 */
export function shortened(value: unknown): unknown {
  if (typeof value === 'string') return value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value;
  if (value === null || ['number', 'boolean', 'undefined'].includes(typeof value)) return value;
  if (typeof value === 'object') return new Kind(Array.isArray(value) ? 'an array' : 'an object');
  return new Kind(`a ${typeof value}`);
}

/** The error of a wrong value, with the value as {@link shortened} makes it. */
export const wrongValue = (label: string, value: unknown, expected: string) =>
  new ConfigError(label, shortened(value), expected);
