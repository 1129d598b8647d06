import type { Bounds, Change, State } from './shards-model.js';
import * as model from './shards-model.js';

/** SPIN's own state before its first process has started the others. */
const BEFORE_THE_FIRST = 1;
/** Of its process that judges the calm: after its wait, after its verdict, and after its end. */
const JUDGED = 3;

/**
 * How many states SPIN stores for shards.pml with these bounds: every state is looked at.
 *
 * @throws {Error} where a state breaks a promise
 */
export function countStates(bounds: Bounds): number {
  const first = model.firstState(bounds);
  const seen = new Set([keyOf(first)]);
  let judged = 0;
  for (let found = [first]; found.length > 0; ) {
    const next: State[] = [];
    for (const state of found) {
      const after = successors(bounds, state);
      if (after.length === 0) {
        judged += JUDGED;
        if (!runsInTheCalm(state)) throw new Error('calm');
      }
      for (const one of after) {
        const key = keyOf(one);
        if (seen.has(key)) continue;
        seen.add(key);
        next.push(one);
      }
    }
    found = next;
  }
  return BEFORE_THE_FIRST + seen.size + (bounds.calm ? judged : 0);
}

/** Once disturbances stop, the shard runs, or no node is there. */
function runsInTheCalm({ calm, nodes }: State): boolean {
  const runs = nodes.some(({ lease, work }) => lease === 'valid' && (work[0]?.runs ?? 0) > 0);
  return !calm || runs || nodes.every(({ lease }) => lease === 'over');
}

function successors(bounds: Bounds, state: State): State[] {
  const nodes = [...state.nodes.keys()];
  const shards = [...Array(bounds.shards).keys()];
  const epochs = [...Array(state.maps.length).keys()];
  const tenures = [...Array(bounds.nodes * bounds.tenures).keys()];
  const changes: readonly Change[] = ['copied', model.NO_OWNER, ...tenures];
  const writes = (by: number | undefined) =>
    product(
      shards.map((shard) => changes.filter((change) => model.mayChange(bounds, state, by, shard, change))),
    ).map((content) => model.write(bounds, state, by, content));
  return [
    ...nodes.flatMap((node) => [
      ...epochs.map((epoch) => model.follow(state, node, epoch + 1)),
      ...shards.map((shard) => model.start(bounds, state, node, shard)),
      ...shards.map((shard) => model.handOn(bounds, state, node, shard)),
      ...writes(node),
      model.take(bounds, state, node),
      model.end(bounds, state, node),
      model.evict(state, node),
      model.begin(bounds, state, node),
    ]),
    ...writes(undefined),
    model.calmDown(bounds, state),
  ].filter((next) => next !== undefined);
}

function product(lists: readonly (readonly Change[])[]): Change[][] {
  return lists.reduce<Change[][]>(
    (rows, list) => rows.flatMap((row) => list.map((change) => [...row, change])),
    [[]],
  );
}

/** The same for equal states alone: one character for each number. */
function keyOf({ maps, nodes, last, calm }: State): string {
  const numbers = [maps.length, ...last, Number(calm)];
  for (const map of maps) for (const { owner, token } of map) numbers.push(owner + 1, token);
  for (const { version, lease, followed, work } of nodes) {
    numbers.push(version, LEASES[lease], followed);
    for (const { runs, sent, givenUp } of work) numbers.push(runs, sent, givenUp);
  }
  return String.fromCharCode(...numbers);
}

const LEASES = { valid: 0, evicted: 1, over: 2 } as const;
