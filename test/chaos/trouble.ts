import { setTimeout as sleep } from 'node:timers/promises';
import type { RandomSource } from '../../src/core/base/clock.js';
import { runCli } from '../support/processes.js';
import { monotonicMicros } from './act.js';
import { drawFault, type FaultKind } from './faults.js';
import type { Slot } from './slot.js';

/** A fault that happened. */
export interface FaultRecord {
  readonly name: string;
  /** When it began, in microseconds of CLOCK_MONOTONIC. */
  readonly at: number;
  /** How long it was to last, in milliseconds; 0 for one that is over at once. */
  readonly lengthMs: number;
  /** The slot, or undefined for what hits all of them. */
  readonly slot: number | undefined;
  /** The task that it hit, if it acted already. */
  readonly taskId: string | undefined;
  /** The main process of that task. */
  readonly pid?: number;
}

/** What the troublemaker may harm, and how. */
export interface TroubleOptions {
  readonly slots: readonly Slot[];
  readonly random: RandomSource;
  /** The lease's duration, in milliseconds. */
  readonly durationMs: number;
  readonly ids: number;
  /** A factor for the pauses between faults: a task that joins gets shards some seconds later. */
  readonly pace: number;
  /** Options and environment with which an operator's command reaches the store. */
  readonly operator: { readonly options: readonly string[]; readonly env: Readonly<Record<string, string>> };
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** The pause between two faults, in milliseconds. */
const EVERY_MS = { least: 100, most: 500 };
/** How likely it is that a fault hits a task that acts, and not any one. */
const ACTING_SHARE = 0.85;
/**
 * How likely it is that, in place of a fault of one task, an operator evicts somebody, or the store is away
 * for all.
 */
const EVICTION_SHARE = 0.05;
const OUTAGE_SHARE = 0.012;

/**
 * Harms the tasks, one fault after the other, several at a time, until the signal aborts, and resolves when
 * the last one has been ended. What is drawn depends on the seed only; what it finds to hit does not.
 */
export async function makeTrouble(
  options: TroubleOptions,
  record: (fault: FaultRecord) => void,
): Promise<void> {
  const { random, signal, pace } = options;
  const ongoing = new Set<Promise<void>>();
  const busy = new Map<Slot, Set<FaultKind['of']>>(options.slots.map((slot) => [slot, new Set()]));
  const run = (work: Promise<void>) => {
    ongoing.add(work);
    void work.finally(() => ongoing.delete(work));
  };
  while (!signal.aborted) {
    await pause(pace * (EVERY_MS.least + random.next() * (EVERY_MS.most - EVERY_MS.least)), signal);
    if (signal.aborted) break;
    const draw = random.next();
    if (draw < EVICTION_SHARE) run(evict(options, busy, record));
    else if (draw < EVICTION_SHARE + OUTAGE_SHARE) run(outage(options, busy, record));
    else run(hitOne(options, busy, record));
  }
  await Promise.all(ongoing);
}

type Busy = Map<Slot, Set<FaultKind['of']>>;

async function hitOne(
  { slots, random, durationMs, signal }: TroubleOptions,
  busy: Busy,
  record: (fault: FaultRecord) => void,
): Promise<void> {
  const acting = slots.filter((slot) => slot.task?.acting !== undefined);
  const among = acting.length > 0 && random.next() < ACTING_SHARE ? acting : slots;
  const slot = among[Math.floor(random.next() * among.length)];
  const task = slot?.task;
  const taken = slot && busy.get(slot);
  if (!slot || !task || !taken) return;
  const fault = drawFault(slot.spec, taken, random);
  // Before its command runs there is no child to be harmed, and no guard.
  if (!fault || (/child|guard/.test(fault.name) && !task.child)) return;
  const [least, most] = fault.lasts ?? [0, 0];
  const lengthMs = Math.round((least + random.next() * (most - least)) * durationMs);
  taken.add(fault.of);
  const { end, happened } = fault.begin({ proxy: slot.proxy, task }, random);
  const note = () =>
    record({
      name: fault.name,
      at: monotonicMicros(),
      lengthMs,
      slot: slot.spec.number,
      taskId: task.acting?.taskId,
      pid: task.main.pid,
    });
  if (happened) happened.then(note, () => undefined);
  else note();
  await pause(lengthMs, signal);
  end();
  taken.delete(fault.of);
}

/** The store is out of reach for everybody. */
async function outage(
  { slots, random, durationMs, signal }: TroubleOptions,
  busy: Busy,
  record: (fault: FaultRecord) => void,
): Promise<void> {
  const free = slots.filter((slot) => !busy.get(slot)?.has('network'));
  const lengthMs = Math.round((0.3 + random.next() * 1.7) * durationMs);
  for (const slot of free) {
    busy.get(slot)?.add('network');
    slot.proxy.cut();
  }
  record({ name: 'outage for all', at: monotonicMicros(), lengthMs, slot: undefined, taskId: undefined });
  await pause(lengthMs, signal);
  for (const slot of free) {
    slot.proxy.heal();
    busy.get(slot)?.delete('network');
  }
}

/** An operator takes an id away from its holder: from one that seems to be stuck, where there is one. */
async function evict(
  { slots, random, ids, operator }: TroubleOptions,
  busy: Busy,
  record: (fault: FaultRecord) => void,
): Promise<void> {
  const stuck = slots
    .filter((slot) => busy.get(slot)?.size)
    .flatMap((slot) => slot.task?.acting?.nodeId ?? []);
  const held = slots.flatMap((slot) => slot.task?.acting?.nodeId ?? []);
  const any = Math.floor(random.next() * ids);
  const id = stuck[Math.floor(random.next() * stuck.length)] ?? held[any % held.length] ?? -1;
  if (id < 0) return;
  const command = runCli(['release', String(id), '--force', ...operator.options], { env: operator.env });
  await command.exit;
  const [, taskId] = /taken away from task (\S+?):/.exec(command.stdout()) ?? [];
  if (taskId !== undefined)
    record({ name: 'forced release', at: monotonicMicros(), lengthMs: 0, slot: undefined, taskId });
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  // An actor that sleeps when the trouble is over goes on, to end its fault.
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
