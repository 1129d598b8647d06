import type { RequestCount } from '../storm/request-count.js';
import { ShapedStore } from '../storm/shaped-store.js';
import { DURATION_MS, GRACE_MS, type NodeOptions, type ShardNode, STOP_MS } from './shard-node.js';

/** The worker that each shard's lease names. KCL reads its table; here it is known without a request. */
export type ShardTable = Map<number, LeaseAShard>;

/** How often a worker looks at all leases, in durations, and renews its own: as KCL does. */
const LOOK_EVERY = 2;
const RENEW_EVERY = 1 / 3;

/**
 * A worker with one lease for each shard, as Amazon's Kinesis Client Library has them. It renews each of its
 * own, and looks at all of them now and then. It takes what has expired or was released, up to its share; or,
 * if there is nothing, one after the other from the worker that has most. KCL takes one such lease a look;
 * this one takes all that it lacks.
 */
export class LeaseAShard implements ShardNode {
  readonly #store: ShapedStore;
  readonly #held = new Map<number, { etag: string; readonly end: () => void }>();
  #writes = 0;
  #isOver = false;

  constructor(
    private readonly options: NodeOptions,
    private readonly table: ShardTable,
  ) {
    const { bucket, clock, latency } = options;
    this.#store = new ShapedStore({ bucket, clock, random: latency, remote: false });
    void this.#keepRenewing();
    void this.#keepLooking();
  }

  get requests(): RequestCount {
    return this.#store.requests;
  }

  /** Gives it a shard without a request. */
  give(shard: number): void {
    const written = this.options.bucket.create(keyOf(shard), this.#body(), {});
    if (written.status === 'written') this.#hold(shard, written.etag);
  }

  async leave(): Promise<void> {
    this.#isOver = true;
    await this.options.clock.sleep(STOP_MS);
    const held = [...this.#held];
    for (const [, { end }] of held) end();
    await Promise.all(held.map(([shard, { etag }]) => this.#release(shard, etag)));
  }

  crash(): void {
    this.#store.crash();
    this.#isOver = true;
    for (const { end } of this.#held.values()) end();
  }

  async #keepRenewing(): Promise<void> {
    const { clock, random } = this.options;
    const periodMs = DURATION_MS * RENEW_EVERY;
    await clock.sleep(random.next() * periodMs);
    while (!this.#isOver) {
      const begun = clock.monotonic();
      await Promise.all([...this.#held.keys()].map((shard) => this.#renew(shard)));
      await clock.sleep(Math.max(0, begun + periodMs - clock.monotonic()));
    }
  }

  async #keepLooking(): Promise<void> {
    const { clock, random } = this.options;
    await clock.sleep(random.next() * DURATION_MS);
    while (!this.#isOver) {
      await this.#look();
      await clock.sleep(DURATION_MS * LOOK_EVERY);
    }
  }

  async #renew(shard: number): Promise<void> {
    const lease = this.#held.get(shard);
    if (lease === undefined) return;
    const written = await this.#store.replace(keyOf(shard), this.#body(), {}, lease.etag);
    if (written.status === 'written') lease.etag = written.etag;
    else if (!this.#isOver) {
      this.#held.delete(shard);
      await this.options.clock.sleep(STOP_MS);
      lease.end();
    }
  }

  async #look(): Promise<void> {
    const { objects } = await this.#store.list();
    const free: number[] = [];
    const loads = new Map<LeaseAShard, number[]>([[this, []]]);
    const etags = new Map(objects.map(({ key, etag }) => [shardAt(key), etag]));
    for (const { key, age } of objects) {
      const shard = shardAt(key);
      const owner = this.table.get(shard);
      if (owner === undefined || age.min > DURATION_MS + GRACE_MS) free.push(shard);
      else loads.set(owner, [...(loads.get(owner) ?? []), shard]);
    }
    const share = Math.ceil(objects.length / loads.size);
    const lacks = () => share - (loads.get(this)?.length ?? 0);
    const first = Math.floor(this.options.random.next() * free.length);
    const wanted = [...free.slice(first), ...free.slice(0, first)].slice(0, Math.max(0, lacks()));
    while (free.length === 0 && lacks() > 0) {
      const most = [...loads.values()].reduce((best, load) => (load.length > best.length ? load : best));
      if (most.length < share + (lacks() > 1 ? 0 : 1)) break;
      const shard = most.splice(Math.floor(this.options.random.next() * most.length), 1)[0] as number;
      loads.get(this)?.push(shard);
      wanted.push(shard);
    }
    await Promise.all(wanted.map((shard) => this.#take(shard, etags.get(shard) ?? '')));
  }

  async #take(shard: number, etag: string): Promise<void> {
    this.options.onWrite();
    const written = await this.#store.replace(keyOf(shard), this.#body(), {}, etag);
    if (written.status === 'written' && !this.#isOver) this.#hold(shard, written.etag);
  }

  async #release(shard: number, etag: string): Promise<void> {
    this.options.onWrite();
    const written = await this.#store.replace(keyOf(shard), `released by ${this.#body()}`, {}, etag);
    if (written.status === 'written') this.table.delete(shard);
  }

  #hold(shard: number, etag: string): void {
    this.table.set(shard, this);
    this.#held.set(shard, { etag, end: this.options.runs.begin(shard) });
  }

  #body(): string {
    this.#writes += 1;
    return `${this.options.name} ${this.#writes}`;
  }
}

function keyOf(shard: number): string {
  return `shard-${String(shard).padStart(4, '0')}`;
}

function shardAt(key: string): number {
  return Number(key.slice('shard-'.length));
}
