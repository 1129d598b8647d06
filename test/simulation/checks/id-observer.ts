import { EPOCH_MS } from '../world/conditions.js';
import type { World } from '../world/world.js';
import { IdSet } from './id-set.js';

/** Ids that one task made in one step, in their order. */
export interface MadeIds {
  readonly name: string;
  readonly nodeId: number;
  readonly version: number;
  /** Whether the cluster decides how wide the node's number is, or the maker does, once and for all. */
  readonly fixed: boolean;
  /** How many bits the node's number takes, by the maker's own account. */
  readonly width: number;
  readonly ids: BigUint64Array;
  readonly count: number;
  /** The generator's options. */
  readonly lagMs: number;
  readonly advanceMs: number;
  /** False for one that may be the rest of what was begun before its process was stopped. */
  readonly fresh: boolean;
}

/**
 * What one tenure has stamped ids with, and the tenures of the same node id before and after it that have
 * made some.
 */
interface Stamped {
  readonly name: string;
  readonly version: number;
  firstMs: number;
  lastMs: number;
  high: number;
  low: number;
  earlier: Stamped | undefined;
  later: Stamped | undefined;
}

/** Cluster node ids 0 … 7 are reserved. */
const RESERVED = 8;
const LEAST_WIDTH = 8;
const MOST_WIDTH = 16;
/**
 * How far a maker may be behind its store in addition to its lag: a reply that took that long, and what else
 * there is to wait for. Milliseconds.
 */
const SLOW_MS = 6_000;
/** Where the halves of a 64-bit number stand on this machine. */
const LOW = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 0 : 1;

/**
 * Sees every unique id of one world, and looks whether one of them comes twice: in fact, and by what makes it
 * impossible, so that a mistake shows before two ids happen to meet. Takes the ids apart by itself.
 */
export class IdObserver {
  /** Ids of makers that decide for themselves are for others than the rest. */
  readonly #seen = { fixed: new IdSet(), shared: new IdSet() };
  /** The newest tenure of each node id. */
  readonly #newest = new Map<number, Stamped>();
  /** By width: the last millisecond that an id with so few bits for the node was stamped with. */
  readonly #highest = new Float64Array(MOST_WIDTH + 1).fill(Number.NEGATIVE_INFINITY);
  /** By width: the first millisecond of an id of a node whose number needs this many bits. */
  readonly #lowest = new Float64Array(MOST_WIDTH + 1).fill(Number.POSITIVE_INFINITY);

  constructor(
    private readonly world: World,
    private readonly fail: (text: string) => void,
  ) {}

  /** A task has made ids. */
  onMade(made: MadeIds): void {
    if (made.count === 0) return;
    this.world.counts.ids += made.count;
    // Times come again.
    if (this.world.clockWentBack) return;
    const { name, nodeId, ids, count, width, fixed } = made;
    const halves = new Uint32Array(ids.buffer, ids.byteOffset, 2 * count);
    const first = stampOf(halves[1 - LOW] as number, halves[LOW] as number);
    const stamped = this.#stampedBy(made, first);
    const seen = this.#seen[fixed ? 'fixed' : 'shared'];
    const mine = nodeId + RESERVED;
    const mask = 2 ** width - 1;
    for (let at = 0; at < count; at += 1) {
      const low = halves[2 * at + LOW] as number;
      const high = halves[2 * at + 1 - LOW] as number;
      if (high < stamped.high || (high === stamped.high && low <= stamped.low))
        this.fail(`${name} makes id ${ids[at]} of node id ${nodeId} after a greater one`);
      stamped.high = high;
      stamped.low = low;
      if (!seen.add(high, low))
        this.fail(`${name} makes id ${ids[at]} of node id ${nodeId}, which exists already`);
      const node = low & mask;
      if (node !== mine) this.fail(`${name} makes id ${ids[at]} for node ${node} under node id ${nodeId}`);
    }
    const last = stampOf(stamped.high, stamped.low);
    stamped.lastMs = last;
    if (this.world.recording) {
      const span = `${seconds(first)} … ${seconds(last)} s`;
      this.world.note(name, `makes ${count} ids of node id ${nodeId} (${width} bits), stamped ${span}`);
    }
    this.#checkTenures(nodeId, stamped);
    // The width goes back with the store.
    if (!fixed && this.world.restored.length === 0) this.#checkWidths(made, first, last);
    if (!this.world.clockWasSet) this.#checkTime(made, first, last);
  }

  /** Stamps of a later tenure are later. */
  #checkTenures(nodeId: number, { name, version, firstMs, lastMs, earlier, later }: Stamped): void {
    const reported = `node id ${nodeId}: ${name} stamps an id of version ${version}`;
    if (earlier !== undefined && firstMs <= earlier.lastMs)
      this.fail(
        `${reported} with ${seconds(firstMs)} s, and ${earlier.name} one of version ${earlier.version} with ${seconds(earlier.lastMs)} s`,
      );
    if (later !== undefined && lastMs >= later.firstMs)
      this.fail(
        `${reported} with ${seconds(lastMs)} s, and ${later.name} one of version ${later.version} with ${seconds(later.firstMs)} s`,
      );
  }

  /**
   * An id of a node that needs many bits could be one of another node's that has few, if both were of the
   * same millisecond.
   */
  #checkWidths({ name, nodeId, width }: MadeIds, first: number, last: number): void {
    const needed = Math.max(LEAST_WIDTH, 32 - Math.clz32(nodeId + RESERVED));
    this.#highest[width] = Math.max(this.#highest[width] as number, last);
    this.#lowest[needed] = Math.min(this.#lowest[needed] as number, first);
    for (let narrow = LEAST_WIDTH; narrow < needed; narrow += 1) {
      const stamp = this.#highest[narrow] as number;
      if (first <= stamp)
        this.fail(
          `${name} stamps an id of node id ${nodeId} with ${seconds(first)} s; one of ${narrow} bits has been stamped with ${seconds(stamp)} s`,
        );
    }
    for (let wide = width + 1; wide <= MOST_WIDTH; wide += 1) {
      const stamp = this.#lowest[wide] as number;
      if (last >= stamp)
        this.fail(
          `${name} stamps an id of node id ${nodeId} with ${seconds(last)} s in ${width} bits; one of a node that needs ${wide} has been stamped with ${seconds(stamp)} s`,
        );
    }
  }

  /** People read a time out of an id: it is the store's, whatever the maker's machine says. */
  #checkTime({ name, nodeId, lagMs, advanceMs, fresh }: MadeIds, first: number, last: number): void {
    const { world } = this;
    const now = world.storeTime;
    const offMs = Math.max(
      last - (now.max + advanceMs - lagMs),
      fresh ? now.min - lagMs - world.conditions.timeStepMs - SLOW_MS - first : 0,
    );
    if (offMs > 1)
      this.fail(
        `${name} stamps an id of node id ${nodeId} ${Math.round(offMs)} ms further from the store's time than it may`,
      );
  }

  #stampedBy({ name, nodeId, version }: MadeIds, firstMs: number): Stamped {
    let later: Stamped | undefined;
    let earlier = this.#newest.get(nodeId);
    while (earlier !== undefined && earlier.version > version) {
      later = earlier;
      earlier = earlier.earlier;
    }
    if (earlier?.version === version) return earlier;
    const stamped: Stamped = { name, version, firstMs, lastMs: firstMs, high: 0, low: 0, earlier, later };
    if (earlier !== undefined) earlier.later = stamped;
    if (later === undefined) this.#newest.set(nodeId, stamped);
    else later.earlier = stamped;
    return stamped;
  }
}

/** The millisecond in an id, since the Unix epoch. */
function stampOf(high: number, low: number): number {
  return high * 2 ** 16 + (low >>> 16);
}

function seconds(stampMs: number): string {
  return ((stampMs - EPOCH_MS) / 1_000).toFixed(3);
}
