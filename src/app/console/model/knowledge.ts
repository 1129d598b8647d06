import type { NodeReport } from '../../../node/wire/status-report.js';

/** What holders know of the versions of other node ids, by their node id or by the other one. */
export type KnownVersions = ReadonlyMap<number, KnownVersion>;

interface KnownVersion {
  readonly known: 'current' | 'behind' | 'unknown';
  readonly version: number | undefined;
}

/**
 * Who knows whose version, seen from one node id. Only holders know anything.
 *
 * @returns `others`: what the holder of each other node id knows of this one's version; `own`: what the holder
 * of this one knows of the others that are held, empty without a holder
 */
export function knowledgeOf(node: NodeReport, all: readonly { readonly node: NodeReport }[]) {
  const others = new Map<number, KnownVersion>();
  const own = new Map<number, KnownVersion>();
  for (const { node: other } of all) {
    if (other.id === node.id || !isHeld(other)) continue;
    if (node.version > 0) others.set(other.id, known(other.knownNodes[node.id], node.version));
    if (isHeld(node)) own.set(other.id, known(node.knownNodes[other.id], other.version));
  }
  return { others, own };
}

/** How many of them are of each kind. */
export function tally(versions: KnownVersions): Readonly<Record<KnownVersion['known'], number>> {
  const counts = { current: 0, behind: 0, unknown: 0 };
  for (const { known } of versions.values()) counts[known] += 1;
  return counts;
}

/**
 * A version above the one that was seen is of a tenure that the page does not know yet: its holder is not
 * behind.
 */
function known(version: number | undefined, current: number): KnownVersion {
  if (version === undefined) return { known: 'unknown', version };
  return { known: version >= current ? 'current' : 'behind', version };
}

function isHeld({ state, taskId }: NodeReport): boolean {
  return state === 'held' && taskId !== null;
}
