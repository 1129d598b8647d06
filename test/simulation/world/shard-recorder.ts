import type { ShardEvent } from '../../../src/node/shards/holding.js';
import { decodeMap } from '../../../src/node/shards/shard-map.js';
import type { ShardAct, ShardTrace, Tenure } from '../../model/shards-trace.js';
import type { ShardTask } from '../checks/shard-observer.js';
import { MAP_DAMAGED, STORE_RESTORED } from './conditions.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { World } from './world.js';

interface Member extends ShardTask {
  /** The shards whose work has begun, and has not ended. */
  readonly runs: Set<number>;
}

/**
 * Keeps what happens to the ownership of shards, for `explainShards()`: until the map is damaged or the store goes back,
 * which shards.pml does not have.
 */
export class ShardRecorder implements ShardTrace {
  readonly acts: ShardAct[] = [];
  leftOut: string | undefined;
  readonly #members = new Map<SimulatedProcess, Member>();

  constructor(private readonly world: World) {}

  onTenure(task: ShardTask): void {
    const member = { ...task, runs: new Set<number>() };
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
    if (event.type === 'epoch') this.#add({ kind: 'follows', tenure: named(lease), epoch: event.epoch });
    if (event.type !== 'stopped') return;
    this.#add({ kind: 'stops', tenure: named(lease), shard: event.shard, token: event.token });
    this.#members.get(process)?.runs.delete(event.shard);
  }

  /** The store has applied a write of the map. */
  onWrite(body: string, process: SimulatedProcess): void {
    const writer = this.#members.get(process)?.lease;
    const { epoch, shards } = decodeMap(body);
    this.#add({ kind: 'writes', tenure: writer && named(writer), epoch, shards });
  }

  /** No event says that a tenure is over: it is by the time of the next act. */
  #add(act: WithoutTime<ShardAct>): void {
    const { scheduler, counts } = this.world;
    const { now } = scheduler;
    this.leftOut ??= ([MAP_DAMAGED, STORE_RESTORED] as const).find((kind) => counts.faults.has(kind));
    if (this.leftOut !== undefined) return;
    for (const [process, member] of this.#members) {
      if (!isOver(member)) continue;
      this.#members.delete(process);
      this.acts.push({ kind: 'ends', at: now, tenure: named(member.lease) });
    }
    this.acts.push({ at: now, ...act });
  }
}

/** Whether no work runs any more for a tenure: not before, where a stop has rejected and the lease was released (T7). */
function isOver({ process, lease, runs }: Member): boolean {
  if (!process.alive || lease.signal.aborted || process.clock.monotonic() >= lease.deadline) return true;
  return runs.size === 0 && !lease.isValid();
}

type WithoutTime<Act> = Act extends unknown ? Omit<Act, 'at'> : never;

const named = ({ id, version }: Tenure): Tenure => ({ id, version });
