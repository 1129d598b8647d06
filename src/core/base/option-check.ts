import { checked } from './arguments.js';
import { ConfigError } from './errors.js';

/** The share of a name that may be misspelt. */
const MAX_EDITS = 1 / 2;

/**
 * Checks what the compiler checks in TypeScript: options are an object, their names are known, and `signal`,
 * `onEvent`, `clock` and `random` are what they are everywhere.
 *
 * @param setting what the options are called
 * @throws {ConfigError} that names the option, and the nearest known name
 */
export function checkKnown(options: object, names: readonly string[], setting = 'options'): void {
  checked(options, {}, setting, ['signal', 'onEvent', 'clock', 'random']);
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const near = nearest(unknown, names);
    const hint = near === undefined ? '' : ` (the nearest is ${near})`;
    throw new ConfigError(setting, unknown, `one of ${names.join(', ')}${hint}`);
  }
}

/** The known name that a misspelt one is most likely meant to be; undefined where none is near. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  const near = names.map((known) => ({ known, edits: editDistance(known, name) }));
  const { known, edits } = near.reduce((best, each) => (each.edits < best.edits ? each : best));
  return edits <= name.length * MAX_EDITS ? known : undefined;
}

/**
 * How many characters have to be inserted, removed or replaced to get from one text to the other
 * (Levenshtein's distance).
 */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1];
    for (let at = 0; at < to.length; at += 1) {
      const [diagonal = 0, above = 0] = row.slice(at, at + 2);
      next.push(Math.min(above + 1, (next[at] ?? 0) + 1, diagonal + (to[at] === character ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
