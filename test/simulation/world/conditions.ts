import type { WantedSettings } from '../../../src/core/lease/model/cluster-config.js';
import { leastGraceMs } from '../../../src/core/lease/model/lease-state.js';
import { Dice } from './dice.js';
import { drawScales, GROWN_FROM } from './scale-plan.js';
import { drawTunes, type WantedTimes } from './tune-plan.js';

/** What may go wrong between a task and the store, one request at a time. */
export const NETWORK_FAULTS = [
  /** It never arrives. */
  'request-lost',
  /** It is carried out, and its reply is lost. */
  'response-lost',
  /** It takes up to some seconds, there or back. */
  'slow',
  /** It arrives long after its sender gave up. */
  'delayed',
  /** It is answered 500 or 503, and not carried out. */
  'error',
  /** It is carried out, and answered 500 or 503. */
  'error-applied',
  /** It is answered 403, and certainly not carried out. */
  'refused',
  /** A listing is of some seconds ago. */
  'stale-list',
  /** A write is answered 409: a concurrent one is in the way. */
  'conflict-409',
  /** It is delivered twice. */
  'duplicate',
] as const;

/** What may happen to processes, machines and the store, at some time. */
export const PLANNED_FAULTS = [
  /** A process is stopped for up to 10 lease durations; its child goes on. */
  'pause',
  /** A machine, with everything on it, stands still for as long. */
  'freeze',
  /** A process is killed; for `run`, its child is left to its guard. */
  'crash',
  /** An orchestrator that has lost sight of a task starts another one in its place; the first goes on. */
  'twin',
  /** An operator releases an id by force. */
  'forced-release',
  /** Every task is asked to end, and its successor begins in the same instant as all others. */
  'rollout',
  /** No task reaches the store. */
  'outage',
  /** One machine does not reach the store. */
  'partition',
  /** A wall clock is set. */
  'clock-step',
  /**
   * An operator grows or shrinks the cluster, some of them over the bound of what its unique ids have room
   * for, and is killed at it now and then.
   */
  'scale',
  /** An operator gives the cluster another duration and grace, and is killed at it now and then. */
  'tune',
] as const;

/** What is wrong from the beginning on. */
export const STANDING_FAULTS = [
  /** Wall clocks are up to 24 h apart. */
  'clock-offset',
  /** Wall clocks run up to 500 ppm fast or slow, monotonic ones and the store's up to 200. */
  'clock-drift',
  /** The store's servers do not agree on the time, within the grace. */
  'store-skew',
  /** Tasks have settings of their own that differ from the cluster's. */
  'settings-differ',
  /** A restarted task has the task id of the one before. */
  'same-task-id',
  /** Tasks release their lease and begin again. */
  'release',
] as const;

/** With shards only: their map is deleted or overwritten, and operators repair it. */
export const MAP_DAMAGED = 'map-damaged';
/** With shards only: the stream of events to a sidecar's program breaks, which works on. */
export const PROGRAM_GONE = 'program-gone';
/** What happens with shards only. */
export type ShardFault = typeof MAP_DAMAGED | typeof PROGRAM_GONE;
/** Of a store that tells its epoch: it goes back to an earlier state. */
export const STORE_RESTORED = 'store-restored';

export type NetworkFault = (typeof NETWORK_FAULTS)[number];
export type PlannedFaultKind = (typeof PLANNED_FAULTS)[number];
export type FaultKind = NetworkFault | PlannedFaultKind | (typeof STANDING_FAULTS)[number];
/** What happens in the world of some engine. */
export type WorldFault = FaultKind | ShardFault | typeof STORE_RESTORED;
export const FAULT_KINDS: readonly FaultKind[] = [...NETWORK_FAULTS, ...PLANNED_FAULTS, ...STANDING_FAULTS];

/** Something that happens at a time. Milliseconds. */
export interface PlannedFault {
  readonly kind: PlannedFaultKind;
  readonly at: number;
  readonly lastsMs: number;
  /** The machine that it happens to, the node id, or the operator. */
  readonly target: number;
  /** How many node ids an operator wants the cluster to have; undefined for everything else. */
  readonly size?: number;
  /** Which times an operator wants the cluster to have; undefined for everything else. */
  readonly times?: WantedTimes;
  /** What else there is to be drawn, 0 … 1. */
  readonly chance: number;
}

/** One machine and the task on it. */
export interface HostConditions {
  readonly startsAt: number;
  readonly wallOffset: number;
  readonly wallDrift: number;
  readonly monotonicStart: number;
  readonly monotonicDrift: number;
  /** A program that asks `isValid()`, or a command under `nodelease run`. */
  readonly mode: 'library' | 'run';
  /** For `run`: a command that ignores SIGTERM. */
  readonly stubborn: boolean;
  /**
   * What becomes of the work when the node id is to be given up: it ends after this many milliseconds, or
   * goes on as before.
   */
  readonly retireAfterMs: number | undefined;
  readonly wanted: WantedSettings;
}

/** Everything that one seed decides before the first event. Milliseconds, true time from 0. */
export interface Conditions {
  readonly seed: number;
  readonly ids: number;
  /** At first. */
  readonly durationMs: number;
  readonly graceMs: number;
  /** The longest duration, and the longest grace, that there are in this seed. */
  readonly longestMs: number;
  readonly mostGraceMs: number;
  readonly pollMs: number;
  /** How many objects one request of a listing shows; undefined for all. */
  readonly pageObjects: number | undefined;
  /** Whether `nodelease init` has been called, or the tasks find nothing. */
  readonly initialised: boolean;
  /**
   * Whether the cluster grows to ids from {@link GROWN_FROM} on. All between those and the ones that there
   * are at first are others'.
   */
  readonly widens: boolean;
  readonly sameTaskId: boolean;
  readonly releases: boolean;
  /** How long a task works before it ends by itself, at the least and at the most. */
  readonly tenureMs: readonly [number, number];
  readonly latencyMs: readonly [number, number];
  /** How late timers may be. */
  readonly latenessMs: number;
  /**
   * Whether a process that goes on hears what was sent to it before it sees that its timers have run out. Not
   * where the faults are chosen.
   */
  readonly hearsFirst: boolean;
  readonly rates: Readonly<Record<NetworkFault, number>>;
  readonly hosts: readonly HostConditions[];
  readonly plan: readonly PlannedFault[];
  /** What is wrong from the beginning on. */
  readonly standing: readonly FaultKind[];
  /** What the store's times are cut to: whole seconds as on S3, or nothing, which leaves no slack at all. */
  readonly timeStepMs: number;
  readonly storeDrift: number;
  /** How far each of the store's servers is off. */
  readonly storeOffsets: readonly number[];
  /** From then on there are no faults. */
  readonly quietAt: number;
  /** By then every id must be held, where there are tasks enough. */
  readonly endAt: number;
}

export interface SimulationSize {
  /** @default 8 */
  readonly hosts?: number;
  /** @default 4 */
  readonly ids?: number;
  /** Virtual time in milliseconds. @default 75000 */
  readonly spanMs?: number;
}

const DAY_MS = 86_400_000;
/** More of them would need 9 bits from the beginning on. */
const MOST_GROWING_IDS = 240;
/** In a world of this many hosts the cluster always grows and shrinks. */
const MANY_HOSTS = 32;
/** When the simulated world begins, by a right clock. */
export const EPOCH_MS = 1_790_000_000_000;

/**
 * How much longer the first start of a cluster may take, in milliseconds: until a task finds that the one
 * that probed is gone (30 s and an eighth at most), and has probed itself (some 20 s where a request takes
 * 300 ms).
 */
const FIRST_START_MS = 60_000;
/**
 * How much longer a seed with a first start is watched, in milliseconds: it has as much time for faults as
 * any other, but for 20 s.
 */
const FIRST_START_EXTRA_MS = FIRST_START_MS - 20_000;
/**
 * How long a task may scan a listing of several pages, in milliseconds for each page: it loses races for what
 * it finds, and begins again. A request takes 300 ms at most, and a scan of all pages finds the last free ids
 * of a crowded cluster.
 */
const SCANS_PAGE_MS = 4 * 300;
/** How much longer a seed is watched in which the times change, in milliseconds. */
const TUNED_EXTRA_MS = 60_000;
/** How far the servers of a store may be apart where somebody has to prove it first, in milliseconds. */
const PROVABLE_SKEW_MS = 500;

/**
 * How long after the last fault a free id may stay without a task that waits for it: until what faults left
 * behind has expired (a duration and a grace), until a waiting task looks again (as long once more, and a
 * second), and some requests with their time-outs.
 */
export function livenessBoundMs(durationMs: number, graceMs: number): number {
  return 2 * (durationMs + graceMs) + 1_000 + 8_000;
}

/**
 * How much longer a shard may be without an owner that runs it, in milliseconds: its former owner's lease has
 * to expire, a member has to look, and another to read the map, each in one of a few renewal periods.
 */
export function shardsBoundMs({
  longestMs,
  mostGraceMs,
}: Pick<Conditions, 'longestMs' | 'mostGraceMs'>): number {
  return 3 * longestMs + mostGraceMs + 10_000;
}

/**
 * Draws what one seed is about.
 *
 * @param only faults of these kinds and no others; all when undefined
 */
export function drawConditions(
  seed: number,
  size: SimulationSize = {},
  only?: ReadonlySet<FaultKind>,
): Conditions {
  const { hosts: hostCount = 8, ids = 4, spanMs = 75_000 } = size;
  const dice = new Dice(seed).fork(1);
  const on = (kind: FaultKind, probability: number) =>
    dice.chance(probability) && (only === undefined || only.has(kind));

  // Whole seconds hide up to one second of slack, since that is how the store reports an age: just below them
  // there is none. Short ones leave room for pauses of ten durations.
  const durationMs =
    (dice.chance(0.08) ? 3_000 : dice.pick([6_000, 10_000, 15_000, 15_000, 15_000])) -
    dice.pick([0, 1, 1, 500]);
  // Sometimes as small a grace as is allowed, sometimes one for a store whose servers are seconds apart.
  const graceMs = dice.pick([leastGraceMs(durationMs), 1_000, 1_000 - leastGraceMs(durationMs), 3_000]);
  const pollMs = dice.chance(0.05) ? 1_200 : dice.pick([5_000, 8_000, 8_000]);
  const tunes =
    only === undefined || only.has('tune') ? drawTunes(dice.fork(13), { durationMs, graceMs }) : [];
  const longestMs = Math.max(durationMs, ...tunes.map(({ times }) => times.durationMs));
  const mostGraceMs = Math.max(graceMs, ...tunes.map(({ times }) => times.graceMs ?? 0));
  // A store that is always slower than a short lease's requests may take loses leases without any fault: both
  // ways must fit in.
  const shortestMs = Math.min(durationMs, ...tunes.map(({ times }) => times.durationMs));
  const slowestMs = Math.min(300, shortestMs / 18);
  const drawnInitialised = dice.chance(0.98);
  const rates = Object.fromEntries(
    NETWORK_FAULTS.map((kind) => [kind, on(kind, 0.35) ? dice.magnitude(0.003, 0.12) : 0]),
  );
  const drifting = on('clock-drift', 0.7);
  const drift = (most: number) => (drifting ? dice.pick([-most, most, dice.between(-most, most)]) : 0);
  // What drift leaves of the grace is for the store's own servers to disagree.
  const skewMs = on('store-skew', 0.5) ? Math.max(0, graceMs - 5e-4 * longestMs) : 0;
  // A probe refuses a store whose servers are further apart than that, so that no task would ever begin
  // there.
  const initialised = drawnInitialised || skewMs > PROVABLE_SKEW_MS;
  const scaling = dice.fork(5).next();
  const scales = (scaling < 0.35 || hostCount >= MANY_HOSTS) && (only === undefined || only.has('scale'));
  const widens = scales && scaling < 0.1 && initialised && ids <= MOST_GROWING_IDS;
  const pageObjects = drawPage(dice.fork(9), widens ? GROWN_FROM : ids);
  // A cluster may grow to as many ids as there are hosts.
  const scanningMs =
    pageObjects === undefined ? 0 : Math.ceil(Math.max(ids, hostCount) / pageObjects) * SCANS_PAGE_MS;
  const tunedMs = tunes.length > 0 ? TUNED_EXTRA_MS : 0;
  const endAt = spanMs + scanningMs + tunedMs + (initialised ? 0 : FIRST_START_EXTRA_MS);
  const quietAt =
    endAt - livenessBoundMs(longestMs, mostGraceMs) - scanningMs - (initialised ? 0 : FIRST_START_MS);
  const offsets = on('clock-offset', 0.7);
  const differ = on('settings-differ', 0.3) && initialised;
  const sameTaskId = on('same-task-id', 0.4);
  const burst = dice.chance(0.5);
  const standing: [FaultKind, boolean][] = [
    ['clock-offset', offsets],
    ['clock-drift', drifting],
    ['store-skew', skewMs > 0],
    ['settings-differ', differ],
    ['same-task-id', sameTaskId],
  ];

  const hosts = Array.from({ length: hostCount }, (_, index): HostConditions => {
    const retiring = dice.fork(7, index);
    const mine = differ && dice.chance(0.5);
    return {
      startsAt: burst ? 0 : dice.between(0, 8_000),
      wallOffset: offsets ? dice.between(-DAY_MS, DAY_MS) : 0,
      wallDrift: drift(500e-6),
      monotonicStart: dice.between(1_000, 1e9),
      monotonicDrift: drift(200e-6),
      mode: dice.chance(0.5) ? 'run' : 'library',
      stubborn: dice.chance(0.3),
      retireAfterMs: retiring.chance(0.4) ? undefined : retiring.magnitude(1, 20_000),
      wanted: mine
        ? {
            nodes: 1 + dice.below(8),
            durationMs: dice.pick([1_000, 2_000, Math.floor(durationMs / 2), 60_000]),
            graceMs: dice.pick([100, 2_000]),
          }
        : { nodes: ids, durationMs, graceMs },
    };
  });
  return {
    seed,
    ids,
    durationMs,
    graceMs,
    longestMs,
    mostGraceMs,
    pollMs,
    pageObjects,
    initialised,
    widens,
    sameTaskId,
    releases: on('release', 0.8),
    tenureMs: dice.pick([
      [500, 5_000],
      [2_000, 30_000],
      [10_000, 60_000],
      [10_000, 60_000],
    ]),
    latencyMs: dice.pick([
      [1, 5],
      [5, 60],
      [20, slowestMs],
    ]),
    latenessMs: dice.pick([0, 2, 50]),
    hearsFirst: only === undefined && dice.fork(8).chance(0.2),
    rates: rates as Record<NetworkFault, number>,
    hosts,
    plan: [
      ...drawPlan(dice.fork(2), on, { hostCount, ids, durationMs, quietAt }),
      ...(scales ? drawScales(dice.fork(6), { ids, widens, quietAt }) : []),
      ...tunes.map((tune) => ({ ...tune, at: tune.at * quietAt })),
    ],
    standing: standing.filter(([, there]) => there).map(([kind]) => kind),
    timeStepMs: dice.pick([1_000, 1_000, 0]),
    storeDrift: drift(200e-6),
    storeOffsets: [0, dice.between(0, skewMs), skewMs],
    quietAt,
    endAt,
  };
}

/** For half of the worlds: from a few of a listing's rows at once to about all of them. */
function drawPage(dice: Dice, rows: number): number | undefined {
  return dice.chance(0.5) ? undefined : 2 + Math.ceil(rows / 8) + dice.below(rows);
}

/** What may happen at any time, and again. */
type AnyTime = Exclude<PlannedFaultKind, 'scale' | 'tune'>;

function drawPlan(
  dice: Dice,
  on: (kind: FaultKind, probability: number) => boolean,
  {
    hostCount,
    ids,
    durationMs,
    quietAt,
  }: { hostCount: number; ids: number; durationMs: number; quietAt: number },
): PlannedFault[] {
  const most: Record<AnyTime, number> = {
    pause: 8,
    freeze: 4,
    crash: 8,
    twin: 2,
    'forced-release': 4,
    rollout: 2,
    outage: 2,
    partition: 5,
    'clock-step': 4,
  };
  const longest: Record<AnyTime, number> = {
    pause: 10 * durationMs,
    freeze: 10 * durationMs,
    crash: 1,
    twin: 1,
    'forced-release': 1,
    rollout: 1,
    outage: 2 * durationMs,
    partition: 3 * durationMs,
    'clock-step': DAY_MS,
  };
  const plan = PLANNED_FAULTS.flatMap((kind) => {
    if (kind === 'scale' || kind === 'tune') return [];
    if (!on(kind, kind === 'rollout' ? 0.25 : 0.35)) return [];
    return Array.from({ length: 1 + dice.below(most[kind]) }, (): PlannedFault => {
      const at = dice.between(0, quietAt);
      const lastsMs = dice.magnitude(Math.min(50, longest[kind]), longest[kind]);
      return {
        kind,
        at,
        lastsMs: kind === 'clock-step' ? lastsMs : Math.min(lastsMs, quietAt - at),
        target: dice.below(kind === 'forced-release' ? ids : hostCount),
        chance: dice.next(),
      };
    });
  });
  return plan.sort((a, b) => a.at - b.at);
}
