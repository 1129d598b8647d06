import { evictHolder } from '../../src/core/lease/operate/evict.js';
import { StoreSession } from '../../src/core/lease/session/store-session.js';
import { type Explanation, explain } from '../model/explain.js';
import { explainRepair, type MapExplanation } from '../model/explain-repair.js';
import { explainShards } from '../model/explain-shards.js';
import type { Violation } from './checks/invariants.js';
import { type Engine, shippedEngine } from './engine.js';
import {
  drawConditions,
  EPOCH_MS,
  type FaultKind,
  MAP_DAMAGED,
  type PlannedFault,
  type SimulationSize,
  STORE_RESTORED,
  shardsBoundMs,
} from './world/conditions.js';
import { Host } from './world/host.js';
import { LeaseRecorder } from './world/lease-recorder.js';
import { Machine } from './world/machine.js';
import { planLastRepairs, planMapDamage } from './world/map-damage.js';
import { drawRestores, planRestores } from './world/restores.js';
import { Scaling } from './world/scaling.js';
import { ShardRecorder } from './world/shard-recorder.js';
import { SimulatedProcess } from './world/simulated-process.js';
import { SimulatedStore } from './world/simulated-store.js';
import { Tuning } from './world/tuning.js';
import { type Counts, World } from './world/world.js';

export interface SimulationOptions {
  /** @default 8 hosts, 4 ids, 75 s */
  readonly size?: SimulationSize;
  /** Faults of these kinds and no others. @default all */
  readonly only?: ReadonlySet<FaultKind> | undefined;
  /** The names of the faults that may happen, from an earlier run's `happened`. @default all */
  readonly allowed?: ReadonlySet<string> | undefined;
  /** Whether to keep the history. @default false */
  readonly recording?: boolean;
  /** Whether to look for a path of the model. @default false */
  readonly tracing?: boolean;
  /** @default the shipped one */
  readonly engine?: Engine;
  /** Gets the world before anything happens in it. */
  readonly onWorld?: (world: World) => void;
}

/** What became of one seed. */
export interface SeedResult {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly counts: Counts;
  /** The names of everything that happened and could have been left out. */
  readonly happened: readonly string[];
  /** What the model says; undefined unless it was asked for, and of leases in a store that goes back. */
  readonly explanation?: Explanation | MapExplanation | undefined;
  /** Empty unless it was asked for. */
  readonly history: readonly string[];
}

/**
 * How long after a thaw a command may still run whose lease ran out meanwhile, in milliseconds: its guard
 * needs a moment.
 */
const AFTER_THAW_MS = 10;

/** Between a task's last step and what stops it, in milliseconds. */
const JUST_AFTER_MS = 0.01;

/**
 * Runs one seed to its end or to its first violation. The same seed and options give the same result, to the
 * byte.
 */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<SeedResult> {
  const conditions = drawConditions(seed, options.size, options.only);
  const { allowed, recording = false, tracing, engine = shippedEngine } = options;
  const { observesAges = false, ownsShards = false, knowsEpochs = false } = engine;
  const only: ReadonlySet<string> | undefined = options.only;
  const restores = knowsEpochs && only?.has(STORE_RESTORED) !== false ? drawRestores(conditions) : [];
  const world = new World(conditions, { allowed, only, recording, observesAges, restores });
  const { scheduler, invariants } = world;
  // Work on shards reads leases for its own reasons, and the model knows no store that goes back.
  if (tracing && !ownsShards && restores.length === 0) world.recorder = new LeaseRecorder(world);
  if (tracing && ownsShards) invariants.shards.recorder = new ShardRecorder(world);
  options.onWorld?.(world);
  const hosts = conditions.hosts.map((host, index) => new Host(world, index, host, engine));
  const started = hosts.filter((host, index) => {
    const name = `host ${index} takes part`;
    if (options.allowed?.has(name) === false) return false;
    world.happened.push(name);
    scheduler.at(conditions.hosts[index]?.startsAt ?? 0, undefined, () => host.start());
    return true;
  });
  for (const [number, fault] of conditions.plan.entries()) {
    if (fault.kind === 'pause' || fault.kind === 'freeze')
      scheduler.at(fault.at, undefined, () =>
        started.find(({ index }) => index === fault.target)?.beforeStop(),
      );
    scheduler.at(fault.at + JUST_AFTER_MS, undefined, () =>
      befall(fault, `${number} ${described(fault)}`, world, started),
    );
  }
  planRestores(world, ownsShards);
  if (ownsShards && only?.has(MAP_DAMAGED) !== false) planMapDamage(world);
  const shardsMs = shardsBoundMs(conditions) + invariants.shards.faults.boundMs;
  // A new epoch has to settle, for the tasks that take ids, and for a repair of the map of shards, which waits besides.
  const settlesMs = restores.length > 0 ? conditions.longestMs + conditions.mostGraceMs : 0;
  const heldBy = conditions.endAt + settlesMs;
  if (ownsShards) planLastRepairs(world, heldBy);
  const endAt = heldBy + (ownsShards ? shardsMs + 2 * settlesMs : 0);
  await scheduler.run(endAt, (actor) => {
    if (actor instanceof SimulatedProcess) invariants.afterStep(actor);
    return invariants.violation === undefined;
  });
  if (invariants.violation === undefined) invariants.atEnd(started.length);
  const { recorder } = invariants.shards;
  const explanation = world.recorder
    ? explain(world.recorder)
    : recorder && explained(recorder, invariants.shards.count);
  const violation = invariants.violation ?? withoutPath(explanation);
  if (violation !== undefined && world.recording)
    world.note('VIOLATION', `${violation.invariant}: ${violation.text}`);
  return {
    seed,
    violation,
    counts: world.counts,
    happened: world.happened,
    explanation,
    history: world.history,
  };
}

/** Of both models. */
function explained({ traces, repairs }: ShardRecorder, shards: number): MapExplanation {
  const owners = explainShards(traces);
  const map = explainRepair(repairs.acts, shards);
  const failure = owners.failure ?? map.failure;
  return { ...owners, acts: owners.acts + map.acts, repairs: map.repairs, failure };
}

function withoutPath(explanation: Explanation | MapExplanation | undefined): Violation | undefined {
  return explanation?.failure && { invariant: 'path', ...explanation.failure };
}

function described({ kind, target, lastsMs, size, times }: PlannedFault): string {
  if (times !== undefined)
    return `${kind} to ${times.durationMs} ms, grace ${times.graceMs ?? 'as it is'}, by operator ${target}`;
  if (size !== undefined) return `${kind} to ${size} by operator ${target}`;
  return `${kind} of ${target} for ${Math.round(lastsMs)} ms`;
}

function befall(fault: PlannedFault, name: string, world: World, hosts: readonly Host[]): void {
  const { scheduler } = world;
  const { kind, target, lastsMs, chance } = fault;
  const host = hosts.find(({ index }) => index === target);
  if (!world.happens(kind, name)) return;
  const inTime = (ms: number, act: () => void) => void scheduler.at(scheduler.now + ms, undefined, act);
  switch (kind) {
    case 'pause':
      host?.pause(lastsMs);
      break;
    case 'freeze':
      host?.freeze(lastsMs);
      inTime(lastsMs, () => world.invariants.onThaw(AFTER_THAW_MS - 1));
      inTime(lastsMs + AFTER_THAW_MS, () => world.invariants.checkAll());
      break;
    case 'crash':
      host?.crash();
      break;
    case 'twin':
      host?.abandon();
      break;
    case 'forced-release':
      void evict(world, target, chance);
      break;
    case 'rollout':
      for (const one of hosts) one.retire();
      inTime(chance * 2_000, () => {
        for (const one of hosts) one.start();
      });
      break;
    case 'outage':
      world.outages += 1;
      inTime(lastsMs, () => {
        world.outages -= 1;
      });
      break;
    case 'partition':
      host?.cutOff(lastsMs);
      break;
    case 'scale':
      new Scaling(world, fault).call();
      break;
    case 'tune':
      if (fault.times) new Tuning(world, fault, fault.times).call();
      break;
    case 'clock-step':
      host?.machine.stepWall(chance < 0.5 ? -lastsMs : lastsMs);
      break;
  }
}

/** An operator's `nodelease release ID --force`, from a machine of its own. */
async function evict(world: World, nodeId: number, chance: number): Promise<void> {
  const { scheduler } = world;
  const process = new SimulatedProcess(scheduler, new Machine(EPOCH_MS, 0, 0, 0), () => 0);
  const name = `operator ${nodeId}.${Math.floor(chance * 1_000)}`;
  const store = new SimulatedStore({
    world,
    process,
    dice: world.dice.fork(4, chance * 2 ** 32),
    name,
    cutOff: () => false,
  });
  try {
    const eviction = await evictHolder(
      new StoreSession(world.opened(store, process), process.clock, 4_000),
      nodeId,
    );
    if (world.recording) world.note(name, `force-release: ${JSON.stringify(eviction)}`);
  } catch (error) {
    if (world.recording) world.note(name, `fails: ${String(error)}`);
  }
}
