/**
 * A copy of shards.pml: each step as a pure function of a plain state, or undefined where it is not possible. The same
 * functions serve a search with SPIN's bounds (`shards-states.ts`) and the check of a trace (`explain-shards.ts`).
 */

/** What shards.pml takes as `-D`. A trace has as many of each as it needs. */
export interface Bounds {
  readonly nodes: number;
  /** Tenures of a node. */
  readonly tenures: number;
  readonly shards: number;
  readonly epochs: number;
  /** No limit: a tenure that is over is wiped. Then `tenures` is 1. */
  readonly anyTenures?: boolean;
  /** A planner may name tenures that have not begun. */
  readonly futureOwners?: boolean;
  /** At some moment all disturbances stop. Two more epochs are for what follows. */
  readonly calm?: boolean;
}

/** Of a shard in a map. */
interface Owned {
  /** A tenure: node * tenures + version; {@link NO_OWNER} for none. */
  readonly owner: number;
  /** The epoch of the write that made it the owner; 0 for none. */
  readonly token: number;
}

interface Node {
  readonly version: number;
  /** Evicted: a tombstone that its holder has not seen. */
  readonly lease: 'valid' | 'evicted' | 'over';
  /** The epoch that it follows, 0 none. */
  readonly followed: number;
  readonly work: readonly Work[];
}

/** Of a node on a shard. */
interface Work {
  /** The token of what runs, 0 nothing. */
  readonly runs: number;
  /** T5: the epoch under which it sent a hand-on that may yet be applied. */
  readonly sent: number;
  /** T5: the token that it has given up. */
  readonly givenUp: number;
}

export interface State {
  /** By epoch less 1, and shard. */
  readonly maps: readonly (readonly Owned[])[];
  readonly nodes: readonly Node[];
  /** By shard: the last token that was ever started. */
  readonly last: readonly number[];
  readonly calm: boolean;
}

/** What a write does with a shard: it keeps what there is, or gives it to a tenure, or to none. */
export type Change = 'copied' | number;

export const NO_OWNER = -1;
const NONE: Owned = { owner: NO_OWNER, token: 0 };
const IDLE: Work = { runs: 0, sent: 0, givenUp: 0 };

export function firstState({ nodes, shards }: Bounds): State {
  const idle = Array.from({ length: shards }, () => IDLE);
  return {
    maps: [idle.map(() => NONE)],
    nodes: Array.from({ length: nodes }, () => ({ version: 0, lease: 'valid', followed: 0, work: idle })),
    last: idle.map(() => 0),
    calm: false,
  };
}

/** T2: a node reads a state of the map that is later than the one that it follows; replies may be late. */
export function follow(state: State, node: number, epoch: number): State | undefined {
  const { lease, followed } = at(state.nodes, node);
  if (lease === 'over' || epoch <= followed || epoch > state.maps.length) return undefined;
  return withNode(state, node, { followed: epoch });
}

/** T4. @throws {Error} where two work on the shard then, or its token was there before: no path leads there */
export function start(bounds: Bounds, state: State, node: number, shard: number): State | undefined {
  const { token } = followedBy(state, node, shard);
  const { lease, work } = at(state.nodes, node);
  const { runs, givenUp } = at(work, shard);
  if (lease === 'over' || !isOwner(bounds, state, node, shard) || runs > 0 || givenUp === token)
    return undefined;
  if (state.nodes.some((other) => at(other.work, shard).runs > 0)) throw new Error('exclusion');
  if (token <= at(state.last, shard)) throw new Error('tokens');
  return { ...withWork(state, node, shard, { runs: token }), last: state.last.with(shard, token) };
}

/** T5: what runs, or was stopped or never started, and may not have been handed on yet. Its work ends. */
export function handOn(bounds: Bounds, state: State, node: number, shard: number): State | undefined {
  const { lease, followed, work } = at(state.nodes, node);
  const { token } = followedBy(state, node, shard);
  const { sent, givenUp } = at(work, shard);
  const epoch = state.maps.length;
  const isAgain = givenUp === token;
  if (lease === 'over' || !isOwner(bounds, state, node, shard)) return undefined;
  if (isAgain ? sent >= followed || followed !== epoch : state.calm) return undefined;
  // By an earlier epoch it is refused.
  return withWork(state, node, shard, { runs: 0, givenUp: token, sent: followed === epoch ? epoch : 0 });
}

/**
 * Whether a write may do this with a shard. The content is chosen when it is applied, as in shards.pml.
 *
 * @param by the node that hands on (T5); undefined for any task that takes what has no owner, or one whose tenure is
 *   proven over (T6)
 */
export function mayChange(
  bounds: Bounds,
  state: State,
  by: number | undefined,
  shard: number,
  change: Change,
): boolean {
  const { owner } = at(presentMap(state), shard);
  const hasSent = by !== undefined && hasHandedOn(state, by, shard);
  if (change === 'copied') return !hasSent || (bounds.shards > 1 && !state.calm);
  const isFree = by === undefined && (owner === NO_OWNER || isOver(bounds, state, owner));
  return (hasSent || isFree) && mayOwn(bounds, state, change);
}

/** T1, T3: the next epoch. */
export function write(
  bounds: Bounds,
  state: State,
  by: number | undefined,
  content: readonly Change[],
): State | undefined {
  const before = presentMap(state);
  const epoch = state.maps.length + 1;
  if (by === undefined ? state.calm : !before.some((_, shard) => hasHandedOn(state, by, shard)))
    return undefined;
  if (epoch > bounds.epochs + (state.calm ? 2 : 0)) return undefined;
  if (!content.every((change, shard) => mayChange(bounds, state, by, shard, change))) return undefined;
  const given = (owner: number): Owned => (owner === NO_OWNER ? NONE : { owner, token: epoch });
  return isApplied(
    state,
    content.map((change, shard) => (change === 'copied' ? at(before, shard) : given(change))),
  );
}

/** T6, T9, once all is calm: a node that follows the present map takes a shard that has no owner. */
export function take(bounds: Bounds, state: State, node: number): State | undefined {
  const [first, ...others] = presentMap(state);
  const { lease, followed, version } = at(state.nodes, node);
  const epoch = state.maps.length;
  if (!state.calm || first === undefined || epoch >= bounds.epochs + 2) return undefined;
  if (first.owner !== NO_OWNER && !isOver(bounds, state, first.owner)) return undefined;
  if (lease !== 'valid' || followed !== epoch) return undefined;
  return isApplied(state, [{ owner: node * bounds.tenures + version, token: epoch + 1 }, ...others]);
}

/** T7: a crash, a lost lease, a release; an eviction that the holder has seen. */
export function end(bounds: Bounds, state: State, node: number): State | undefined {
  const { lease, work } = at(state.nodes, node);
  if (lease === 'over' || (state.calm && lease === 'valid')) return undefined;
  const ended = withNode(state, node, { lease: 'over', followed: 0, work: work.map(() => IDLE) });
  if (!bounds.anyTenures) return ended;
  // What names a tenure that is over is as good as no owner: no task starts by it.
  const wiped = (owned: Owned) => (owned.owner === node ? NONE : owned);
  return { ...ended, maps: ended.maps.map((map) => map.map(wiped)) };
}

export function evict(state: State, node: number): State | undefined {
  if (state.calm || at(state.nodes, node).lease !== 'valid') return undefined;
  return withNode(state, node, { lease: 'evicted' });
}

/** A node has a new tenure. */
export function begin(bounds: Bounds, state: State, node: number): State | undefined {
  const { lease, version } = at(state.nodes, node);
  if (state.calm || lease !== 'over') return undefined;
  if (bounds.anyTenures) return withNode(state, node, { lease: 'valid' });
  if (version + 1 >= bounds.tenures) return undefined;
  return withNode(state, node, { lease: 'valid', version: version + 1 });
}

export function calmDown(bounds: Bounds, state: State): State | undefined {
  return bounds.calm && !state.calm ? { ...state, calm: true } : undefined;
}

/** Whether a tenure is over for good (T0). */
function isOver({ tenures }: Bounds, { nodes }: State, tenure: number): boolean {
  const { version, lease } = at(nodes, Math.floor(tenure / tenures));
  return tenure % tenures < version || (tenure % tenures === version && lease === 'over');
}

/** Any tenure, however foolish the plan is, or none. */
function mayOwn({ anyTenures, futureOwners, tenures }: Bounds, { nodes }: State, owner: number): boolean {
  if (owner === NO_OWNER || futureOwners) return true;
  const { version, lease } = at(nodes, Math.floor(owner / tenures));
  return anyTenures ? lease !== 'over' : owner % tenures <= version;
}

/** T4: id and version, in the map that it follows. */
function isOwner({ tenures }: Bounds, state: State, node: number, shard: number): boolean {
  return followedBy(state, node, shard).owner === node * tenures + at(state.nodes, node).version;
}

function followedBy(state: State, node: number, shard: number): Owned {
  return state.maps[at(state.nodes, node).followed - 1]?.[shard] ?? NONE;
}

function hasHandedOn(state: State, node: number, shard: number): boolean {
  return at(at(state.nodes, node).work, shard).sent === state.maps.length;
}

function presentMap({ maps }: State): readonly Owned[] {
  return at(maps, maps.length - 1);
}

/** What was sent under an earlier epoch is refused from now on. */
function isApplied(state: State, map: readonly Owned[]): State {
  const refused = (node: Node) =>
    node.work.some(({ sent }) => sent > 0)
      ? { ...node, work: node.work.map((work) => ({ ...work, sent: 0 })) }
      : node;
  return { ...state, maps: [...state.maps, map], nodes: state.nodes.map(refused) };
}

function withNode(state: State, node: number, changed: Partial<Node>): State {
  return { ...state, nodes: state.nodes.with(node, { ...at(state.nodes, node), ...changed }) };
}

function withWork(state: State, node: number, shard: number, changed: Partial<Work>): State {
  const { work } = at(state.nodes, node);
  return withNode(state, node, { work: work.with(shard, { ...at(work, shard), ...changed }) });
}

function at<Item>(list: readonly Item[], index: number): Item {
  const item = list[index];
  if (item === undefined) throw new Error(`there is no ${index} in a list of ${list.length}`);
  return item;
}
