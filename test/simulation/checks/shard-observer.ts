import type { Lease } from '../../../src/core/lease/model/lease.js';
import type { StoredObject } from '../../../src/core/store/lease-store.js';
import { decodeMap, SHARDS_KEY } from '../../../src/node/shards/shard-map.js';
import { MAP_DAMAGED, STORE_RESTORED } from '../world/conditions.js';
import type { ShardRecorder } from '../world/shard-recorder.js';
import type { SimulatedProcess } from '../world/simulated-process.js';
import { StartFaults } from '../world/start-faults.js';
import type { World } from '../world/world.js';

/** A task that takes part in the ownership of shards. */
export interface ShardTask {
  readonly name: string;
  /** The number of its machine. */
  readonly host: number;
  readonly process: SimulatedProcess;
  readonly lease: Lease;
}

/** The work on one shard, from its start to the end of its stop. */
export interface ShardRun extends ShardTask {
  readonly shard: number;
  readonly token: number;
  hasEnded: boolean;
}

/** How long a process that continues may need to notice that its lease is over, in milliseconds. */
const NOTICES_MS = 100;

/** Sees every run of every shard, and looks whether two of them overlap, or a token comes back. */
export class ShardObserver {
  readonly #runs = new Map<number, ShardRun[]>();
  readonly #tokens = new Map<number, number>();
  readonly #tasks = new Set<ShardTask>();
  /** By shard: when work on it has ended last. */
  readonly #ranAt = new Map<number, number>();
  readonly faults: StartFaults;
  /** Keeps what happens, where that is wanted. */
  recorder: ShardRecorder | undefined;
  #epoch = 0;

  constructor(
    private readonly world: World,
    private readonly fail: (invariant: 'shards' | 'liveness', text: string) => void,
  ) {
    this.faults = new StartFaults(world.conditions, this.count);
  }

  /** How many shards the cluster of this world has. */
  get count(): number {
    return [1, 5, 12][this.world.conditions.seed % 3] as number;
  }

  onMember(task: ShardTask): void {
    this.#tasks.add(task);
  }

  /** A task begins to work. */
  begin(task: ShardTask, shard: number, token: number): ShardRun {
    const run = { ...task, shard, token, hasEnded: false };
    const start = `shard ${shard}: ${run.name} starts with token ${token}`;
    if (this.world.recording) this.world.note(run.name, start);
    const others = (this.#runs.get(shard) ?? []).filter((other) => !other.hasEnded && other.process.alive);
    for (const other of others)
      if (this.#acts(other))
        this.fail('shards', `${start}, and ${other.name} runs it with token ${other.token}`);
    if (!run.lease.isValid()) this.fail('shards', `${start}, without a valid lease`);
    const last = this.#tokens.get(shard) ?? 0;
    // Tokens that are lost are passed by time (T11).
    if (token <= last && !this.world.clockWentBack) this.fail('shards', `${start}, after ${last}`);
    this.#tokens.set(shard, Math.max(last, token));
    this.#runs.set(shard, [...others, run]);
    return run;
  }

  /** Its work has ended, after it ran. */
  stopped(run: ShardRun): void {
    this.#ranAt.set(run.shard, this.world.scheduler.now);
    this.end(run);
  }

  /** Its work has ended, or never began. */
  end(run: ShardRun): void {
    if (!run.hasEnded && this.world.recording) this.world.note(run.name, `shard ${run.shard} has ended`);
    run.hasEnded = true;
  }

  /** A task has lost its lease: what it runs ends with it (T7). */
  onLost(process: SimulatedProcess): void {
    const { scheduler } = this.world;
    scheduler.at(scheduler.now + NOTICES_MS, undefined, () => {
      for (const run of [...this.#runs.values()].flat())
        if (run.process === process && !run.lease.isValid() && this.#acts(run))
          this.fail('shards', `${run.name} works on shard ${run.shard} after its lease was lost`);
    });
  }

  /** The map has been written. */
  afterWrite(body: string, writer: SimulatedProcess): void {
    this.recorder?.onWrite(body, writer);
    const { epoch, members } = decodeMap(body);
    // A beginning draws a later series where the task that drew before has not finished (T10).
    const isFirst = members.length === 0 && epoch !== this.#epoch + 1;
    // The first map of an earlier series, which arrives after the map has been deleted, is damage: no task
    // follows it.
    const isLate = isFirst && epoch < this.#epoch;
    if (epoch !== this.#epoch + 1 && !(isFirst && epoch > this.#epoch) && !(isLate && this.wasDamaged))
      this.fail('shards', `the map goes from epoch ${this.#epoch} to ${epoch}`);
    if (!isLate) this.#epoch = epoch;
    if (!this.world.recording) return;
    const names = members.map(({ id, version }) => `${id}/${version}`).join(' ');
    this.world.note('store', `shards.json is now epoch ${epoch} of ${names}: ${body}`);
  }

  /** The store has gone back: its map is written from this one on. */
  onRestored(copy: readonly StoredObject[]): void {
    this.recorder?.onRestored();
    const map = copy.find(({ key }) => key === SHARDS_KEY);
    this.#epoch = map?.body.includes('"epoch"') === true ? decodeMap(map.body).epoch : 0;
  }

  /** With the faults over for long enough, every shard runs, if there is a task to run it. */
  atEnd(): void {
    const { bucket } = this.world;
    const isMade = bucket.read('cluster.json')?.body.includes('"created":true') === true;
    if (this.wasDamaged && isMade && bucket.read(SHARDS_KEY)?.body.includes('"owner"') !== true)
      this.fail('liveness', 'the map of shards is not repaired');
    else if (bucket.read(SHARDS_KEY)?.body.includes('"frozen"'))
      this.fail('liveness', 'the map of shards is frozen');
    // One whose id is being retired has left for good (T7).
    const { now } = this.world.scheduler;
    const tasks = [...this.#tasks].filter(
      ({ process, lease, host }) =>
        process.alive && lease.isValid() && !lease.retiring.aborted && !this.faults.isSick(host, now),
    );
    // A host that does not recover gets one on trial now and then.
    const trialMs = this.faults.isForEver ? this.world.conditions.longestMs + 1_000 : 0;
    const onTrial = (shard: number) => now - (this.#ranAt.get(shard) ?? 0) < trialMs;
    for (let shard = 0; tasks.length > 0 && shard < this.count; shard += 1)
      if (this.#runs.get(shard)?.some((run) => this.#acts(run)) !== true && !onTrial(shard))
        this.fail('liveness', `shard ${shard} does not run, with ${tasks.length} tasks that could run it`);
  }

  /** Whether the map is repaired: it was deleted or overwritten, or came back with the store. */
  get wasDamaged(): boolean {
    const { faults } = this.world.counts;
    return faults.has(MAP_DAMAGED) || faults.has(STORE_RESTORED);
  }

  /** Whether the work may act: it does not know of its end, or need not. */
  #acts({ hasEnded, process, lease }: ShardRun): boolean {
    if (hasEnded || !process.alive) return false;
    return lease.isValid() || (!process.stopped && this.world.scheduler.now - process.resumedAt > NOTICES_MS);
  }
}
