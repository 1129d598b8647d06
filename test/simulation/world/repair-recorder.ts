import { CLUSTER_KEY, decodeCluster } from '../../../src/core/lease/model/cluster-config.js';
import { leaseKey, nodeIdOf } from '../../../src/core/lease/model/lease-state.js';
import { readingOf } from '../../../src/core/lease/operate/inspect.js';
import type { StoredObject, WriteResult } from '../../../src/core/store/lease-store.js';
import { floorOf, SHARDS_KEY, usableMap } from '../../../src/node/shards/shard-map.js';
import type { RepairAct, Tenure } from '../../model/shards-trace.js';
import type { Followed, Handling } from './lease-recorder.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { World } from './world.js';

/** What a read has shown, if its reply arrives: the act is of when the store carried it out. */
type Shown = RepairAct & { isUnheard?: boolean };

/** Keeps what happens to the map of shards until the store goes back, for `explainRepair()`. */
export class RepairRecorder {
  readonly #acts: Shown[] = [];
  #isOver = false;
  #floor = -1;
  #isCreated = false;
  /** The series that a process has drawn last. */
  readonly #drawn = new Map<SimulatedProcess, number>();
  /** The map that a process has read last. */
  readonly #read = new Map<SimulatedProcess, Shown | undefined>();
  /** By key: the version and the mark that a lease object shows. */
  readonly #marks = new Map<string, string>();
  /** The node ids whose tenures have marked their leases, and not read cluster.json since. */
  readonly #unread = new Set<number>();

  constructor(
    private readonly world: World,
    private readonly tenureOf: (process: SimulatedProcess) => Tenure | undefined,
    /** Adds the ends of tenures that no event has told of. */
    private readonly onTime: () => void,
  ) {}

  get acts(): readonly RepairAct[] {
    return this.#acts.filter(({ isUnheard }) => !isUnheard);
  }

  /** The store goes back: the model does not have that. */
  end(): void {
    this.#isOver = true;
  }

  add(act: RepairAct): void {
    if (!this.#isOver) this.#acts.push(act);
  }

  /** A tenure follows the map that it has read, or written; or else one that is outdated by now. */
  onFollowed(process: SimulatedProcess, act: Extract<RepairAct, { kind: 'follows' }>): void {
    const read = this.#read.get(process);
    if (read?.kind === 'follows' && read.epoch === act.epoch) {
      read.isUnheard = false;
      return;
    }
    const acts = this.#acts;
    const writtenAt = acts.findLastIndex((one) => one.kind === 'writes' && one.epoch === act.epoch);
    const after = acts.findIndex(({ kind }, at) => at > writtenAt && (kind === 'writes' || kind === 'loses'));
    if (!this.#isOver) acts.splice(after < 0 ? acts.length : after, 0, { ...act, isOutdated: after >= 0 });
  }

  /** The same handling of a request, which leaves its acts. */
  follow<Reply, Sender>(
    process: SimulatedProcess,
    { key, body, apply, resolve }: Followed<Reply, Sender>,
  ): Partial<Handling<Reply, Sender>> {
    let shown: Shown | undefined;
    return {
      apply: (sender: Sender) => {
        const reply = apply(sender);
        this.onTime();
        const at = this.world.scheduler.now;
        if (body === undefined) shown = this.#onRead(process, key, at, reply as StoredObject | undefined);
        else if ((reply as WriteResult).status === 'written') this.#onWritten(process, key, at, body);
        return reply;
      },
      resolve: (reply: Reply) => {
        if (key === SHARDS_KEY) this.#read.set(process, shown);
        else if (shown) shown.isUnheard = false;
        resolve(reply);
      },
    };
  }

  #onRead(
    process: SimulatedProcess,
    key: string,
    at: number,
    object: StoredObject | undefined,
  ): Shown | undefined {
    const tenure = this.tenureOf(process);
    const floor = this.#drawn.get(process);
    const id = nodeIdOf(key);
    let shown: Shown | undefined;
    // A later read is one for the lease.
    if (key === CLUSTER_KEY && tenure && this.#unread.delete(tenure.id))
      this.add({ kind: 'reads', at, tenure });
    if (id !== undefined && floor !== undefined) shown = { kind: 'looks', at, floor, id, isUnheard: true };
    if (key === SHARDS_KEY && tenure) {
      const map = usableMap(object, 1, this.world.invariants.shards.count);
      if (!('problem' in map)) shown = { kind: 'follows', at, tenure, epoch: map.epoch, isUnheard: true };
    }
    if (shown) this.add(shown);
    return shown;
  }

  #onWritten(process: SimulatedProcess, key: string, at: number, body: string): void {
    const id = nodeIdOf(key);
    if (key === CLUSTER_KEY) this.#onSettings(process, at, body);
    if (id === undefined) return;
    const reading = readingOf({ body, metadata: {} } as StoredObject);
    if (reading.kind !== 'lease' || reading.lease.kind !== 'held') return;
    const { version, shards } = reading.lease;
    const shows = `${version} ${shards?.epoch}`;
    if (this.#marks.get(key) !== shows) {
      this.add({ kind: 'marks', at, tenure: { id, version }, epoch: shards?.epoch });
      if (shards?.epoch === 0) this.#unread.add(id);
    }
    this.#marks.set(leaseKey(id), shows);
  }

  #onSettings(process: SimulatedProcess, at: number, body: string): void {
    const config = decodeCluster(body);
    if (config.shards === undefined) return;
    const [floor, { created }] = [floorOf(config), config.shards];
    if (floor !== this.#floor) {
      this.add({ kind: 'draws', at, floor, created, peak: config.peak });
      this.#drawn.set(process, floor);
    } else if (created && !this.#isCreated) this.add({ kind: 'creates', at });
    this.#floor = floor;
    this.#isCreated = created;
  }
}
