import { OLD_ANNOUNCE_VARIABLE } from './endpoints.js';
import { environmentName, SETTINGS } from './settings-table.js';

const PREFIX = 'NODELEASE_';
/** The last one is of `run` for its command. */
const KNOWN = [...SETTINGS.map(({ name }) => environmentName(name)), OLD_ANNOUNCE_VARIABLE, 'NODELEASE_URL'];

/** What Kubernetes gives every pod of a service whose name begins with nodelease. */
const OF_KUBERNETES = /_(SERVICE_(HOST|PORT)|PORT(_\d+_(TCP|UDP|SCTP))?)(_|$)/;
/** The share of a name that may be misspelt. */
const MOST_EDITS = 1 / 2;

/**
 * What is wrong with the variables that have the prefix of settings and are none: most likely misspelt, so
 * that a default is used.
 */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const isUnknown = (name: string) =>
    name.startsWith(PREFIX) && !KNOWN.includes(name) && !OF_KUBERNETES.test(name);
  const unknown = Object.keys(env).filter((name) => env[name] !== undefined && isUnknown(name));
  return unknown.map((name) => `${name} is no setting, and has no effect${nearest(name)}`);
}

/** `: the nearest is …`, where one is near. */
function nearest(name: string): string {
  const near = KNOWN.map((known) => ({ known, edits: editDistance(known, name) }));
  const { known, edits } = near.reduce((best, each) => (each.edits < best.edits ? each : best));
  return edits <= (name.length - PREFIX.length) * MOST_EDITS ? `: the nearest is ${known}` : '';
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
