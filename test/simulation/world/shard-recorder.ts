import type { ShardEvent } from '../../../src/node/shards/holding.js';
import { decodeMap } from '../../../src/node/shards/shard-map.js';
import type { ShardAct, ShardTrace, Tenure } from '../../model/shards-trace.js';
import type { ShardTask } from '../checks/shard-observer.js';
import { MAP_DAMAGED, STORE_RESTORED } from './conditions.js';
import { RepairRecorder } from './repair-recorder.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { World } from './world.js';

interface Member extends ShardTask {
  /** The shards whose work has begun, and has not ended. */
  readonly runs: Set<number>;
  hasEnded: boolean;
}

interface RecordedTrace extends ShardTrace {
  readonly acts: ShardAct[];
  leftOut?: string;
}

/**
 * Keeps what happens to the ownership of shards, for `explainShards()`. A trace ends when the map is damaged or the
 * store goes back. The next one begins when the map is repaired, or a new one is made.
 */
export class ShardRecorder {
  readonly traces: RecordedTrace[] = [{ acts: [] }];
  /** That of now, if there is one. */
  #trace = this.traces[0];
  readonly #members = new Map<SimulatedProcess, Member>();
  /** What happens from the beginning on, also while the map is damaged. */
  readonly repairs: RepairRecorder;

  constructor(private readonly world: World) {
    const tenureOf = (process: SimulatedProcess) => this.#tenureOf(process);
    this.repairs = new RepairRecorder(world, tenureOf, () => this.#endTenures());
  }

  onTenure(task: ShardTask): void {
    const member = { ...task, runs: new Set<number>(), hasEnded: false };
    // It may learn too late of its lease.
    if (isOver(member)) return;
    this.#add({ kind: 'begins', tenure: named(task.lease) });
    this.#members.set(task.process, member);
  }

  onStart({ process, lease }: ShardTask, shard: number, token: number): void {
    this.#add({ kind: 'starts', tenure: named(lease), shard, token });
    this.#members.get(process)?.runs.add(shard);
  }

  onEvent({ process, lease }: ShardTask, event: ShardEvent): void {
    if (event.type === 'epoch') {
      const follows = {
        kind: 'follows',
        at: this.world.scheduler.now,
        tenure: named(lease),
        epoch: event.epoch,
      } as const;
      this.#endTenures();
      this.#trace?.acts.push(follows);
      this.repairs.onFollowed(process, follows);
    }
    if (event.type !== 'stopped') return;
    this.#add({ kind: 'stops', tenure: named(lease), shard: event.shard, token: event.token });
    this.#members.get(process)?.runs.delete(event.shard);
  }

  /** The map is lost, or overwritten. */
  onLost(): void {
    this.#leave(MAP_DAMAGED);
    this.#endTenures();
    this.repairs.add({ kind: 'loses', at: this.world.scheduler.now });
  }

  onRestored(): void {
    this.#leave(STORE_RESTORED);
    this.repairs.end();
  }

  /** The store has applied a write of the map. */
  onWrite(body: string, process: SimulatedProcess): void {
    const { epoch, frozen, members, shards } = decodeMap(body);
    if (frozen && this.traces.length > 1) this.#leave('repaired once more');
    // Where versions come again, they name no tenure (rule 12).
    const mayBegin = this.#trace === undefined && this.world.keepsVersions;
    if (mayBegin && !frozen && members.length === 0) this.#beginTrace();
    this.#add({ kind: 'writes', tenure: this.#tenureOf(process), epoch, frozen, shards });
  }

  #tenureOf(process: SimulatedProcess): Tenure | undefined {
    const member = this.#members.get(process);
    return member && named(member.lease);
  }

  /** shards.pml does not have what happens from now on. */
  #leave(what: string): void {
    if (this.#trace) this.#trace.leftOut = what;
    this.#trace = undefined;
  }

  #add(act: WithoutTime<ShardAct>): void {
    this.#endTenures();
    const added = { at: this.world.scheduler.now, ...act };
    this.#trace?.acts.push(added);
    this.repairs.add(added);
  }

  /** No event says that a tenure is over, so each act looks. */
  #endTenures(): void {
    for (const member of this.#members.values()) {
      if (member.hasEnded || !isOver(member)) continue;
      member.hasEnded = true;
      const ended = { kind: 'ends', at: this.world.scheduler.now, tenure: named(member.lease) } as const;
      this.#trace?.acts.push(ended);
      this.repairs.add(ended);
    }
  }

  /** With all tenures so far: a plan may name one that is over. */
  #beginTrace(): void {
    this.#endTenures();
    const acts: ShardAct[] = [];
    const at = this.world.scheduler.now;
    for (const { lease, hasEnded } of this.#members.values()) {
      acts.push({ kind: 'begins', at, tenure: named(lease) });
      if (hasEnded) acts.push({ kind: 'ends', at, tenure: named(lease) });
    }
    this.#trace = { acts };
    this.traces.push(this.#trace);
  }
}

/** Whether a tenure is over. One that was released while its work may run ends at its deadline (T7). */
function isOver({ process, lease, runs }: Member): boolean {
  if (!process.alive || lease.signal.aborted || process.clock.monotonic() >= lease.deadline) return true;
  return runs.size === 0 && !lease.isValid();
}

type WithoutTime<Act> = Act extends unknown ? Omit<Act, 'at'> : never;

const named = ({ id, version }: Tenure): Tenure => ({ id, version });
