import type { Bounds, ShardMap, State } from './repair-model.js';
import * as model from './repair-model.js';

/** What shards-repair.pml takes besides. */
export interface SearchBounds extends Bounds {
  readonly nodes: number;
  readonly series: number;
  readonly copies: boolean;
  /** The beginning is past. */
  readonly begun: boolean;
}

const FOUNDERS = 2;
/** SPIN's own state before its first process has started the others. */
const BEFORE_THE_FIRST = 1;

/**
 * How many states SPIN stores for shards-repair.pml with these bounds: every state is looked at.
 *
 * @throws {Error} where a state breaks a promise
 */
export function countStates(bounds: SearchBounds): number {
  const empty = model.firstState(bounds.nodes, FOUNDERS);
  const first = bounds.begun ? { ...empty, floor: 0, created: true, map: model.ownerless(1) } : empty;
  const seen = new Set([keyOf(first)]);
  for (let found = [first]; found.length > 0; ) {
    const next: State[] = [];
    for (const state of found)
      for (const after of successors(bounds, state)) {
        const { size } = seen;
        if (seen.add(keyOf(after)).size > size) next.push(after);
      }
    found = next;
  }
  return BEFORE_THE_FIRST + seen.size;
}

function successors(bounds: SearchBounds, state: State): State[] {
  const nodes = [...state.nodes.keys()];
  const floor = state.floor === model.NO_SERIES ? 0 : state.floor + bounds.epochs;
  const isDrawn = floor < bounds.series * bounds.epochs;
  return [
    model.lose(bounds, state),
    bounds.copies ? model.makeCopy(bounds, state) : undefined,
    bounds.copies ? model.putBack(bounds, state) : undefined,
    ...nodes.flatMap((n) => [
      model.begin(state, n),
      model.mark(state, n),
      model.unmark(bounds, state, n, true),
      model.unmark(bounds, state, n, false),
      model.readSettings(state, n),
      model.follow(bounds, state, n),
      model.seeCreated(state, n),
      model.start(state, n),
      model.stop(state, n),
      model.show(bounds, state, n),
      model.handOn(bounds, state, n),
      model.give(bounds, state, n),
      ...[model.NO_OWNER, ...nodes].map((owner) => model.write(bounds, state, n, owner)),
      model.refuse(state, n),
      model.end(state, n),
    ]),
    ...[...state.founders.keys()].flatMap((f) => [
      isDrawn ? model.draw(bounds, state, f, floor) : undefined,
      model.sendFirst(bounds, state, f),
      model.writeFounded(bounds, state, f),
      model.refuseFounded(state, f),
      model.finish(state, f),
      ...nodes.map((n) => model.readLease(bounds, state, f, n)),
      model.open(bounds, state, f),
      model.leave(state, f),
    ]),
  ].filter((next) => next !== undefined);
}

/** The same for equal states alone: one character for each number. */
function keyOf({ floor, created, map, copy, isPutBack, damages, last, nodes, founders }: State): string {
  const numbers = [floor + 1, +created, keyOfMap(map), keyOfMap(copy), +isPutBack, damages, last];
  for (const node of nodes) {
    const { lives, part, left, shows, works, givenUp, followed, base } = node;
    numbers.push(+lives, +part, +left, shows, works, +givenUp, node.floor + 1, +node.created);
    numbers.push(keyOfMap(followed), keyOfMap(base));
  }
  for (const { does, repairs, first, done, base, next } of founders)
    numbers.push(DOES.indexOf(does), +repairs, first, done, keyOfMap(base), keyOfMap(next));
  return String.fromCharCode(...numbers);
}

const DOES = ['idle', 'writes', 'waits', 'opens'];

/** Its numbers are below 128, 8, 32 and 2. */
const keyOfMap = (map: ShardMap | undefined) =>
  map ? ((map.epoch * 8 + map.owner + 1) * 32 + map.token) * 2 + +map.frozen : 0;
