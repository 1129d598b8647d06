import { CLUSTER_KEY } from '../../../src/core/lease/model/cluster-config.js';
import { type Lease, type LeaseLostError, leavesTime } from '../../../src/core/lease/model/lease.js';
import { leaseKey, nodeIdOf } from '../../../src/core/lease/model/lease-state.js';
import { leaseTiming } from '../../../src/core/lease/model/lease-timing.js';
import type { StoredObject, WriteResult } from '../../../src/core/store/lease-store.js';
import { SHARDS_KEY } from '../../../src/node/shards/shard-map.js';
import { livenessBoundMs, type NetworkFault } from '../world/conditions.js';
import { GROWN_FROM } from '../world/scale-plan.js';
import type { SimulatedProcess } from '../world/simulated-process.js';
import type { World } from '../world/world.js';
import { IdObserver } from './id-observer.js';
import { described, NEVER_HELD, type ObservedObject, observed } from './observed-object.js';
import { PastObserver } from './past-observer.js';
import { reportedSize, ScaleObserver, type Sender } from './scale-observer.js';
import { ShardObserver } from './shard-observer.js';
import { TimesObserver } from './times-observer.js';

const ROUNDING_MS = 5;
/** How far two clocks may drift apart. */
const MOST_DRIFT = 1e-3;

/** What has to hold at every step. */
export type InvariantName =
  /** At most one task believes that it holds a node id, or has work running under it (rule 1). */
  | 'exclusion'
  /** Versions of a node id strictly increase, and none has two holders (rule 2). */
  | 'fencing'
  /** Belief, and work, end with the lease, whether somebody waits for it or not (rules 3 and 7). */
  | 'deadline'
  /** No observed age exceeds what the store knew when it answered. */
  | 'age'
  /** No lease object is lost or unreadable. */
  | 'objects'
  /** A task's own write is not taken for somebody else's, nor a lost reply for a lost id (rules 5 and 6). */
  | 'own-writes'
  /** No unique id is made twice, nor can be. */
  | 'ids'
  /**
   * No task takes an id that the cluster has given up, as far as it can know; and none is left to be taken.
   */
  | 'retirement'
  /** Growing and shrinking takes nothing from tasks whose ids stay, nor from the others too soon. */
  | 'survivors'
  /** The settings note each change of the times, and an operator hears what has become of it. */
  | 'times'
  /** A task knows whether the last holder of its id had the same sticky key. */
  | 'previous'
  /** A lease object says which tenures were before, and how they ended. */
  | 'history'
  /** A task fails in no other way than the engine's contract says. */
  | 'errors'
  /** No two tasks work on one shard at a time, and its tokens rise. */
  | 'shards'
  /** What happens is a path of the model (not looked at here). */
  | 'path'
  /** With the faults ended, no task waits while an id is free, and every shard runs. */
  | 'liveness';

/** A promise that was broken. */
export interface Violation {
  readonly invariant: InvariantName;
  /** True time in milliseconds. */
  readonly at: number;
  readonly text: string;
}

/** A task, as it is seen from outside. */
export interface WatchedTask {
  readonly name: string;
  readonly process: SimulatedProcess;
  readonly lease: Lease;
  /** True while a command that was started for the lease may act. */
  readonly workRuns: () => boolean;
}

/** How long after a deadline it is looked whether anybody goes on, in milliseconds. */
const TOLERANCE_MS = 1;
/**
 * How long a command may run after the news that its id may be somebody else's, in milliseconds; shorter than
 * any pause.
 */
const AT_ONCE_MS = 40;

/** An acquiring write that was applied, and whose reply was lost. */
interface Unheard {
  readonly id: number;
  readonly key: string;
  readonly nonce: string | undefined;
  readonly sentAt: number;
  readonly durationMs: number;
}

/**
 * Watches one world from outside, in true time, with its own reading of the objects, and keeps the first
 * promise that is broken.
 *
 * Belief can only begin in a step of the task's own machine, so that it is enough to look, after each step,
 * at the task whose step it was.
 */
export class Invariants {
  violation: Violation | undefined;
  /** Gets every unique id. */
  readonly ids: IdObserver;
  /** Gets every event that has to do with the cluster's size. */
  readonly scales: ScaleObserver;
  /** Gets what operators do to the times. */
  readonly times: TimesObserver;
  /** Gets the events of the work on shards. */
  readonly shards: ShardObserver;
  readonly #objects = new Map<number, ObservedObject>();
  readonly #tasks = new Map<number, WatchedTask[]>();
  readonly #byProcess = new Map<SimulatedProcess, WatchedTask>();
  readonly #holders = new Map<string, string>();
  /** The last version of each node id that a task held. */
  readonly #versions = new Map<number, number>();
  /** What each tenure should learn of the one before. */
  readonly #previous = new Map<string, Lease['previous']>();
  readonly #past: PastObserver;
  readonly #unheard = new Map<SimulatedProcess, Unheard>();
  /** Until when each task may believe, on its machine's monotonic clock. */
  readonly #deadlines = new Map<SimulatedProcess, number>();
  /** The deadline that each task knew after its last step, on the same clock. */
  readonly #known = new WeakMap<WatchedTask, number>();
  /** How many node ids the cluster has, and had before the faults were over. */
  #size: number;
  #sizeInTime: number;
  #thawedUntil = 0;
  readonly #lastSent = new Map<SimulatedProcess, number>();

  constructor(private readonly world: World) {
    this.times = new TimesObserver((text) => this.#fail('times', text));
    this.#past = new PastObserver(world, (text) => this.#fail('history', text));
    this.shards = new ShardObserver(world, (invariant, text) => this.#fail(invariant, text));
    this.ids = new IdObserver(world, (text) => this.#fail('ids', text));
    this.scales = new ScaleObserver({
      world,
      isHeld: (id) => this.#tasks.get(id)?.some(believes) === true,
      object: (id) => this.#objects.get(id),
      fail: (text, invariant) => this.#fail(invariant, text),
    });
    this.#size = world.conditions.ids;
    this.#sizeInTime = world.conditions.ids;
  }

  /** A task says that it holds an id. */
  onAcquired(task: WatchedTask): void {
    const { lease, name } = task;
    const tenure = `${lease.id} version ${lease.version}`;
    const other = this.#holders.get(tenure);
    if (other !== undefined && this.world.keepsVersions)
      this.#fail('fencing', `node id ${tenure} is held by ${name}, and was by ${other}`);
    this.#holders.set(tenure, name);
    const last = this.#versions.get(lease.id) ?? 0;
    const goesBack = lease.version < last && lease.isValid();
    if (goesBack && this.world.restored.length > 0 && this.world.keepsVersions)
      this.#fail('fencing', `node id ${tenure} is held by ${name}, after version ${last}`);
    this.#versions.set(lease.id, Math.max(last, lease.version));
    const previous = this.#previous.get(tenure);
    if (lease.previous !== undefined && lease.previous !== previous)
      this.#fail(
        'previous',
        `${name} takes the last holder of ${tenure} for ${lease.previous}, not ${previous}`,
      );
    const others = this.#tasks.get(lease.id) ?? [];
    others.push(task);
    this.#tasks.set(lease.id, others);
    this.#byProcess.set(task.process, task);
    this.#unheard.delete(task.process);
  }

  /** A task has ended with everything that it started. */
  onEnded(task: WatchedTask): void {
    const tasks = this.#tasks.get(task.lease.id) ?? [];
    const at = tasks.indexOf(task);
    if (at >= 0) tasks.splice(at, 1);
    if (this.#byProcess.get(task.process) === task) this.#byProcess.delete(task.process);
  }

  /** A task says that it lost its lease. */
  onLost({ name, lease, process, workRuns }: WatchedTask, error: LeaseLostError): void {
    if (lease.isValid())
      this.#fail(
        'deadline',
        `${name} reports its lease as lost (${error.detail}) and believes in it all the same`,
      );
    this.shards.onLost(process);
    if (leavesTime(error.reason)) return;
    const { scheduler } = this.world;
    // Somebody else may be at work already.
    scheduler.at(scheduler.now + AT_ONCE_MS, undefined, () => {
      if (process.alive && !process.stopped && workRuns())
        this.#fail('deadline', `the command of ${name} runs on after its lease was lost: ${error.detail}`);
    });
    // What it has heard may have been lost since.
    const { restored } = this.world;
    if (error.reason !== 'taken' || (this.#lastSent.get(process) ?? 0) < (restored.at(-1)?.at ?? 0)) return;
    const object = this.#objects.get(lease.id);
    if (object?.held && object.version === lease.version && object.taskId === lease.taskId) {
      this.#fail(
        'own-writes',
        `${name} gives up ${lease.id} version ${lease.version} (${error.detail}), which the store still says is its own`,
      );
    }
  }

  /** Looks at the task whose step it was. */
  afterStep(process: SimulatedProcess): void {
    const task = this.#byProcess.get(process);
    if (task === undefined) return;
    this.#checkFinality(task);
    this.#check(task);
  }

  /** Looks at every task. */
  checkAll(): void {
    for (const tasks of this.#tasks.values()) for (const task of tasks) this.#check(task);
  }

  #check(task: WatchedTask): void {
    if (!believes(task)) return;
    this.#checkDeadline(task);
    const tasks = this.#tasks.get(task.lease.id) as WatchedTask[];
    if (tasks.length === 1) return;
    for (const other of tasks) {
      if (other === task || !believes(other)) continue;
      const { id } = task.lease;
      this.#fail('exclusion', `node id ${id}: ${reported(task)} and ${reported(other)} at once`);
    }
  }

  /** A task has heard that its id is to be given up. */
  onRetiring({ name, lease }: WatchedTask, size: number): void {
    this.scales.onRetiring(name, lease.id, size);
  }

  /** A task has failed in a way that no user should have to expect. */
  onUnexpected(name: string, error: unknown): void {
    this.#fail(
      'errors',
      `${name} fails: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  }

  /**
   * A task calls an object unusable. There is none here, but that an old listing may lack what has been
   * created since, and a store that has gone back what the task's settings promise.
   */
  onDamaged(name: string, { key, problem }: { readonly key: string; readonly problem: string }): void {
    if (this.world.conditions.rates['stale-list'] === 0 && this.world.restored.length === 0)
      this.#fail('errors', `${name} finds damage: ${key} ${problem}`);
  }

  /** A task has sent a request; `fault` is what is about to happen to it. */
  onRequest(
    process: SimulatedProcess,
    operation: string,
    key: string,
    fault: NetworkFault | undefined,
  ): void {
    // Not a part of the acquisition, and of no consequence for it.
    if (isMarker(key)) return;
    // It has found its write, and perhaps a reason not to believe in it (rule 11).
    if (operation === 'epoch') this.onDisturbed(process);
    const { now } = this.world.scheduler;
    const unheard = this.#unheard.get(process);
    this.#lastSent.set(process, now);
    if (unheard === undefined) return;
    const { clock } = process;
    // Whatever else goes wrong excuses the task; so does the end of what it could still have used.
    const { durationMs } = unheard;
    const tooLate = unheard.sentAt + durationMs - leaseTiming(durationMs).stopMarginMs;
    const overwritten = this.#objects.get(unheard.id)?.nonce !== unheard.nonce;
    if (fault !== undefined || overwritten || clock.monotonic() >= tooLate) this.#unheard.delete(process);
    else if (operation === 'list' || key !== unheard.key) {
      this.#fail(
        'own-writes',
        `the write to ${unheard.key} was applied, its reply lost, and its task goes on to another id as if it had not been`,
      );
    }
  }

  /**
   * Something happened to a process, or to its way to the store, that excuses it from finding a lost reply's
   * write.
   */
  onDisturbed(process: SimulatedProcess): void {
    this.#unheard.delete(process);
  }

  /** The store has carried out a task's request, and its reply is about to be lost or not. */
  onApplied(
    process: SimulatedProcess,
    operation: string,
    key: string,
    reply: unknown,
    fault: NetworkFault | undefined,
  ): void {
    if (operation !== 'create' && operation !== 'replace') return;
    if (fault !== 'response-lost' && fault !== 'error-applied') return;
    const id = nodeIdOf(key);
    if (id === undefined || (reply as WriteResult).status !== 'written' || this.#byProcess.has(process))
      return;
    const object = this.#objects.get(id);
    if (object?.held)
      this.#unheard.set(process, {
        ...{ id, key, nonce: object.nonce, sentAt: this.#sentAt(process) },
        durationMs: object.durationMs ?? 0,
      });
  }

  /**
   * A write of a task's that names it as the holder was applied: until when it may believe, by the observer's
   * own account.
   */
  onHeld(process: SimulatedProcess, key: string, sentAt: number): void {
    const id = nodeIdOf(key);
    const durationMs = id === undefined ? undefined : this.#objects.get(id)?.durationMs;
    if (durationMs === undefined) return;
    const { machine } = process;
    const deadline = Math.max(this.#deadlines.get(process) ?? 0, machine.monotonicAt(sentAt) + durationMs);
    this.#deadlines.set(process, deadline);
    const { scheduler } = this.world;
    const leftMs = machine.trueMs(deadline - machine.monotonicAt(scheduler.now));
    scheduler.at(scheduler.now + leftMs + TOLERANCE_MS, undefined, () => {
      const task = this.#byProcess.get(process);
      if (task !== undefined) this.#checkDeadline(task);
    });
  }

  #checkDeadline(task: WatchedTask): void {
    const { process, lease } = task;
    const deadline = this.#deadlines.get(process);
    if (deadline === undefined || !believes(task)) return;
    const overMs = process.machine.monotonicAt(this.world.scheduler.now) - deadline;
    if (overMs < 0 || this.world.scheduler.now < this.#thawedUntil) return;
    this.#fail(
      'deadline',
      `${reported(task)} goes on with node id ${lease.id} ${overMs.toFixed(1)} ms after its deadline`,
    );
  }

  /** A tenure whose deadline has passed is over, whatever is answered later. */
  #checkFinality(task: WatchedTask): void {
    const { process, lease } = task;
    const before = this.#known.get(task);
    this.#known.set(task, lease.deadline);
    if (before !== undefined && lease.deadline < before - 1e-6)
      this.#fail('deadline', `${reported(task)} moves its deadline back by ${before - lease.deadline} ms`);
    if (before === undefined || lease.deadline === before || !lease.isValid()) return;
    const overMs = process.clock.monotonic() - before;
    if (overMs >= 0)
      this.#fail('deadline', `${reported(task)} is valid again ${overMs.toFixed(1)} ms after its deadline`);
  }

  /** Everything on some machine goes on: its guards need a moment. */
  onThaw(forMs: number): void {
    this.#thawedUntil = Math.max(this.#thawedUntil, this.world.scheduler.now + forMs);
  }

  /**
   * @param min what the process takes the age of what it read for, at least, in milliseconds
   * @param reported the store's own upper bound, of the same reply
   */
  onObserved(key: string, min: number, reported: number): void {
    const { storeOffsets, timeStepMs } = this.world.conditions;
    const most = reported * (1 + MOST_DRIFT) + Math.max(...storeOffsets) + timeStepMs + ROUNDING_MS;
    if (min > most)
      this.#fail(
        'age',
        `${key} is taken to be ${Math.round(min)} ms old, and is ${Math.round(most)} ms old at the most`,
      );
  }

  /** The store has answered a write; hands the answer on. */
  afterWrite(
    key: string,
    body: string,
    metadata: Readonly<Record<string, string>>,
    result: WriteResult,
    sender: Sender,
  ): WriteResult {
    const id = nodeIdOf(key);
    if (result.status === 'written' && key === CLUSTER_KEY) this.#afterSettings(body);
    if (result.status === 'written' && key === SHARDS_KEY) this.shards.afterWrite(body, sender.process);
    if (result.status !== 'written' || id === undefined) return result;
    const known = this.#objects.get(id) ?? NEVER_HELD;
    const now = observed(body, metadata);
    if (this.world.recording)
      this.world.note('store', `${key} is now ${now === undefined ? body : described(now)}`);
    if (now === undefined) this.#fail('objects', `${key} has been made unreadable: ${body}`);
    else {
      const broken = this.#brokenFencing(key, known, now);
      if (broken !== undefined) this.#fail('fencing', broken);
      this.#objects.set(id, now);
      this.#past.afterWrite(id, known, now);
      if (now.held && now.nonce !== known.nonce)
        this.#previous.set(`${id} version ${now.version}`, keeper(known, now));
      this.scales.afterWrite(id, known, now, sender);
    }
    return result;
  }

  #brokenFencing(key: string, known: ObservedObject, now: ObservedObject): string | undefined {
    if (now.version < known.version)
      return `${key} goes from version ${known.version} back to ${now.version}`;
    if (now.held && now.version === known.version && (!known.held || now.nonce !== known.nonce))
      return `version ${now.version} of ${key} is given out twice`;
    const taken = known.held && !now.held && (now.durationMs !== undefined || now.retiredIn !== undefined);
    if (taken && now.version === known.version)
      return `a forced release leaves ${key} at version ${now.version} (rule 9)`;
    if (now.timestamp !== undefined && now.timestamp < (known.timestamp ?? 0))
      return `the timestamp of ${key} goes from ${known.timestamp} back to ${now.timestamp}`;
    return undefined;
  }

  /** Node ids that come when the faults are over already have no holder yet. */
  #afterSettings(body: string): void {
    const { world } = this;
    if (world.recording) world.note('store', `${CLUSTER_KEY} is now ${body}`);
    const reported = reportedSize(body);
    this.scales.onSettings(reported);
    this.#size = reported.size;
    this.times.onSettings(body);
    if (!world.quiet) this.#sizeInTime = reported.size;
  }

  /** A reply to a request about the settings has reached its task; `sent` is what it wanted to write. */
  onSettingsHeard(
    process: SimulatedProcess,
    sent: string | undefined,
    reply: StoredObject | WriteResult | undefined,
  ): void {
    const body =
      reply !== undefined && 'body' in reply ? reply.body : reply?.status === 'written' ? sent : undefined;
    if (body !== undefined) this.scales.onHeard(process, reportedSize(body));
  }

  /**
   * The store has gone back: what it shows from now on follows from these objects. What tasks believe, and
   * which versions and unique ids there were, stays as it is.
   */
  onRestored(copy: readonly StoredObject[]): void {
    this.#objects.clear();
    this.#unheard.clear();
    this.times.onRestored();
    for (const { key, body, metadata } of copy) {
      if (key === CLUSTER_KEY) this.#afterSettings(body);
      const id = nodeIdOf(key);
      const object = id === undefined ? undefined : observed(body, metadata);
      if (id === undefined || object === undefined) continue;
      this.#objects.set(id, object);
      if (this.world.recording) this.world.note('store', `${key} is now ${described(object)}`);
    }
    this.#past.onRestored(this.#objects);
    this.scales.onRestored();
    this.shards.onRestored(copy);
  }

  /** The store has removed an object. */
  afterRemoval(key: string): void {
    if (nodeIdOf(key) !== undefined)
      this.#fail('objects', `${key} has been deleted, and its version with it`);
  }

  /** At the end, with the faults over for long enough: is every id held that could be? */
  atEnd(tasksAlive: number): void {
    const { conditions } = this.world;
    const { longestMs, mostGraceMs } = conditions;
    const size = Math.min(this.#size, this.#sizeInTime);
    const taken = this.world.outside !== undefined && size > conditions.ids ? GROWN_FROM - conditions.ids : 0;
    const ids = size - taken;
    for (const id of this.#objects.keys()) {
      if (this.world.bucket.read(leaseKey(id)) === undefined)
        this.#fail('objects', `${leaseKey(id)} is missing`);
    }
    this.shards.atEnd();
    const unfinished = this.scales.unfinished();
    if (unfinished !== undefined) this.#fail('liveness', unfinished);
    const holders = [...this.#tasks.values()].flatMap((tasks) => tasks.filter(believes).slice(0, 1));
    // Where its id is not retired, a task may keep an id that the cluster has no more.
    const leaving = holders.filter(({ lease }) => lease.id >= this.#size);
    for (const { name, lease } of this.#size === this.#sizeInTime ? leaving : []) {
      if (!lease.retiring.aborted)
        this.#fail('retirement', `${name} has not heard that node id ${lease.id} is to be given up`);
    }
    const held = holders.length - leaving.length;
    // The generation of a lost scale may be above that of the cluster, as versions may (rule 12): its id stays retired.
    if (this.world.keepsVersions && held < Math.min(ids, tasksAlive - leaving.length)) {
      const bound = livenessBoundMs(longestMs, mostGraceMs);
      this.#fail(
        'liveness',
        `${bound} ms after the last fault ${tasksAlive} tasks hold ${held} of ${ids} node ids`,
      );
    }
  }

  #sentAt(process: SimulatedProcess): number {
    const sentAt = this.#lastSent.get(process) ?? this.world.scheduler.now;
    return process.machine.monotonicAt(sentAt);
  }

  #fail(invariant: InvariantName, text: string): void {
    this.violation ??= { invariant, at: this.world.scheduler.now, text };
  }
}

function believes({ process, lease, workRuns }: WatchedTask): boolean {
  return (process.alive && lease.isValid()) || workRuns();
}

/** Who held an id before, by what a new holder's write has replaced. */
function keeper(before: ObservedObject, now: ObservedObject): Lease['previous'] {
  if (before.version === 0) return 'none';
  return now.sticky !== undefined && before.sticky === now.sticky ? 'same' : 'other';
}

function reported({ name, lease, workRuns }: WatchedTask): string {
  return `${name} (version ${lease.version}${workRuns() ? ', its command runs' : ''})`;
}

/** Whether an object is a waiting task's mark, and no lease. */
function isMarker(key: string): boolean {
  return key.startsWith('waiting-');
}
