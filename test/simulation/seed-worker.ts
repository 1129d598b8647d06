// The thread that simulates: it gets its settings at its start, and then orders. A planted tree has a copy of
// its own of this file.

import { parentPort, workerData } from 'node:worker_threads';
import type { Explanation } from '../model/explain.js';
import type { MapExplanation } from '../model/explain-repair.js';
import type { Engine } from './engine.js';
import { ENGINES, RECIPES } from './engines.js';
import { Pulse, RunControl } from './seeds/run-control.js';
import type {
  Answer,
  ChunkResult,
  Order,
  SeedHistory,
  ShrunkViolation,
  ThreadSettings,
  ViolatedSeed,
} from './seeds/seed-messages.js';
import { shrink } from './seeds/shrink.js';
import { addSeed, emptyTally } from './seeds/tally.js';
import { type SimulationOptions, simulate } from './simulation.js';
import type { FaultKind } from './world/conditions.js';
import { useQuickAbort } from './world/quick-abort.js';
import { simulateRecipes } from './zookeeper/recipes-simulation.js';

// Nothing in a simulation reads stack traces, and the many errors that it is made of would spend most of
// their time on them.
Error.stackTraceLimit = 0;
useQuickAbort();

const settings = workerData as ThreadSettings;
const control = new RunControl(settings.control);
const pulse = new Pulse(settings.pulse);
const only = settings.only && new Set(settings.only);
const { size } = settings;
/** The name under which a host's part in a run can be left out. */
const HOST = /^host \d+ takes part$/;

const port = parentPort;
if (port === null) throw new Error('seed-worker is the code of a worker thread');
const answer = (message: Answer) => port.postMessage(message);
// What a simulation throws ends the thread, and the sender of the order is notified.
port.on('message', async (order: Order) =>
  answer(order.kind === 'run' ? await run(order) : await shrunk(order)),
);
answer({ kind: 'ready' });

function engineCalled(name: string): Engine {
  const found = ENGINES[name];
  if (found === undefined) throw new Error(`there is no engine ${name}`);
  return found;
}

/** Undefined for the recipes. */
const engine = settings.engine === RECIPES ? undefined : engineCalled(settings.engine);

function simulated(seed: number, more: Pick<SimulationOptions, 'allowed' | 'recording'>) {
  pulse.beat(seed);
  if (engine === undefined) return simulateRecipes(seed, { only, ...more });
  const { traces: tracing } = settings;
  return simulate(seed, { size, only: only as Set<FaultKind> | undefined, engine, tracing, ...more });
}

async function run({ first, count }: { first: number; count: number }): Promise<ChunkResult> {
  const tally = emptyTally(settings.engine);
  const histories: SeedHistory[] = [];
  let violated: ViolatedSeed | undefined;
  for (let seed = first; seed < first + count && control.wants(seed - settings.from); seed += 1) {
    const result = await simulated(seed, { recording: settings.recording });
    const { violation, counts, history } = result;
    addSeed(
      tally,
      { ...counts, traced: traced('explanation' in result ? result.explanation : undefined) },
      violation !== undefined,
    );
    if (settings.recording) histories.push({ seed, lines: history });
    if (violation === undefined) continue;
    violated = { seed, violation };
    control.limitTo(seed - settings.from);
  }
  return { kind: 'ran', tally, violated, histories };
}

/** What the model has seen of a seed, as the report calls it. */
function traced(explanation: Explanation | MapExplanation | undefined): Readonly<Record<string, number>> {
  if (!settings.traces) return {};
  if (explanation === undefined) return { 'seeds left out: the store goes back': 1 };
  const left = (of: string) =>
    Object.fromEntries(
      Object.entries(explanation.leftOut).map(([what, count]) => [`${of} left: ${what}`, count]),
    );
  if ('maps' in explanation)
    return {
      'maps of shards with a path': explanation.maps,
      'acts on shards with a path': explanation.acts,
      'repairs with a path': explanation.repairs,
      ...left('maps of shards'),
    };
  return {
    'leases with a path': explanation.objects,
    'events with a path': explanation.events,
    ...left('leases'),
  };
}

async function shrunk({ seed, maxRuns }: { seed: number; maxRuns: number }): Promise<ShrunkViolation> {
  const whole = await simulated(seed, {});
  const attempt = async (names: readonly string[]) => {
    const { violation, happened } = await simulated(seed, { allowed: new Set(names) });
    return violation?.invariant === whole.violation?.invariant ? happened : undefined;
  };
  const isHost = (name: string) => HOST.test(name);
  const isFault = (name: string) => !isHost(name);
  // A host takes its faults along, so the hosts go first.
  const groups = [isHost, isFault];
  const { names, runs, minimal } = await shrink({
    names: whole.happened,
    attempt,
    maxRuns,
    groups,
    stopped: () => control.stopped,
  });
  const { violation, history } = await simulated(seed, { allowed: new Set(names), recording: true });
  if (violation === undefined) throw new Error(`seed ${seed} does not fail again`);
  return {
    kind: 'shrunk',
    violation,
    hosts: names.filter(isHost),
    faults: names.filter(isFault),
    of: { hosts: whole.happened.filter(isHost).length, faults: whole.happened.filter(isFault).length },
    runs,
    minimal,
    history,
  };
}
