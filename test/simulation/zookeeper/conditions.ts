import { Dice } from '../world/dice.js';
import type { EnsembleConditions } from './ensemble/ensemble.js';

/** What may happen to one request. */
export const REQUEST_FAULTS = [
  /** It never arrives, and the connection breaks. */
  'request-lost',
  /** It is carried out, the connection breaks, and the reply is lost. */
  'reply-lost',
  /** It waits on its way, and all that is sent behind it. */
  'slow',
] as const;

/** What may happen to tasks, servers and the network, at some time. */
export const PLANNED_FAULTS = [
  /** A process stands still. Its timers come late, and perhaps before the replies that wait in its socket. */
  'pause',
  /** A process is killed, and started again with a new session. */
  'crash',
  /**
   * A machine reaches no server, or not one of them. What is sent meanwhile arrives later, unless the
   * connection is given up.
   */
  'partition',
  /** A machine's connection breaks. */
  'reset',
  /** A follower does not reach its leader, and goes on answering reads until it notices. */
  'server-cut',
  /** A follower carries out nothing new for a while. */
  'server-lag',
  /** A server stands still. */
  'server-stall',
  /** The leader is lost, and another one is elected. */
  'election',
  /** The servers remove containers that are empty. */
  'containers',
  /** A task closes its client, and opens another. */
  'close',
] as const;

/** What is wrong from the beginning on: clocks run at different rates. */
export const STANDING_FAULTS = ['clock-rates'] as const;

export type RequestFault = (typeof REQUEST_FAULTS)[number];
export type RecipePlannedFault = (typeof PLANNED_FAULTS)[number];
export type RecipeFault = RequestFault | RecipePlannedFault | (typeof STANDING_FAULTS)[number];
export const RECIPE_FAULTS: readonly RecipeFault[] = [
  ...REQUEST_FAULTS,
  ...PLANNED_FAULTS,
  ...STANDING_FAULTS,
];

/** What the tasks of a seed do. */
export const SCENARIOS = [
  'lock',
  'read-write',
  'semaphore',
  'election',
  'double-barrier',
  'counter',
  'queue',
  'locked-queue',
  'transaction',
] as const;
export type ScenarioName = (typeof SCENARIOS)[number] | 'barrier' | 'shared-data';

/** Something that happens at a time. Milliseconds. */
export interface PlannedFault {
  readonly kind: RecipePlannedFault;
  readonly at: number;
  readonly lastsMs: number;
  /** The task's number, or the server's. */
  readonly target: number;
  /** What else there is to be drawn, 0 … 1. */
  readonly chance: number;
}

export interface MachineConditions {
  readonly startsAt: number;
  readonly monotonicStart: number;
  /** How much faster than true time its clocks run, as a share. */
  readonly rate: number;
}

/** Everything that one seed decides before the first event. Milliseconds, true time from 0. */
export interface RecipeConditions extends EnsembleConditions {
  readonly seed: number;
  readonly scenario: ScenarioName;
  readonly machines: readonly MachineConditions[];
  /** What clients ask for, and what they are granted. */
  readonly sessionTimeoutMs: number;
  readonly grantedMs: number;
  readonly latencyMs: readonly [number, number];
  readonly peerLatencyMs: readonly [number, number];
  readonly applyLagMs: readonly [number, number];
  /** How late timers may be. */
  readonly latenessMs: number;
  readonly seesFirst: 'replies' | 'timers' | undefined;
  readonly rates: Readonly<Record<RequestFault, number>>;
  readonly slowMs: number;
  readonly plan: readonly PlannedFault[];
  readonly standing: readonly RecipeFault[];
  /** From then on there are no faults. */
  readonly quietAt: number;
  /** By then every waiting task must have had its turn. */
  readonly endAt: number;
}

const TICKS_MS = [500, 1_000, 2_000] as const;
const SESSION_TICKS = [2, 2, 3, 4] as const;
/** How many percent a clock may be fast or slow. */
const MAX_RATE = 0.01;

/** How long after the end of all faults the last waiting task may wait for its turn, in milliseconds. */
export function turnBoundMs(tasks: number, grantedMs: number): number {
  // Sessions of tasks that died, one after the other at the worst; then each task's turn.
  return 4 * grantedMs + 20_000 + tasks * 4_000;
}

/**
 * How long after the end of all work its traces may stand, in milliseconds: sessions of tasks that died, and
 * deletions that are repeated.
 */
export function settleMs(grantedMs: number): number {
  return grantedMs + 6_000;
}

/**
 * Draws a seed's conditions.
 * @param only faults of these kinds and no others
 * @param wantedScenario instead of the one that the seed draws
 */
export function drawRecipeConditions(
  seed: number,
  only?: ReadonlySet<string>,
  wantedScenario?: ScenarioName,
): RecipeConditions {
  const dice = new Dice(seed).fork(71);
  const wanted = (kind: RecipeFault) => only === undefined || only.has(kind);
  const drawn = dice.pick(SCENARIOS);
  // Half of the counter's and of the transaction's seeds, so that the others stay what they are.
  const other = drawn === 'counter' && dice.fork(3).chance(0.5) ? 'barrier' : drawn;
  const scenario: ScenarioName =
    wantedScenario ?? (drawn === 'transaction' && dice.fork(4).chance(0.5) ? 'shared-data' : other);
  const servers = dice.pick([1, 3, 3, 3, 5]);
  const tickMs = dice.pick(TICKS_MS);
  const grantedMs = tickMs * dice.pick(SESSION_TICKS);
  const drawnTasks = 3 + dice.below(3);
  const tasks = scenario === 'shared-data' ? 5 : drawnTasks;
  const quietAt = Math.min(16_000, Math.max(6_000, 5 * grantedMs));
  const driftsApart = wanted('clock-rates') && dice.chance(0.5);
  const rate = () => (driftsApart ? dice.between(-MAX_RATE, MAX_RATE) : 0);
  const hasRate = (kind: RequestFault) =>
    (dice.chance(0.4) ? dice.magnitude(0.001, 0.08) : 0) * (wanted(kind) ? 1 : 0);
  const machines = Array.from({ length: tasks }, () => ({
    startsAt: dice.between(0, 1_000),
    monotonicStart: dice.between(0, 1e7),
    rate: rate(),
  }));
  // So slow that no heartbeat comes through in time is a network that promises nothing.
  const slowest = Math.min(dice.magnitude(1, 60), grantedMs / 60);
  const conditions = {
    ...{ seed, scenario, servers, tickMs, grantedMs, machines, quietAt },
    sessionTimeoutMs: grantedMs,
    syncLimitMs: tickMs * (2 + dice.below(4)),
    stepMs: dice.pick([0, tickMs]),
    leaderRate: 1 / (1 + rate()),
    latencyMs: [0.1, slowest] as const,
    // Both directions together well within what the reserve of a session's deadline covers.
    peerLatencyMs: [0.05, Math.min(dice.magnitude(0.1, 30), grantedMs / 40)] as const,
    applyLagMs: [0, Math.min(dice.pick([0, 1, 50, 400]), grantedMs / 20)] as const,
    latenessMs: dice.pick([0.1, 1, 20]),
    seesFirst: dice.pick([undefined, 'replies', 'timers', 'timers'] as const),
    rates: {
      'request-lost': hasRate('request-lost'),
      'reply-lost': hasRate('reply-lost'),
      slow: hasRate('slow'),
    },
    slowMs: dice.magnitude(50, 1.5 * grantedMs),
    standing: driftsApart ? (['clock-rates'] as const) : [],
    endAt: quietAt + turnBoundMs(tasks, grantedMs) + settleMs(grantedMs) + 1_000,
  };
  return { ...conditions, plan: drawPlan(dice.fork(2), conditions, wanted) };
}

function drawPlan(
  dice: Dice,
  {
    servers,
    machines,
    grantedMs,
    quietAt,
  }: Pick<RecipeConditions, 'servers' | 'machines' | 'grantedMs' | 'quietAt'>,
  wanted: (kind: RecipeFault) => boolean,
): PlannedFault[] {
  const plan: PlannedFault[] = [];
  for (const kind of PLANNED_FAULTS) {
    if (!dice.chance(0.5) || !wanted(kind)) continue;
    const isServer = kind.startsWith('server-') || kind === 'election';
    if (isServer && servers === 1 && kind !== 'server-stall') continue;
    const count = 1 + dice.below(isServer ? 2 : 4);
    for (let number = 0; number < count; number += 1) {
      const longestMs = Math.min(2.5 * grantedMs, 0.7 * quietAt);
      // The answers of a follower that is cut off are dangerous once the leader ends its sessions.
      const lastsMs = kind === 'server-cut' ? dice.between(20, longestMs) : dice.magnitude(20, longestMs);
      const at = dice.between(300, Math.max(1_000, quietAt - lastsMs));
      plan.push({
        kind,
        at,
        lastsMs,
        target: dice.below(isServer ? servers : machines.length),
        chance: dice.next(),
      });
    }
  }
  return plan.sort((a, b) => a.at - b.at);
}
