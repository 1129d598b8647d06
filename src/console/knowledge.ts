import type { WireNode } from './wire.js';

/** What a holder knows of the version of another node id. */
export type Known = 'current' | 'behind' | 'unknown';

/** Who knows which version of one node id, and what its own holder knows of the others. */
export interface Knowledge {
  /** What the holder of each other node id knows of this one's version. */
  readonly others: ReadonlyMap<number, { readonly known: Known; readonly version: number | undefined }>;
  /** What the holder of this one knows of the others that are held; empty without a holder. */
  readonly own: ReadonlyMap<number, { readonly known: Known; readonly version: number | undefined }>;
}

/** Who knows whose version, seen from one node id. Only holders know anything. */
export function knowledgeOf(node: WireNode, all: Iterable<WireNode>): Knowledge {
  const others = new Map<number, { known: Known; version: number | undefined }>();
  const own = new Map<number, { known: Known; version: number | undefined }>();
  for (const other of all) {
    if (other.id === node.id || !isHeld(other)) continue;
    const version = other.knownNodes[node.id];
    if (node.version > 0) others.set(other.id, { known: compare(version, node.version), version });
    const ownVersion = node.knownNodes[other.id];
    if (isHeld(node)) own.set(other.id, { known: compare(ownVersion, other.version), version: ownVersion });
  }
  return { others, own };
}

/** How many of them are of each kind. */
export function tally(map: Knowledge['others']): Readonly<Record<Known, number>> {
  const counts = { current: 0, behind: 0, unknown: 0 };
  for (const { known } of map.values()) counts[known] += 1;
  return counts;
}

/** A version above the one that was seen is of a tenure that the page does not know yet: its holder is not behind. */
function compare(known: number | undefined, version: number): Known {
  if (known === undefined) return 'unknown';
  return known >= version ? 'current' : 'behind';
}

function isHeld({ state, taskId }: WireNode): boolean {
  return state === 'held' && taskId !== null;
}
