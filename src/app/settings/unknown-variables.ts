import { nearest } from '../../core/base/arguments.js';
import { isServiceLink } from '../../core/settings/sources.js';
import { environmentName, SETTINGS } from './settings-table.js';

const PREFIX = 'NODELEASE_';
/** The last one is of `run` for its command. */
const KNOWN = [...SETTINGS.map(({ name }) => environmentName(name)), 'NODELEASE_URL'].map((name) =>
  name.slice(PREFIX.length),
);

/**
 * What is wrong with the variables that have the prefix of settings and are none: most likely misspelt, so
 * that a default is used.
 */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(env).flatMap(([name, text]) => {
    const rest = name.slice(PREFIX.length);
    const isOurs = name.startsWith(PREFIX) && text !== undefined && !isServiceLink(name, text);
    if (!isOurs || KNOWN.includes(rest)) return [];
    const near = nearest(rest, KNOWN);
    const hint = near === undefined ? '' : `: the nearest is ${PREFIX}${near}`;
    return [`${name} is no setting, and has no effect${hint}`];
  });
}
