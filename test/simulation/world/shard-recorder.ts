import type { ShardEvent } from '../../../src/node/shards/holding.js';
import { decodeMap } from '../../../src/node/shards/shard-map.js';
import type { ShardAct, ShardTrace, Tenure } from '../../model/shards-trace.js';
import type { ShardTask } from '../checks/shard-observer.js';
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

  constructor(private readonly world: World) {}

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
    if (event.type === 'epoch') this.#add({ kind: 'follows', tenure: named(lease), epoch: event.epoch });
    if (event.type !== 'stopped') return;
    this.#add({ kind: 'stops', tenure: named(lease), shard: event.shard, token: event.token });
    this.#members.get(process)?.runs.delete(event.shard);
  }

  /** The model does not have what happens from now on. */
  leave(what: string): void {
    if (this.#trace) this.#trace.leftOut = what;
    this.#trace = undefined;
  }

  /** The store has applied a write of the map. */
  onWrite(body: string, process: SimulatedProcess): void {
    const writer = this.#members.get(process)?.lease;
    const { epoch, frozen, members, shards } = decodeMap(body);
    if (frozen && this.traces.length > 1) this.leave('repaired once more');
    // Where versions come again, they name no tenure (rule 12).
    const mayBegin = this.#trace === undefined && this.world.keepsVersions;
    if (mayBegin && !frozen && members.length === 0) this.#beginTrace();
    this.#add({ kind: 'writes', tenure: writer && named(writer), epoch, shards });
  }

  /** No event says that a tenure is over, so each act looks. */
  #add(act: WithoutTime<ShardAct>): void {
    const at = this.world.scheduler.now;
    const acts = this.#trace?.acts;
    for (const member of this.#members.values()) {
      if (member.hasEnded || !isOver(member)) continue;
      member.hasEnded = true;
      acts?.push({ kind: 'ends', at, tenure: named(member.lease) });
    }
    acts?.push({ at, ...act });
  }

  /** With all tenures so far: a plan may name one that is over. */
  #beginTrace(): void {
    this.#trace = { acts: [] };
    this.traces.push(this.#trace);
    for (const member of this.#members.values()) {
      this.#add({ kind: 'begins', tenure: named(member.lease) });
      if (member.hasEnded) this.#add({ kind: 'ends', tenure: named(member.lease) });
    }
  }
}

/** Whether a tenure is over. One that was released while its work may run ends at its deadline (T7). */
function isOver({ process, lease, runs }: Member): boolean {
  if (!process.alive || lease.signal.aborted || process.clock.monotonic() >= lease.deadline) return true;
  return runs.size === 0 && !lease.isValid();
}

type WithoutTime<Act> = Act extends unknown ? Omit<Act, 'at'> : never;

const named = ({ id, version }: Tenure): Tenure => ({ id, version });
