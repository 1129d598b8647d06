import { explain, NodeLeaseError } from '../../base/errors.js';
import { StoreError } from '../../store/lease-store.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { checkKnownNodes } from '../model/known-nodes.js';
import { LeaseRetiringError } from '../model/lease.js';
import { nativeCodec } from '../model/lease-codec.js';
import {
  type HeldLease,
  type KnownNodes,
  type LeaseMark,
  type LeaseState,
  lacksMark,
  leaseKey,
  type PreviousHolder,
  released,
  renewed,
  takenAfterMs,
} from '../model/lease-state.js';
import { type LeaseTiming, leaseTiming } from '../model/lease-timing.js';
import type { StoreSession } from '../session/store-session.js';
import { Overtaken } from './holder.js';
import { afterWork, LeaseHome } from './lease-home.js';
import { NodeHolder, type NodeHolderOptions } from './node-holder.js';
import { StoreTenureTime } from './store-tenure-time.js';
import type { TenureTime } from './tenure-time.js';

/** A tenure right after its acquiring write. */
export interface Tenure {
  readonly id: number;
  readonly held: HeldLease;
  readonly etag: string;
  /** The monotonic clock just before the acquiring write was sent (rule 3). */
  readonly sentAt: number;
  readonly graceMs: number;
  /**
   * The last timestamp, in store time, of unique ids of other tasks that could equal an id of this tenure.
   */
  readonly stampedUntil: number;
  readonly previous: PreviousHolder;
}

interface KeeperOptions extends NodeHolderOptions {
  readonly session: StoreSession;
  /**
   * How often the cluster's settings are read, in milliseconds, rounded to the nearest renewal.
   * @default at each renewal
   */
  readonly settingsIntervalMs?: number | undefined;
}

/** How long a request may take outside of renewals, in milliseconds. */
export const MAX_REQUEST_MS = 4_000;

/** Holds one node id by its lease object in a store. */
export class Keeper extends NodeHolder {
  readonly previous: PreviousHolder;
  readonly home: LeaseHome;
  /** The last write that is known to be applied. */
  #held: HeldLease;
  #etag: string;
  /** The monotonic clock before it was sent. */
  #sentAt: number;
  /** The number of the last write, and the send time of each write that may still be applied. */
  #renewal = 0;
  readonly #sent = new Map<number, number>();
  /** True while the outcome of an own write is unknown: the object may be newer than the known state. */
  #uncertain = false;
  #known: KnownNodes = {};
  #mark: LeaseMark = {};
  /** The first renewal with that mark. */
  #markedBy = 0;
  #marked: () => void = () => undefined;
  #workEnded = true;
  readonly #retiring = new AbortController();
  readonly #time: StoreTenureTime;
  /** The settings as they were read last. */
  #settings: Pick<ClusterConfig, 'durationMs' | 'graceMs'>;

  constructor(
    tenure: Tenure,
    private readonly options: KeeperOptions,
  ) {
    const { version, taskId } = tenure.held;
    super(tenure.id, version, taskId, options, { 'nodelease.store': options.session.store.url });
    this.previous = tenure.previous;
    this.#held = tenure.held;
    this.#etag = tenure.etag;
    this.#sentAt = tenure.sentAt;
    this.#settings = { durationMs: tenure.held.durationMs, graceMs: tenure.graceMs };
    this.#sent.set(0, tenure.sentAt);
    this.#limitRequests();
    const { session, clock, random } = options;
    this.#time = new StoreTenureTime({
      ...{ session, clock, random, signal: this.ending },
      ...{ stampedUntil: tenure.stampedUntil, idWidth: tenure.held.idWidth },
      before: () => this.#held.timestamp,
      check: () => this.check(),
    });
    this.home = new LeaseHome(
      clock,
      random,
      async () => session,
      (mark) => this.#show(mark),
    );
    this.start();
  }

  get retiring(): AbortSignal {
    return this.#retiring.signal;
  }

  get deadline(): number {
    return this.#sentAt + this.#held.durationMs;
  }

  /** Those of the work that is attached to the lease, too. */
  #limitRequests(): void {
    this.options.session.timeoutMs = Math.min(MAX_REQUEST_MS, this.timing.requestTimeoutMs);
  }

  get tenureTime(): TenureTime {
    return this.#time;
  }

  setKnownNodes(versions: Readonly<Record<number, number>>): void {
    checkKnownNodes(versions);
    this.#known = { ...versions };
  }

  override release(): Promise<void> {
    return afterWork(this.home, (workEnded) => {
      this.#workEnded = workEnded;
      return super.release();
    });
  }

  #show(mark: LeaseMark): Promise<void> {
    this.#mark = mark;
    this.#markedBy = this.#renewal + 1;
    return new Promise((resolve) => {
      this.#marked = resolve;
    });
  }

  protected override get timing(): LeaseTiming {
    return leaseTiming(this.#held.durationMs);
  }

  protected override get renewAt(): number {
    return this.#hasNews ? Number.NEGATIVE_INFINITY : this.#sentAt + this.timing.renewEveryMs;
  }

  protected override async renew(): Promise<void> {
    await super.renew();
    await this.#readSettings();
  }

  /**
   * Whether this node makes wider ids that its lease does not record yet, for which `scale` waits, or its
   * work has left a first mark that the lease does not show yet.
   */
  get #hasNews(): boolean {
    return this.#time.adopted.idWidth > this.#held.idWidth || lacksMark(this.#held, this.#mark);
  }

  /**
   * Learns whether the cluster requests wider ids, has other times, or has retired this one. A failure is left
   * to the next read: it costs no renewal.
   */
  async #readSettings(): Promise<void> {
    const { clock, settingsIntervalMs = 0 } = this.options;
    // Rounded to the nearest renewal.
    const isDue =
      clock.monotonic() - this.#time.lookedAt >= settingsIntervalMs - this.timing.renewEveryMs / 2;
    if (!this.isHeld || !isDue) return;
    try {
      const { size, ...settings } = await this.#time.look(this.call());
      this.#settings = settings;
      if (this.id < size || this.ending.aborted || this.retiring.aborted) return;
      this.#retiring.abort(new LeaseRetiringError(this.id, this.version, size));
      this.options.emit({ type: 'retiring', size });
    } catch (error) {
      if (!(error instanceof NodeLeaseError)) throw error;
    }
  }

  protected override async attempt(begun: number): Promise<void> {
    if (this.#uncertain) {
      await this.#readBack();
      // If the write whose answer was missing belongs to this renewal, the renewal is done.
      if (!this.isHeld || this.#sentAt >= begun) return;
    }
    const result = await this.#write();
    if (result === 'written' || !this.isHeld) return;
    // The cause is a write of another task, or a late own one. Only the object shows which (rule 5).
    this.#uncertain = true;
    await this.#readBack();
    if (this.isHeld && this.#sentAt < begun) throw new Overtaken('a write of our own came in between');
  }

  async #write(): Promise<'written' | 'conflict'> {
    const { clock, session } = this.options;
    this.#renewal += 1;
    const width = this.#time.adopted;
    const { durationMs, graceMs } = this.#settings;
    const sentAt = clock.monotonic();
    const next = renewed(this.#held, {
      renewal: this.#renewal,
      // Rule 14: applied or not, it moves no deadline back.
      durationMs: Math.max(durationMs, Math.ceil(this.deadline - sentAt)),
      storeNow: session.storeNow().min,
      knownNodes: this.#known,
      mark: this.#mark,
      width,
    });
    this.#sent.set(next.renewal, sentAt);
    try {
      const call = { ...this.call(), expiresAfterMs: takenAfterMs(next.durationMs, graceMs) };
      const result = await session.write(leaseKey(this.id), nativeCodec.encode(next), this.#etag, call);
      if (result.status === 'written') this.#adopt(next, result.etag);
      return result.status;
    } catch (error) {
      if (!(error instanceof StoreError && error.outcome === 'not-applied')) this.#uncertain = true;
      throw error;
    }
  }

  /**
   * Rule 5: the object names the last applied write. If that is an own write, its etag and the time at which
   * it was sent are adopted.
   */
  async #readBack(): Promise<void> {
    const { session } = this.options;
    const key = leaseKey(this.id);
    const object = await session.read(key, this.call());
    if (object === undefined) return this.loseTo('its object has been deleted');
    let state: LeaseState;
    try {
      state = nativeCodec.decode(object.body, object.metadata);
    } catch (error) {
      return this.loseTo(`its object is damaged: ${explain(error)}`);
    }
    if (state.kind === 'held' && state.nonce === this.#held.nonce && state.version === this.version) {
      this.#adopt(state, object.etag);
      this.#uncertain = false;
    } else if (state.kind === 'held') {
      this.loseTo(`task ${state.taskId} holds it at version ${state.version}`);
    } else {
      this.loseTo(
        state.kind === 'vacant'
          ? 'its object has been emptied'
          : `it has been ${state.kind} at version ${state.version} by somebody else`,
      );
    }
  }

  /** Moves the deadline. @throws what {@link check} throws */
  #adopt(held: HeldLease, etag: string): void {
    this.check();
    this.#etag = etag;
    // The store has gone back to an older write of this tenure (rule 13): the next one replaces it.
    if (held.renewal < this.#held.renewal) return;
    const sentAt = this.#sent.get(held.renewal);
    if (sentAt === undefined) {
      this.loseTo(`its object has renewal ${held.renewal}, which it never sent`);
      return;
    }
    this.#held = held;
    this.#sentAt = sentAt;
    this.#limitRequests();
    // An earlier write without a reply may have had an equal mark, and a later one without a reply none.
    if (held.renewal >= this.#markedBy) this.#marked();
    for (const renewal of this.#sent.keys()) if (renewal < held.renewal) this.#sent.delete(renewal);
  }

  protected override async giveBack(): Promise<void> {
    if (!this.#workEnded) throw new Error('work that relies on it may not have ended');
    const { session } = this.options;
    const key = leaseKey(this.id);
    let last = this.#held;
    // After the first attempt, or after a renewal of unknown outcome, the known etag may be outdated.
    if (this.#uncertain) {
      const object = await session.read(key);
      if (object === undefined) return;
      const state = nativeCodec.decode(object.body, object.metadata);
      if (state.kind !== 'held' || state.nonce !== this.#held.nonce) return;
      // A renewal without a reply has a later timestamp, and a tombstone keeps the last one.
      if (state.renewal > last.renewal) last = state;
      this.#etag = object.etag;
    }
    this.#uncertain = true;
    const result = await session.write(
      key,
      nativeCodec.encode(released(last, this.#time.stampedUntil, session.storeNow().min)),
      this.#etag,
    );
    if (result.status === 'conflict') throw new Overtaken('a renewal of our own came in between');
  }

  protected override mayPass(error: unknown): boolean {
    return error instanceof StoreError && error.transient;
  }
}
