import type { Clock } from '../../../src/core/base/clock.js';
import { encodeCluster, newCluster } from '../../../src/core/lease/model/cluster-config.js';
import { leaseKey } from '../../../src/core/lease/model/lease-state.js';
import type {
  Interval,
  LeaseStore,
  ListedObject,
  Listing,
  StoredObject,
  WriteResult,
} from '../../../src/core/store/lease-store.js';
import { MemoryBucket } from '../../../src/core/store/memory/memory-bucket.js';
import { observedAge } from '../../../src/core/store/observed-age.js';
import { SHARDS_KEY } from '../../../src/node/shards/shard-map.js';
import { timeless, UNKNOWN_AGE } from '../../support/timeless-store.js';
import { Invariants } from '../checks/invariants.js';
import { type Conditions, EPOCH_MS, type WorldFault } from './conditions.js';
import { Dice } from './dice.js';
import { Machine } from './machine.js';
import { OutsideLeases } from './outside-leases.js';
import type { Restore } from './restores.js';
import { GROWN_FROM } from './scale-plan.js';
import { Scheduler } from './scheduler.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { SimulatedStore } from './simulated-store.js';

/** What one run of a seed counted. */
export interface Counts {
  tenures: number;
  /** Tenures that began with the expiry of somebody else's. */
  takeOvers: number;
  requests: number;
  /** Unique ids that were made. */
  ids: number;
  /** How often a fault of each kind happened; 1 for one that is there from the beginning on. */
  readonly faults: Map<WorldFault, number>;
}

export interface WorldOptions {
  /** The names of the faults that may happen; all of them when undefined. */
  readonly allowed?: ReadonlySet<string> | undefined;
  /** The kinds of faults that happen. @default all */
  readonly only?: ReadonlySet<string> | undefined;
  /** Whether to keep the history as text. */
  readonly recording?: boolean;
  /** See {@link Engine.observesAges}. */
  readonly observesAges?: boolean;
  /** When the store goes back; then it tells its epoch. @default never */
  readonly restores?: readonly Restore[];
}

/** One seed's world: true time, the store and what happened so far. */
export class World {
  readonly scheduler = new Scheduler();
  readonly dice: Dice;
  readonly bucket: MemoryBucket;
  readonly invariants: Invariants;
  readonly counts: Counts = { tenures: 0, takeOvers: 0, requests: 0, ids: 0, faults: new Map() };
  readonly history: string[] = [];
  /** The names of the faults that happened, in their order. */
  readonly happened: string[] = [];
  /** While above 0, no task reaches the store. */
  outages = 0;
  /** How often the store has gone back, and how: as many epochs are over. */
  readonly restored: Restore[] = [];

  /** The holder of leases that no task here can have. */
  readonly outside: OutsideLeases | undefined;

  readonly #storeClock: StoreClock;
  /** The etags of what the store had when it went back last: it does not tell the age of these. */
  #copied: ReadonlySet<string> = new Set();
  /** The etag of what is put back just now. */
  #putBack: string | undefined;
  /** The last maps of shards that were read. */
  #maps: readonly StoredObject[] = [];
  readonly #storeMachine: Machine;
  #listed: { readonly listing: Listing; readonly at: number } | undefined;

  constructor(
    readonly conditions: Conditions,
    readonly options: WorldOptions = {},
  ) {
    this.dice = new Dice(conditions.seed).fork(3);
    const { storeDrift, ids, widens } = conditions;
    this.#storeMachine = new Machine(EPOCH_MS, storeDrift, EPOCH_MS, storeDrift);
    this.#storeClock = new StoreClock(this.#storeMachine);
    const etagOf = options.observesAges || this.restores.length > 0 ? revisions() : contentEtag;
    this.bucket = new MemoryBucket(
      this.#storeClock,
      conditions.timeStepMs,
      (body) => this.#putBack ?? etagOf(body),
    );
    this.invariants = new Invariants(this);
    if (widens) this.outside = new OutsideLeases(ids, GROWN_FROM, EPOCH_MS);
    for (const kind of conditions.standing) this.counts.faults.set(kind, 1);
    if (conditions.initialised) this.#initialise();
  }

  /** The store as a process uses it. */
  opened(client: SimulatedStore, { clock }: SimulatedProcess): LeaseStore {
    if (!this.options.observesAges) return this.restores.length > 0 ? observedAge(client, clock) : client;
    // The age that the store reports goes past the engine, to the check.
    const reported = async (...request: Parameters<LeaseStore['read']>) => {
      const object = await client.read(...request);
      return object && { ...object, age: UNKNOWN_AGE, reported: object.age };
    };
    const store = observedAge({ ...timeless(client), read: reported }, clock);
    const read = async (...request: Parameters<LeaseStore['read']>) => {
      const object = (await store.read(...request)) as Awaited<ReturnType<typeof reported>>;
      if (object && !this.outside?.has(object.key))
        this.invariants.onObserved(object.key, object.age.min, object.reported.max);
      return object;
    };
    return { ...store, read };
  }

  get restores(): readonly Restore[] {
    return this.options.restores ?? [];
  }

  /** What the store reports as its epoch. */
  get epoch(): string {
    return `epoch ${this.restored.length}`;
  }

  /** Whether the store's clock was set when it went back. */
  get clockWasSet(): boolean {
    return this.restored.some(({ clockStepMs }) => clockStepMs !== 0);
  }

  /** Whether it was set back, so that times come again. */
  get clockWentBack(): boolean {
    return this.restored.some(({ clockStepMs }) => clockStepMs < 0);
  }

  /** Whether versions rise: only time tells of those that were lost twice (rule 12). */
  get keepsVersions(): boolean {
    return !this.restored.slice(1).some(({ clockStepMs }) => clockStepMs < 0);
  }

  get recording(): boolean {
    return this.options.recording === true;
  }

  /**
   * What the clocks of the store's servers say, the slowest and the fastest, in milliseconds since the Unix
   * epoch.
   */
  get storeTime(): Interval {
    const now = this.#storeMachine.wallAt(this.scheduler.now);
    const { storeOffsets } = this.conditions;
    return { min: now + Math.min(...storeOffsets), max: now + Math.max(...storeOffsets) };
  }

  /** True in the last part of the run, in which nothing goes wrong any more. */
  get quiet(): boolean {
    return this.scheduler.now >= this.conditions.quietAt;
  }

  /**
   * Whether a fault that was drawn is to happen, and keeps count of it.
   *
   * @param name the same in every run of the seed in which it is drawn
   */
  happens(kind: WorldFault, name: string): boolean {
    const { allowed, only } = this.options;
    if (allowed?.has(name) === false || only?.has(kind) === false) return false;
    this.counts.faults.set(kind, (this.counts.faults.get(kind) ?? 0) + 1);
    this.happened.push(name);
    if (this.recording) this.note('', name);
    return true;
  }

  /** One line of the history. Ask for `recording` first where the text costs anything. */
  note(who: string, what: string): void {
    const { now } = this.scheduler;
    this.history.push(`${(now / 1_000).toFixed(3).padStart(9)} s  ${who.padEnd(10)} ${what}`);
  }

  /**
   * Carries out a request at the store.
   *
   * @param server which of its servers does it
   * @param stampedAt the true time that a write is stamped with
   */
  atStore<Reply>(server: number, stampedAt: number, apply: () => Reply): Reply {
    const offset = this.conditions.storeOffsets[server] ?? 0;
    this.#storeClock.set(this.scheduler.now, stampedAt, offset);
    return apply();
  }

  /** The map of shards as it was some writes ago; the reply is of now. */
  staleMap(): StoredObject | undefined {
    const map = this.read(SHARDS_KEY);
    const { body, etag } = this.#maps[0] ?? map ?? {};
    return map && { ...map, body: body ?? map.body, etag: etag ?? map.etag };
  }

  /** An object, or undefined. */
  read(key: string): StoredObject | undefined {
    const stored = this.bucket.read(key);
    const object = this.outside?.read(key, this.storeTime) ?? (stored && this.#aged(stored));
    if (key === SHARDS_KEY && object !== undefined && object.etag !== this.#maps.at(-1)?.etag)
      this.#maps = [...this.#maps.slice(-2), object];
    return object;
  }

  /** Writes if there is none of that key. */
  create(key: string, body: string, metadata: Readonly<Record<string, string>>): WriteResult {
    return this.outside?.has(key) ? { status: 'conflict' } : this.bucket.create(key, body, metadata);
  }

  /** All objects, as they are. */
  list(): Listing {
    this.#listed = { listing: this.#list(), at: this.scheduler.now };
    return this.#listed.listing;
  }

  /** All objects, as they were at an earlier listing, with the ages that this makes them have now. */
  staleList(): Listing {
    const { objects, storeTime } = this.#list();
    if (this.#listed === undefined) return { objects, storeTime };
    const { listing, at } = this.#listed;
    const sinceMs = this.scheduler.now - at;
    const older = ({ min, max }: Interval) => ({
      min: Math.max(0, min + Math.floor(sinceMs) - 1),
      max: max + Math.ceil(sinceMs),
    });
    return { objects: listing.objects.map((row) => ({ ...row, age: older(row.age) })), storeTime };
  }

  #list(): Listing {
    const listing = this.bucket.list();
    if (this.outside === undefined && this.#copied.size === 0) return listing;
    const objects = [...listing.objects.map((row) => this.#aged(row)), ...(this.outside?.rows ?? [])];
    return { ...listing, objects: objects.sort((a, b) => (a.key < b.key ? -1 : 1)) };
  }

  #aged<Shown extends ListedObject | StoredObject>(shown: Shown): Shown {
    return this.#copied.has(shown.etag) ? { ...shown, age: UNKNOWN_AGE } : shown;
  }

  /** All objects, to go back to. */
  copy(): readonly StoredObject[] {
    return this.bucket.list().objects.flatMap(({ key }) => this.bucket.read(key) ?? []);
  }

  /** The store goes back to what it was: another epoch begins. Etags come back with their objects. */
  restore(restore: Restore, copy: readonly StoredObject[]): void {
    for (const { key } of this.bucket.list().objects) this.bucket.remove(key);
    for (const { key, body, metadata, etag } of copy) {
      this.#putBack = etag;
      this.bucket.create(key, body, metadata);
    }
    this.#putBack = undefined;
    this.#copied = new Set(copy.map(({ etag }) => etag));
    this.#listed = undefined;
    this.#maps = [];
    this.#storeMachine.stepWall(restore.clockStepMs);
    this.restored.push(restore);
    this.invariants.onRestored(copy);
  }

  /** What `nodelease init` leaves. */
  #initialise(): void {
    const { ids, durationMs, graceMs } = this.conditions;
    const epoch = this.restores.length > 0 ? { epoch: { store: this.epoch } } : {};
    const config = { ...newCluster({ nodes: ids, durationMs, graceMs }), bootstrapped: true, ...epoch };
    this.invariants.scales.onSettings(config);
    this.invariants.times.onSettings(encodeCluster(config));
    this.atStore(0, 0, () => {
      this.bucket.create('cluster.json', encodeCluster(config), {});
      for (let id = 0; id < ids; id += 1) this.bucket.create(leaseKey(id), '', {});
    });
  }
}

/**
 * Depends on the content alone, as on S3, and quicker than an MD5: two 32-bit hashes of the FNV-1a kind with
 * different seeds, and the length.
 */
function contentEtag(body: string): string {
  let one = 0x811c9dc5;
  let two = 0x9747b28c;
  for (let at = 0; at < body.length; at += 1) {
    const code = body.charCodeAt(at);
    one = Math.imul(one ^ code, 0x01000193);
    two = Math.imul(two ^ code, 0x5bd1e995);
  }
  return `${one >>> 0}-${two >>> 0}-${body.length}`;
}

/** A new one for each write, as of a store that counts its writes. */
function revisions(): () => string {
  let revision = 0;
  return () => {
    revision += 1;
    return String(revision);
  };
}

/**
 * The clock that one request meets at the store: that of the server it came to. A write may be stamped with
 * the time of its arrival.
 */
class StoreClock implements Clock {
  #now = 0;
  #stamp = 0;

  constructor(private readonly machine: Machine) {}

  set(now: number, stampedAt: number, offset: number): void {
    this.#now = this.machine.wallAt(now) + offset;
    this.#stamp = this.machine.monotonicAt(stampedAt) + offset;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#stamp;
  }

  sleep(): Promise<void> {
    throw new Error('a store does not sleep');
  }
}
