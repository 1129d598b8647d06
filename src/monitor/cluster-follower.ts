import { withTimeout } from '../base/abort.js';
import type { Clock, RandomSource } from '../clock.js';
import { explain } from '../errors.js';
import type { StoreSession } from '../lease/store-session.js';
import { notify } from '../zookeeper/listeners.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { AllocatedReader } from './allocated-reader.js';
import { ClusterPicture } from './cluster-picture.js';
import { ClusterReader } from './cluster-reader.js';
import type { ClusterSource } from './cluster-source.js';
import { ClusterTree } from './cluster-tree.js';
import type { ClusterSnapshot, ClusterUpdate, ClusterView } from './cluster-view.js';
import { SharedLook } from './shared-look.js';

/** What a {@link ClusterFollower} follows: a store, the discovery tree, or both. */
export interface ClusterFollowerOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /**
   * Where the node ids are leased from; undefined where ZooKeeper alone gives them out. A session of the follower's own, so that nobody else's
   * requests are counted with its: any number of sessions may share one store.
   */
  readonly session?: StoreSession | undefined;
  /** Where the nodes are announced, or get their ids from. It is closed by whoever opened it. @default the discovery tree is not followed */
  readonly zookeeper?: Pick<ZooKeeper, 'description' | 'whenConnected' | 'children' | 'read'> | undefined;
  /** What ZooKeeper is called in reports: its connect string. @default its description */
  readonly connect?: string | undefined;
}

/** From the beginning of one look to that of the next, in milliseconds, at the least. */
const LOOK_MS = 1_000;
/** So many times as long as a look took nobody looks again: in a large cluster it must not become all that this process does. */
const REST = 2;
/** The longest pause, in milliseconds: the first look at a large cluster takes long, since it reads everything, and further ones do not. */
const LONGEST_PAUSE_MS = 10_000;
/** For how long what was seen counts as fresh, in milliseconds. */
const FRESH_MS = 2_000;
/** For how long a snapshot waits for the discovery tree, in milliseconds. */
const TREE_WITHIN_MS = 1_000;

/**
 * Follows a cluster: in a store, or, without one, in ZooKeeper alone. It looks about once a second as long as somebody follows, and once for a
 * snapshot that nobody has taken before; a look costs the store a LIST and a GET for each lease that was written, a hundred at the most.
 *
 * What happens between two looks is told as far as they show it: who holds an id for less than a second may not be seen at all.
 */
export class ClusterFollower implements ClusterView {
  readonly epoch: string;
  readonly #clock: Clock;
  readonly #source: ClusterSource;
  readonly #tree: ClusterTree | undefined;
  readonly #picture: ClusterPicture;
  readonly #look: SharedLook;
  readonly #treeLook: SharedLook;
  readonly #listeners = new Set<(update: ClusterUpdate) => void>();
  readonly #closed = new AbortController();
  #following: { readonly abort: AbortController; readonly ended: Promise<unknown> } | undefined;
  /** When the last look ended, on the monotonic clock, and for how long there need be no other one. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  #pauseMs = 0;
  #failure: unknown;
  /** How many looks have failed in a row. */
  #failures = 0;

  /** @throws {TypeError} when neither a store nor ZooKeeper is given */
  constructor({ clock, random, session, zookeeper, connect = zookeeper?.description ?? '' }: ClusterFollowerOptions) {
    this.epoch = random.hex(8);
    this.#clock = clock;
    const restMs = (tookMs: number) => Math.max(LOOK_MS, REST * tookMs);
    this.#look = new SharedLook((signal) => this.#lookOnce(signal), clock, restMs);
    this.#treeLook = new SharedLook((signal) => this.#lookAtTree(signal), clock, restMs);
    this.#picture = new ClusterPicture(clock);
    this.#tree = zookeeper && new ClusterTree(zookeeper, connect, clock);
    if (session) this.#source = new ClusterReader(session, clock);
    else if (zookeeper) this.#source = new AllocatedReader(zookeeper, connect, clock);
    else throw new TypeError('expected a store or ZooKeeper to follow');
  }

  async snapshot(signal?: AbortSignal): Promise<ClusterSnapshot> {
    signal?.throwIfAborted();
    this.#closed.signal.throwIfAborted();
    const now = this.#clock.monotonic();
    const tree = this.#tree;
    await Promise.all([
      now - this.#lookedAt > Math.max(FRESH_MS, this.#pauseMs) ? this.#look.take(signal) : undefined,
      tree && now - tree.lookedAt > tree.pauseMs ? this.#treeSoon(signal) : undefined,
    ]);
    const snapshot = this.#picture.snapshot();
    if (snapshot === undefined) throw this.#failure;
    return snapshot;
  }

  follow(listener: (update: ClusterUpdate) => void): () => void {
    if (this.#closed.signal.aborted) return () => undefined;
    const own = (update: ClusterUpdate) => listener(update);
    this.#listeners.add(own);
    this.#following ??= this.#begin();
    return () => {
      if (!this.#listeners.delete(own) || this.#listeners.size > 0) return;
      this.#following?.abort.abort();
      this.#following = undefined;
    };
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#closed.abort();
    this.#following?.abort.abort();
    await this.#following?.ended;
    this.#following = undefined;
  }

  #begin() {
    const abort = new AbortController();
    const { signal } = abort;
    const tree = this.#tree;
    const ended = Promise.all([
      this.#repeat(this.#look, () => this.#lookedAt + this.#pauseMs, signal),
      tree && this.#repeat(this.#treeLook, () => tree.lookedAt + tree.pauseMs, signal),
    ]);
    return { abort, ended };
  }

  /** @param due when to look next, on the monotonic clock: also counted from looks that were taken for somebody else, or before somebody left */
  async #repeat(look: SharedLook, due: () => number, signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        const early = due() - this.#clock.monotonic();
        if (early > 0) await this.#clock.sleep(early, signal);
        else await look.take(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #lookOnce(signal: AbortSignal): Promise<void> {
    const begun = this.#clock.monotonic();
    let updates: readonly ClusterUpdate[];
    try {
      const look = await this.#source.look(signal);
      signal.throwIfAborted();
      updates = this.#picture.onLook(look, this.#source, this.#tree?.status);
      this.#failures = 0;
    } catch (error) {
      signal.throwIfAborted();
      updates = this.#picture.onFailure(explain(error));
      this.#failure = error;
      this.#failures += 1;
    }
    this.#lookedAt = this.#clock.monotonic();
    const took = this.#lookedAt - begun;
    const wanted = this.#failures > 0 ? LOOK_MS * 2 ** (this.#failures - 1) : Math.max(LOOK_MS - took, REST * took);
    this.#pauseMs = Math.min(wanted, LONGEST_PAUSE_MS);
    this.#tell(updates);
  }

  async #lookAtTree(signal: AbortSignal): Promise<void> {
    const tree = this.#tree;
    await tree?.look(() => this.#picture.held(), signal);
    if (tree) this.#tell(this.#picture.onTree(tree.report, tree.status));
  }

  /** Waits for a look at the tree, but not for long: it goes on without whoever asked. */
  async #treeSoon(signal: AbortSignal | undefined): Promise<void> {
    await withTimeout(this.#clock, TREE_WITHIN_MS, this.#treeLook.take(signal));
  }

  #tell(updates: readonly ClusterUpdate[]): void {
    for (const update of updates) for (const listener of this.#listeners) notify(listener, update);
  }
}
