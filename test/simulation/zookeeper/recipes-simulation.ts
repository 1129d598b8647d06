import type { PlannedFault, ScenarioName } from './conditions.js';
import { drawRecipeConditions, settleMs, turnBoundMs } from './conditions.js';
import { MachineHost, type Run } from './machine-host.js';
import { BarrierScenario } from './tasks/barrier-task.js';
import { CounterScenario } from './tasks/counter-task.js';
import { DoubleBarrierScenario } from './tasks/double-barrier-task.js';
import { LockScenario } from './tasks/lock-task.js';
import { QueueScenario } from './tasks/queue-task.js';
import type { Scenario } from './tasks/scenario.js';
import { SharedDataScenario } from './tasks/shared-data-task.js';
import { TransactionScenario } from './tasks/transaction-task.js';
import { type RecipeCounts, type RecipeViolation, RecipeWorld, type RecipeWorldOptions } from './world.js';

/** How often it is looked whether all have had their turn, in milliseconds. */
const LOOK_MS = 250;

export interface RecipeSimulationOptions extends RecipeWorldOptions {
  /** Faults of these kinds and no others. @default all */
  readonly only?: ReadonlySet<string> | undefined;
  /** @default the one that the seed draws */
  readonly scenario?: ScenarioName | undefined;
}

/** What became of one seed. */
export interface RecipeSeedResult {
  readonly seed: number;
  readonly violation: RecipeViolation | undefined;
  readonly counts: RecipeCounts;
  readonly happened: readonly string[];
  readonly history: readonly string[];
}

/**
 * Runs one seed to its end or to its first violation. The same seed and options give the same result, to the
 * byte.
 */
export async function simulateRecipes(
  seed: number,
  options: RecipeSimulationOptions = {},
): Promise<RecipeSeedResult> {
  const conditions = drawRecipeConditions(seed, options.only, options.scenario);
  const { machines, quietAt, grantedMs, endAt } = conditions;
  const world = new RecipeWorld(conditions, options);
  const { scheduler } = world;
  const scenario: Scenario = scenarioOf(world);
  const hosts = machines.map((_, index) => new MachineHost(world, index, (run) => scenario.live(run)));
  const started = hosts.filter(({ index }) => world.takesPart(`host ${index} takes part`));
  for (const host of started)
    scheduler.at(machines[host.index]?.startsAt ?? 0, undefined, () => host.start());
  for (const [number, fault] of conditions.plan.entries()) {
    const name = `${number} ${fault.kind} of ${fault.target} for ${Math.round(fault.lastsMs)} ms`;
    scheduler.at(fault.at, undefined, () => befall(fault, name, world, started, scenario));
  }
  const turnsAt = quietAt + turnBoundMs(machines.length, grantedMs);
  const look = () => {
    const waiting = scenario.waiting(started.flatMap(({ run }) => run ?? []));
    if (waiting === undefined) {
      world.stop();
      scheduler.at(scheduler.now + settleMs(grantedMs), undefined, () => world.end());
    } else if (scheduler.now >= turnsAt) world.fail('liveness', waiting);
    else scheduler.at(scheduler.now + LOOK_MS, undefined, look);
  };
  scheduler.at(quietAt + LOOK_MS, undefined, look);
  const byProcess = new Map<unknown, Run>();
  await scheduler.run(endAt, (actor) => {
    let run = byProcess.get(actor);
    if (run === undefined) {
      for (const host of started) if (host.run) byProcess.set(host.run.process, host.run);
      run = byProcess.get(actor);
    }
    if (run) scenario.afterStep?.(run);
    return world.violation === undefined && !world.ended;
  });
  if (world.violation === undefined) scenario.atEnd();
  const { violation, counts, happened, history } = world;
  if (violation !== undefined && world.recording)
    world.note('VIOLATION', `${violation.invariant}: ${violation.text}`);
  return { seed, violation, counts, happened, history };
}

function scenarioOf(world: RecipeWorld): Scenario {
  const { scenario } = world.conditions;
  if (scenario === 'barrier') return new BarrierScenario(world);
  if (scenario === 'double-barrier') return new DoubleBarrierScenario(world);
  if (scenario === 'counter') return new CounterScenario(world);
  if (scenario === 'queue' || scenario === 'locked-queue')
    return new QueueScenario(world, scenario === 'locked-queue');
  if (scenario === 'shared-data') return new SharedDataScenario(world);
  if (scenario === 'transaction') return new TransactionScenario(world);
  return new LockScenario(world);
}

function befall(
  fault: PlannedFault,
  name: string,
  world: RecipeWorld,
  hosts: readonly MachineHost[],
  scenario: Scenario,
): void {
  const { kind, target, lastsMs, chance } = fault;
  if (!world.happens(kind, name)) return;
  const host = hosts.find(({ index }) => index === target);
  const { ensemble, conditions } = world;
  const acts: Readonly<Record<PlannedFault['kind'], () => void>> = {
    pause: () => host?.pause(lastsMs),
    crash: () => host?.crash(lastsMs),
    partition: () =>
      host?.cutOff(lastsMs, chance < 0.5 ? undefined : Math.floor(2 * (chance - 0.5) * conditions.servers)),
    reset: () => host?.reset(chance < 0.5),
    close: () => host?.close(),
    'server-cut': () => ensemble.cut(target, lastsMs, chance < 0.3),
    'server-lag': () => ensemble.lag(target, lastsMs),
    'server-stall': () => ensemble.stall(target, lastsMs),
    election: () => ensemble.elect(target, lastsMs),
    containers: () => {
      for (const path of scenario.containers) ensemble.leader.decideOwn([{ type: 'remove', path }]);
    },
  };
  acts[kind]();
}
