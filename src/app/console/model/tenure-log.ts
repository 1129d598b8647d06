import type { ClusterHistory, Tenure } from '../../../node/wire/cluster-snapshot.js';
import type { NodeReport } from '../../../node/wire/status-report.js';
import type { SeenNode } from './cluster-model.js';

/** The known tenures of a node id, the oldest first. Another object when one changes. */
export type Lane = readonly Tenure[];

/** Ids in one request: about a megabyte is answered. */
const MAX_IDS = 1_000;
/** Tenures of an id that are kept. */
const KEPT = 100;
/** After a longer time without a report, in milliseconds, more may have happened than histories say. */
const GAP_MS = 10_000;

/**
 * Who held which node id. A lease object says it of the last eight tenures before its own; it is read again
 * whenever the lease changes.
 */
export class TenureLog {
  lanes: ReadonlyMap<number, Lane> = new Map();
  /** From when on the tenures of an id are all known, in store time; null where nothing is known. */
  readonly knownSince = new Map<number, number | null>();
  #seenAt = 0;
  /** The ids as they were shown when their histories were read. */
  #read = new WeakSet<NodeReport>();
  #isReading = false;

  /** Takes in a report that comes `at` this moment, in store time. Where `ask` fails, the next one asks again. */
  async see(
    nodes: readonly SeenNode[],
    at: number,
    ask: (ids: readonly number[]) => Promise<ClusterHistory>,
  ): Promise<void> {
    if (at - this.#seenAt > GAP_MS) {
      this.lanes = new Map();
      this.#read = new WeakSet();
    }
    this.#seenAt = at;
    const unread = nodes.filter(({ shown }) => !this.#read.has(shown)).slice(0, MAX_IDS);
    if (this.#isReading || unread.length === 0) return;
    this.#isReading = true;
    const answer = await ask(unread.map(({ node }) => node.id)).catch(() => undefined);
    this.#isReading = false;
    // A refusal has none.
    if (!answer?.nodes) return;
    for (const { shown } of unread) this.#read.add(shown);
    const lanes = new Map(this.lanes);
    for (const { id, tenures, knownSince } of answer.nodes) {
      lanes.set(id, merged(lanes.get(id), tenures, at));
      this.knownSince.set(id, knownSince);
    }
    this.lanes = lanes;
  }
}

/** @param at when begins and ends what does not say when */
function merged(lane: Lane = [], read: readonly Tenure[], at: number): Lane {
  const known = new Map<number, Tenure>(
    lane.map((each) => [each.version, { ...each, endedAt: each.endedAt ?? at }]),
  );
  for (const each of read) {
    const acquiredAt = each.acquiredAt ?? known.get(each.version)?.acquiredAt ?? at;
    known.set(each.version, { ...each, acquiredAt });
  }
  return [...known.values()].sort((a, b) => a.version - b.version).slice(-KEPT);
}
