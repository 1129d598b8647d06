/**
 * A copy of shards-repair.pml, without the calm: each step as a pure function of a plain state, or undefined where it is
 * not possible. The same functions serve a search with SPIN's bounds (`repair-states.ts`) and the check of a trace.
 */

/** What shards-repair.pml takes as `-D`. A trace has as many of each as it needs. */
export interface Bounds {
  /** Of a series. */
  readonly epochs: number;
  readonly damages: number;
  /** The bug that is planted, by its name there. */
  readonly bug?: string | undefined;
}

/** A state of the map. Equal ones have the same etag. */
export interface ShardMap {
  readonly epoch: number;
  /** A node; {@link NO_OWNER} for none, or one whose tenure is over. */
  readonly owner: number;
  readonly token: number;
  readonly frozen: boolean;
}

/** cluster.json */
interface Settings {
  /** The last series that was drawn: the epoch before its first one; {@link NO_SERIES} for none. */
  readonly floor: number;
  /** Whether the first map has been seen. */
  readonly created: boolean;
}

/** Its settings are those that it has read last. */
interface Node extends Settings {
  readonly lives: boolean;
  /** Its lease shows that it takes part. */
  readonly part: boolean;
  /** It did, and starts nothing any more. */
  readonly left: boolean;
  /** The epoch of a frozen map that its lease shows, 0 none. */
  readonly shows: number;
  readonly followed: ShardMap | undefined;
  /** The token of what runs, 0 nothing. */
  readonly works: number;
  /** T5: what it owns by the map that it follows. */
  readonly givenUp: boolean;
  /** What its write under way replaces. */
  readonly base: ShardMap | undefined;
}

interface Founder {
  readonly does: 'idle' | 'writes' | 'waits' | 'opens';
  readonly repairs: boolean;
  /** The epoch of its first map. */
  readonly first: number;
  /** The leases, as bits, that it does not wait for any more. */
  readonly done: number;
  /** Its write under way: what it replaces, and by what. */
  readonly base: ShardMap | undefined;
  readonly next: ShardMap | undefined;
}

export interface State extends Settings {
  readonly map: ShardMap | undefined;
  /** A copy of the map that somebody keeps. */
  readonly copy: ShardMap | undefined;
  /** The map is that copy, or was made from it. */
  readonly isPutBack: boolean;
  readonly damages: number;
  /** The last token that was ever started. */
  readonly last: number;
  readonly nodes: readonly Node[];
  readonly founders: readonly Founder[];
}

export const NO_OWNER = -1;
export const NO_SERIES = -1;
const UNREAD: Settings = { floor: NO_SERIES, created: false };
const NOTHING = { lives: false, part: false, left: false, shows: 0, works: 0, givenUp: false };
const NEW_NODE: Node = { ...NOTHING, ...UNREAD, followed: undefined, base: undefined };
const FORGOTTEN = { does: 'idle', repairs: false, first: 0, done: 0 } as const;
const NOT_SENT = { base: undefined, next: undefined };

export function firstState(nodes: number, founders: number): State {
  return {
    ...{ ...UNREAD, map: undefined, copy: undefined, isPutBack: false, damages: 0, last: 0 },
    nodes: Array.from({ length: nodes }, () => NEW_NODE),
    founders: Array.from({ length: founders }, () => ({ ...FORGOTTEN, ...NOT_SENT })),
  };
}

export function lose(bounds: Bounds, state: State): State | undefined {
  if (state.damages >= bounds.damages || !state.map) return undefined;
  return changed(bounds, { ...state, map: undefined, isPutBack: false, damages: state.damages + 1 });
}

export function makeCopy({ damages }: Bounds, state: State): State | undefined {
  return state.damages < damages && !state.copy && state.map ? { ...state, copy: state.map } : undefined;
}

export function putBack(bounds: Bounds, state: State): State | undefined {
  const { copy, map, damages } = state;
  if (damages >= bounds.damages || !copy || isSame(copy, map)) return undefined;
  return changed(bounds, { ...state, map: copy, copy: undefined, isPutBack: true, damages: damages + 1 });
}

/** A node has a new tenure. */
export function begin(state: State, n: number): State | undefined {
  return at(state.nodes, n).lives ? undefined : withNode(state, n, { lives: true });
}

/** T10 (5): first the mark in the lease, then cluster.json, then the map. */
export function mark(state: State, n: number): State | undefined {
  const { lives, part, left } = at(state.nodes, n);
  return lives && !part && !left ? withSettings(withNode(state, n, { part: true }), n) : undefined;
}

/** It leaves, or could not take part after all. */
export function unmark({ bug }: Bounds, state: State, n: number, leaves: boolean): State | undefined {
  const { lives, part, works, followed } = at(state.nodes, n);
  if (!lives || !part || (works > 0 && bug !== 'LEAVE_EARLY') || (followed && !leaves)) return undefined;
  const shown = { part: false, shows: 0, givenUp: false };
  return withNode(state, n, { ...shown, ...(leaves ? { left: true } : UNREAD) });
}

export function readSettings(state: State, n: number): State | undefined {
  const { lives, part, floor, created } = at(state.nodes, n);
  const isNew = floor !== state.floor || created !== state.created;
  return lives && part && isNew ? withSettings(state, n) : undefined;
}

/** T2, and T10 (4). A node that knows no better is not misled by old content: that is not promised. */
export function follow({ bug }: Bounds, state: State, n: number): State | undefined {
  const { lives, part, left, floor, followed } = at(state.nodes, n);
  const { map } = state;
  if (!lives || !(part || left) || !map) return undefined;
  if (map.epoch <= floor) return undefined;
  const before = followed?.epoch ?? 0;
  if (map.epoch <= before && (bug !== 'BACK' || map.epoch === before)) return undefined;
  if (state.isPutBack && map.epoch > before && bug !== 'OLD_CONTENT') return undefined;
  const isAnother = map.owner !== n || map.token !== (followed?.token ?? 0);
  return withNode(state, n, { followed: map, ...(isAnother && { givenUp: false }) });
}

/** T10 (3): the first map of the series is there. */
export function seeCreated(state: State, n: number): State | undefined {
  const { lives, part, followed } = at(state.nodes, n);
  if (!lives || !part || state.created || !followed || followed.epoch <= state.floor) return undefined;
  return withSettings({ ...state, created: true }, n);
}

/** T4. @throws {Error} where two work on the shard then, or its token was there before: no path leads there */
export function start(state: State, n: number): State | undefined {
  const { lives, left, followed, works, givenUp } = at(state.nodes, n);
  if (!lives || left || followed?.owner !== n || works > 0 || givenUp) return undefined;
  if (state.nodes.some((other) => other.works > 0)) throw new Error('exclusion');
  if (followed.token <= state.last) throw new Error('tokens');
  return withNode({ ...state, last: followed.token }, n, { works: followed.token });
}

/** T8: it has stopped what is not its own any more. */
export function stop(state: State, n: number): State | undefined {
  const { works, followed } = at(state.nodes, n);
  const isOwn = followed?.owner === n && followed.token === works;
  return works > 0 && !isOwn ? withNode(state, n, { works: 0 }) : undefined;
}

/** T10 (6): its lease shows the epoch of a frozen map. */
export function show({ bug }: Bounds, state: State, n: number): State | undefined {
  const { lives, part, followed, shows, works } = at(state.nodes, n);
  if (!lives || !part || !followed?.frozen || shows === followed.epoch) return undefined;
  return works === 0 || bug === 'SHOW_EARLY' ? withNode(state, n, { shows: followed.epoch }) : undefined;
}

/** T5. A write is sent to the map that is followed; by an earlier one it is refused. */
export function handOn(bounds: Bounds, state: State, n: number): State | undefined {
  const { lives, left, followed, base } = at(state.nodes, n);
  if (!lives || followed?.owner !== n || isSame(base, followed)) return undefined;
  const isSent = !isNeverAgain(bounds, state, followed);
  return withNode(state, n, { works: 0, givenUp: !left, ...(isSent && { base: followed }) });
}

/** T6, T9: a shard without an owner is given to any node. */
export function give(bounds: Bounds, state: State, n: number): State | undefined {
  const { lives, part, left, created, followed, base } = at(state.nodes, n);
  if (!lives || !(part || left) || !created) return undefined;
  if (followed?.owner !== NO_OWNER || followed.frozen || isSame(base, followed)) return undefined;
  return isNeverAgain(bounds, state, followed) ? undefined : withNode(state, n, { base: followed });
}

/** The write of a node is applied, perhaps after its tenure. @param epoch the next one, or a later one if other shards changed in between */
export function write(
  bounds: Bounds,
  state: State,
  n: number,
  owner: number,
  epoch = (state.map?.epoch ?? 0) + 1,
): State | undefined {
  const { map, nodes } = state;
  if (!map || !isSame(at(nodes, n).base, map)) return undefined;
  if ((map.epoch - 1) % bounds.epochs === bounds.epochs - 1) return undefined;
  const mayBeNone = map.owner === n || nodes.some(({ lives }) => !lives);
  if (owner === NO_OWNER ? !mayBeNone : !at(nodes, owner).lives) return undefined;
  const written = { epoch, owner, token: owner === NO_OWNER ? 0 : epoch, frozen: false };
  return changed(bounds, withNode({ ...state, map: written }, n, { base: undefined }));
}

export function refuse(state: State, n: number): State | undefined {
  return at(state.nodes, n).base && withNode(state, n, { base: undefined });
}

/** T7: its work has ended. What names the tenure is as good as no owner. */
export function end(state: State, n: number): State | undefined {
  if (!at(state.nodes, n).lives) return undefined;
  const wiped = (map: ShardMap | undefined) =>
    map?.owner === n ? { ...map, owner: NO_OWNER, token: 0 } : map;
  const ended = state.nodes.with(n, { ...NEW_NODE, base: at(state.nodes, n).base });
  return {
    ...state,
    map: wiped(state.map),
    copy: wiped(state.copy),
    nodes: ended.map((node) => ({ ...node, followed: wiped(node.followed), base: wiped(node.base) })),
    founders: state.founders.map((founder) => ({ ...founder, base: wiped(founder.base) })),
  };
}

/** T10 (1). @param floor of the next series */
export function draw({ bug }: Bounds, state: State, f: number, floor: number): State | undefined {
  const { does, next } = at(state.founders, f);
  if (does !== 'idle' || next || floor <= state.floor) return undefined;
  const repairs = state.created && (bug !== 'ABSENT_BEGINS' || state.map !== undefined);
  return withFounder({ ...state, floor }, f, { does: 'writes', repairs, first: floor + 1 });
}

/** T10 (2): it replaces what is there, if that is of an earlier series; also again, after a certain refusal. */
export function sendFirst({ bug }: Bounds, state: State, f: number): State | undefined {
  const founder = at(state.founders, f);
  const { map } = state;
  if (founder.does !== 'writes' || founder.next || (map && map.epoch >= founder.first)) return undefined;
  return withFounder(state, f, { base: map, next: firstMap(founder, bug) });
}

/** The write of a founder is applied. */
export function writeFounded(bounds: Bounds, state: State, f: number): State | undefined {
  const { next, base, does } = at(state.founders, f);
  if (!next || !isSame(base, state.map)) return undefined;
  const after = does === 'writes' ? ({ does: 'waits' } as const) : does === 'opens' ? FORGOTTEN : {};
  return changed(
    bounds,
    withFounder({ ...state, map: next, isPutBack: false }, f, { ...after, ...NOT_SENT }),
  );
}

export function refuseFounded(state: State, f: number): State | undefined {
  const { next, base, does } = at(state.founders, f);
  const isPossible = next && (!isSame(base, state.map) || does === 'idle');
  return isPossible ? withFounder(state, f, refused(does)) : undefined;
}

/** T10 (3): a beginning is over. */
export function finish(state: State, f: number): State | undefined {
  const { does, repairs, first } = at(state.founders, f);
  if (does !== 'waits' || repairs) return undefined;
  return withFounder({ ...state, created: state.created || first > state.floor }, f, FORGOTTEN);
}

/** T10 (7): it reads a lease that it need not wait for any more. */
export function readLease({ bug }: Bounds, state: State, f: number, n: number): State | undefined {
  const { does, repairs, done, first } = at(state.founders, f);
  const { lives, part, shows } = at(state.nodes, n);
  if (does !== 'waits' || !repairs || done & (1 << n)) return undefined;
  const isDone = !lives || !part || shows === first || bug === 'NO_WAIT';
  return isDone ? withFounder(state, f, { done: done | (1 << n) }) : undefined;
}

/** T10 (8): all leases are done with. */
export function open(bounds: Bounds, state: State, f: number): State | undefined {
  const founder = at(state.founders, f);
  const { does, repairs, done, next, first } = founder;
  if (does !== 'waits' || !repairs || done !== (1 << state.nodes.length) - 1 || next) return undefined;
  const base = firstMap(founder, bounds.bug);
  if (isNeverAgain(bounds, state, base)) return withFounder(state, f, FORGOTTEN);
  return withFounder(state, f, { does: 'opens', base, next: ownerless(first + 1) });
}

/** It ends. What it wrote may yet be applied, or never. */
export function leave(state: State, f: number): State | undefined {
  return at(state.founders, f).does === 'idle' ? undefined : withFounder(state, f, FORGOTTEN);
}

export function ownerless(epoch: number, frozen = false): ShardMap {
  return { epoch, owner: NO_OWNER, token: 0, frozen };
}

function firstMap({ first, repairs }: Founder, bug: string | undefined): ShardMap {
  return ownerless(first, repairs && bug !== 'NO_FREEZE');
}

const refused = (does: Founder['does']) => ({ ...NOT_SENT, ...(does === 'opens' && FORGOTTEN) });

/** What replaces a state that can never be the map again is refused. */
function changed(bounds: Bounds, state: State): State {
  const isRefused = (base: ShardMap | undefined) => isNeverAgain(bounds, state, base);
  return {
    ...state,
    nodes: state.nodes.map((node) =>
      node.base && isRefused(node.base) ? { ...node, base: undefined } : node,
    ),
    founders: state.founders.map((founder) =>
      founder.next && isRefused(founder.base) ? { ...founder, ...refused(founder.does) } : founder,
    ),
  };
}

function isNeverAgain({ damages }: Bounds, state: State, map: ShardMap | undefined): boolean {
  return !isSame(map, state.map) && (map ? !isSame(map, state.copy) : state.damages >= damages);
}

function isSame(one: ShardMap | undefined, other: ShardMap | undefined): boolean {
  if (!one || !other) return one === other;
  const { epoch, owner, token, frozen } = one;
  return epoch === other.epoch && owner === other.owner && token === other.token && frozen === other.frozen;
}

function withSettings(state: State, n: number): State {
  return withNode(state, n, { floor: state.floor, created: state.created });
}

function withNode(state: State, n: number, what: Partial<Node>): State {
  return { ...state, nodes: state.nodes.with(n, { ...at(state.nodes, n), ...what }) };
}

function withFounder(state: State, f: number, what: Partial<Founder>): State {
  return { ...state, founders: state.founders.with(f, { ...at(state.founders, f), ...what }) };
}

function at<Item>(list: readonly Item[], index: number): Item {
  const item = list[index];
  if (item === undefined) throw new Error(`there is no ${index} in a list of ${list.length}`);
  return item;
}
