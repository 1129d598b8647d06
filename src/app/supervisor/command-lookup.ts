import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** What a command's name leads to. */
type CommandLookup = 'executable' | 'not-executable' | 'not-found';

/**
 * Whether a command could be started, looked up as by a shell: along `PATH`, unless its name contains a
 * slash.
 */
export function lookUpCommand(file: string, path: string | undefined): CommandLookup {
  if (file === '') return 'not-found';
  if (file.includes('/')) return examine(file);
  let best: CommandLookup = 'not-found';
  for (const folder of (path ?? '').split(delimiter)) {
    const found = examine(join(folder || '.', file));
    if (found === 'executable') return found;
    if (found === 'not-executable') best = found;
  }
  return best;
}

function examine(file: string): CommandLookup {
  try {
    if (!statSync(file).isFile()) return 'not-executable';
  } catch {
    return 'not-found';
  }
  try {
    accessSync(file, constants.X_OK);
    return 'executable';
  } catch {
    return 'not-executable';
  }
}
