import { CLUSTER_KEY } from '../../../src/core/lease/model/cluster-config.js';
import {
  type LeaseStore,
  type Listing,
  type ListingPage,
  type StoreCallOptions,
  type StoredObject,
  StoreError,
  type StoreFault,
  type WriteResult,
} from '../../../src/core/store/lease-store.js';
import { SHARDS_KEY } from '../../../src/node/shards/shard-map.js';
import { pageOf } from '../../support/in-pages.js';
import type { Sender } from '../checks/scale-observer.js';
import { NETWORK_FAULTS, type NetworkFault } from './conditions.js';
import type { Dice } from './dice.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { World } from './world.js';

/** Where a store's client runs, and how it is called in the history. */
export interface StoreClientOptions {
  readonly world: World;
  readonly process: SimulatedProcess;
  readonly dice: Dice;
  readonly name: string;
  /** True while the network between this machine and the store is cut. */
  readonly cutOff: () => boolean;
}

type Metadata = Readonly<Record<string, string>>;

/** What a client wants of the store. */
interface Request<Reply> {
  readonly operation: 'read' | 'list' | 'create' | 'replace' | 'discard' | 'epoch';
  readonly key: string;
  /** What is to be written, if anything. */
  readonly body?: string;
  /** Of the object that is to be replaced. */
  readonly etag?: string;
  /** The waiting caller has given it up. */
  readonly signal?: AbortSignal | undefined;
  readonly apply: (sender: Sender) => Reply;
  /** For a listing, and the map of shards: what there was some time ago. */
  readonly stale?: () => Reply;
}

/** A request that somebody waits for. */
interface Call<Reply> extends Request<Reply> {
  readonly sender: Sender;
  /** How often the store had gone back when it was sent. */
  readonly epoch: number;
  /** What becomes of it where the store goes back meanwhile. */
  readonly dice: Dice;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: StoreError) => void;
}

/**
 * A client of the store, behind a network that loses, delays and repeats. Speaks the store contract, as the
 * S3 driver does.
 */
export class SimulatedStore implements LeaseStore {
  readonly url = 'sim:';
  readonly remote = true;
  readonly timeStepMs: number;
  readonly pollMs: number;
  readonly listPage?: NonNullable<LeaseStore['listPage']>;
  readonly epoch?: NonNullable<LeaseStore['epoch']>;
  #requests = 0;

  constructor(private readonly options: StoreClientOptions) {
    const { pollMs, timeStepMs, pageObjects } = options.world.conditions;
    this.pollMs = pollMs;
    this.timeStepMs = timeStepMs;
    if (pageObjects !== undefined) this.listPage = (after) => this.#listPage(after, pageObjects);
    const { world } = options;
    const asked = { operation: 'epoch', key: '', apply: () => world.epoch } as const;
    if (world.restores.length > 0) this.epoch = () => this.#send(asked);
  }

  read(key: string, { signal }: StoreCallOptions = {}): Promise<StoredObject | undefined> {
    const { world } = this.options;
    // Of no interest, and there may be hundreds of them: not worth an event each.
    if (world.outside?.has(key)) return Promise.resolve(world.read(key));
    const stale = key === SHARDS_KEY ? { stale: () => world.staleMap() } : {};
    return this.#send({ operation: 'read', key, signal, apply: () => world.read(key), ...stale });
  }

  list(): Promise<Listing> {
    const { world } = this.options;
    return this.#send({
      operation: 'list',
      key: '',
      apply: () => world.list(),
      stale: () => world.staleList(),
    });
  }

  create(
    key: string,
    body: string,
    metadata: Metadata,
    { signal }: StoreCallOptions = {},
  ): Promise<WriteResult> {
    const { world } = this.options;
    const apply = (sender: Sender) =>
      world.invariants.afterWrite(key, body, metadata, world.create(key, body, metadata), sender);
    return this.#send({ operation: 'create', key, body, signal, apply });
  }

  replace(
    key: string,
    body: string,
    metadata: Metadata,
    etag: string,
    { signal }: StoreCallOptions = {},
  ): Promise<WriteResult> {
    const { bucket, invariants } = this.options.world;
    const apply = (sender: Sender) =>
      invariants.afterWrite(key, body, metadata, bucket.replace(key, body, metadata, etag), sender);
    return this.#send({ operation: 'replace', key, body, etag, signal, apply });
  }

  discardProbe(key: string): Promise<void> {
    const { bucket, invariants } = this.options.world;
    const apply = () => {
      bucket.remove(key);
      invariants.afterRemoval(key);
    };
    return this.#send({ operation: 'discard', key, apply });
  }

  #listPage(after: string | undefined, most: number): Promise<ListingPage> {
    const { world } = this.options;
    const page = (listing: Listing) => pageOf(listing, after, most);
    return this.#send({
      operation: 'list',
      key: '',
      apply: () => page(world.list()),
      stale: () => page(world.staleList()),
    });
  }

  /** Nothing is open. */
  async close(): Promise<void> {}

  #send<Reply>(request: Request<Reply>): Promise<Reply> {
    const { world, name, process } = this.options;
    const { operation, key, body, signal } = request;
    this.#requests += 1;
    world.counts.requests += 1;
    const dice = this.options.dice.fork(this.#requests);
    const sender = {
      name,
      process,
      sentAt: world.scheduler.now,
      heard: world.invariants.scales.heardBy(process),
    };
    return new Promise((resolve, reject) => {
      const hear = (reply: Reply) => {
        if (key === CLUSTER_KEY && !signal?.aborted)
          world.invariants.onSettingsHeard(process, body, reply as StoredObject | WriteResult | undefined);
        resolve(reply);
      };
      const epoch = world.restored.length;
      const made: Call<Reply> = { ...request, sender, epoch, dice: dice.fork(2), resolve: hear, reject };
      const followed =
        world.recorder?.follow(name, process, made) ??
        world.invariants.shards.recorder?.repairs.follow(process, made);
      const call = followed === undefined ? made : { ...made, ...followed };
      const number = this.#requests;
      if (world.recording) world.note(name, `#${number} ${operation} ${key}`);
      const fault = this.#drawFault(dice, call, number);
      world.invariants.onRequest(process, operation, key, fault);
      this.#carry(call, fault, dice);
      if (key === SHARDS_KEY && isWrite(call)) this.#pauseSometimes(dice.fork(1), number);
    });
  }

  /**
   * The sender is stopped until its lease is over, with the reply to its write of the map on the way: where it
   * reads that before its timers run, it still believes to be the owner (T4).
   */
  #pauseSometimes(dice: Dice, number: number): void {
    const { world, name, process } = this.options;
    const { scheduler, conditions, invariants } = world;
    if (world.quiet || !conditions.hearsFirst || !dice.chance(0.05)) return;
    if (!world.happens('pause', `${name} #${number}: pause with a write of the map on its way`)) return;
    process.stop();
    invariants.onDisturbed(process);
    const lastsMs = conditions.durationMs * dice.between(1, 2);
    scheduler.at(Math.min(scheduler.now + lastsMs, conditions.quietAt), undefined, () => process.resume());
  }

  /** At most one fault for each request. */
  #drawFault<Reply>(
    dice: Dice,
    { operation, key, stale }: Call<Reply>,
    number: number,
  ): NetworkFault | undefined {
    const { world, name } = this.options;
    if (world.quiet) return undefined;
    let chance = dice.next();
    for (const kind of NETWORK_FAULTS) {
      const rate = world.conditions.rates[kind];
      chance -= rate;
      if (rate === 0 || chance >= 0) continue;
      if (kind === 'conflict-409' && operation !== 'create' && operation !== 'replace') return undefined;
      if (kind === 'stale-list' && stale === undefined) return undefined;
      return world.happens(kind, `${name} #${number} ${operation} ${key}: ${kind}`) ? kind : undefined;
    }
    return undefined;
  }

  #carry<Reply>(call: Call<Reply>, fault: NetworkFault | undefined, dice: Dice): void {
    const { world, process, cutOff } = this.options;
    const { scheduler, conditions } = world;
    const [least, most] = conditions.latencyMs;
    const thereMs = dice.between(least, most) + this.#extraMs('there', fault, dice);
    const server = dice.below(conditions.storeOffsets.length);
    const workMs = dice.between(0, least);
    const silent = dice.chance(0.5);
    const unreachable = cutOff() || world.outages > 0;
    if (unreachable) world.invariants.onDisturbed(process);
    if (unreachable || fault === 'request-lost') {
      this.#lose(call, silent ? 'silently' : thereMs);
      return;
    }
    const sentAt = scheduler.now;
    const arrivesAt = sentAt + thereMs;
    const lastChance = fault === 'delayed' ? Math.min(arrivesAt, conditions.quietAt) : arrivesAt;
    scheduler.at(lastChance + workMs, undefined, () => {
      if (call.epoch !== world.restored.length) return this.#interrupted(call, server);
      if (fault === 'error') return this.#answer(call, thereMs, () => call.reject(serverError()));
      if (fault === 'refused') return this.#answer(call, thereMs, () => call.reject(refusal()));
      if (fault === 'conflict-409')
        return this.#answer(call, thereMs, () => call.resolve({ status: 'conflict' } as Reply));
      // A store may stamp a write with the time at which its request began to arrive.
      const stale = fault === 'stale-list' ? call.stale : undefined;
      const apply = () => (stale === undefined ? call.apply(call.sender) : stale());
      const reply = world.atStore(server, isWrite(call) ? lastChance : scheduler.now, apply);
      if (isWrite(call) && (reply as WriteResult).status === 'written')
        world.invariants.onHeld(process, call.key, sentAt);
      world.invariants.onApplied(process, call.operation, call.key, reply, fault);
      const backMs = dice.between(least, most) + this.#extraMs('back', fault, dice);
      if (fault === 'duplicate') return this.#repeat(call, reply, server, dice, backMs);
      if (fault === 'error-applied') return this.#answer(call, backMs, () => call.reject(serverError()));
      if (fault === 'response-lost' || cutOff()) {
        this.#lose(call, silent ? 'silently' : backMs);
        return;
      }
      this.#answer(call, backMs, () => call.resolve(reply));
    });
  }

  /** The store has gone back meanwhile: there is no answer, and a write may be carried out late. */
  #interrupted<Reply>(call: Call<Reply>, server: number): void {
    const { world, process } = this.options;
    const { scheduler, conditions } = world;
    const { dice } = call;
    this.#lose(call, dice.chance(0.5) ? 'silently' : 0);
    if (!isWrite(call) || dice.chance(0.3)) return;
    const at = scheduler.now + dice.magnitude(1, 2 * conditions.durationMs);
    scheduler.at(Math.min(at, conditions.quietAt), undefined, () => {
      const reply = world.atStore(server, scheduler.now, () => call.apply(call.sender));
      if ((reply as WriteResult).status === 'written')
        world.invariants.onHeld(process, call.key, call.sender.sentAt);
    });
  }

  /** The second delivery comes soon or late; the client hears of the first, or else of the second. */
  #repeat<Reply>(call: Call<Reply>, first: Reply, server: number, dice: Dice, backMs: number): void {
    const { world } = this.options;
    const { scheduler, conditions } = world;
    const hearsFirst = dice.chance(0.5);
    const againAt = Math.min(
      scheduler.now + dice.magnitude(1, 2 * conditions.durationMs),
      Math.max(scheduler.now + 1, conditions.quietAt),
    );
    if (hearsFirst) this.#answer(call, backMs, () => call.resolve(first));
    // Where the map was deleted in between, a copy of its first write would put back old content, which is not
    // promised.
    const madeMap =
      call.key === SHARDS_KEY && call.operation === 'create' && (first as WriteResult).status === 'written';
    scheduler.at(againAt, undefined, () => {
      const apply = () => (madeMap ? ({ status: 'conflict' } as Reply) : call.apply(call.sender));
      const second = world.atStore(server, scheduler.now, apply);
      if (!hearsFirst) this.#answer(call, backMs, () => call.resolve(second));
    });
  }

  /** A silent loss is noticed when the network works again, if the caller still waits then. */
  #lose<Reply>(call: Call<Reply>, noticed: number | 'silently'): void {
    const { scheduler, conditions } = this.options.world;
    const afterMs = noticed === 'silently' ? conditions.quietAt - scheduler.now : noticed;
    this.#answer(call, afterMs, () => call.reject(brokenConnection()));
  }

  /** Half of the answers are lost where the store goes back meanwhile. */
  #answer<Reply>({ dice, reject }: Call<Reply>, afterMs: number, settle: () => void): void {
    const { scheduler, restored } = this.options.world;
    const epoch = restored.length;
    scheduler.at(scheduler.now + afterMs, this.options.process, () => {
      if (epoch === restored.length || dice.chance(0.5)) settle();
      else reject(brokenConnection());
    });
  }

  #extraMs(way: 'there' | 'back', fault: NetworkFault | undefined, dice: Dice): number {
    const { durationMs } = this.options.world.conditions;
    if (fault === 'delayed') return way === 'there' ? dice.magnitude(500, 3 * durationMs) : 0;
    if (fault !== 'slow') return 0;
    // One of the two ways, or both.
    return dice.chance(0.6) ? dice.magnitude(50, 4_000) : 0;
  }
}

function isWrite({ operation }: { operation: Call<unknown>['operation'] }): boolean {
  return operation === 'create' || operation === 'replace';
}

function failure(text: string, fault: StoreFault): StoreError {
  return new StoreError(`sim: ${text}`, { fault, outcome: 'unknown' });
}

const refusal = () =>
  new StoreError('sim: the store answered 403', { fault: 'denied', outcome: 'not-applied' });
const brokenConnection = () => failure('the connection broke', 'unreachable');
const serverError = () => failure('the store answered 500', 'unavailable');
