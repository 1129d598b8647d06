import type { RandomSource } from '../../src/core/base/clock.js';
import type { Stops } from '../model/lease-trace.js';
import type { ProxyFaults } from '../support/network/proxies.js';
import type { ActorKind } from './act.js';
import type { SlotSpec, Task } from './slot.js';
import type { FaultRecord } from './trouble.js';

/** What a fault hits. */
export interface Target {
  readonly proxy: ProxyFaults;
  readonly task: Task;
}

/** One kind of fault of a single task. */
export interface FaultKind {
  readonly name: string;
  /** How often it is drawn, relative to the others. */
  readonly weight: number;
  /** A task has at most one fault of its network and one of its processes at a time. */
  readonly of: 'network' | 'processes';
  /** Which tasks it can hit; all unless it is given. */
  readonly only?: ActorKind | 'shards';
  /** How long it lasts, in lease durations; a fault without it is over at once. */
  readonly lasts?: readonly [least: number, most: number];
  /** Brings it about. */
  begin(target: Target, random: RandomSource): OngoingFault;
}

/** A fault that has begun. */
export interface OngoingFault {
  /** Ends it. */
  end(): void;
  /** Resolves when it has hit something, rejects when it did not; absent for one that hits at once. */
  readonly happened?: Promise<unknown>;
}

const over: OngoingFault = { end: () => undefined };

const network = (
  name: string,
  weight: number,
  lasts: FaultKind['lasts'],
  begin: FaultKind['begin'],
): FaultKind => ({
  name,
  weight,
  of: 'network',
  ...(lasts && { lasts }),
  begin,
});

/** A break of the network that ends with everything that was held back being dropped. */
const broken = (name: string, weight: number, act: (proxy: ProxyFaults) => void): FaultKind =>
  network(name, weight, [0.2, 2.5], ({ proxy }) => {
    act(proxy);
    return { end: () => proxy.heal() };
  });

/**
 * Who of a task is meant. The group is the supervisor and its command, without the guard: when all three are
 * stopped together, as by a container that is frozen, nothing is left to end the command before it goes on,
 * and it may act once more. Only versions help there.
 */
const PARTS = {
  supervisor: (task: Task) => [task.main],
  child: (task: Task) => (task.child ? [task.child] : []),
  guard: (task: Task) => (task.guard ? [task.guard] : []),
  group: (task: Task) => (task.child ? [task.main, task.child] : [task.main]),
};

/** The pause of a library task. */
const PAUSE_OF_PROCESS = 'pause of the process';

/** When tasks were stopped. @param traces the names of their files, which end with the process */
export function stopsOf(traces: readonly string[], faults: readonly FaultRecord[]): Stops {
  const pauses = faults.filter(({ name }) => name === PAUSE_OF_PROCESS);
  return new Map(
    traces.map((trace) => {
      const own = pauses.filter(({ pid }) => trace.endsWith(` ${pid}`));
      return [trace, own.map(({ at }) => at / 1_000)];
    }),
  );
}

/** A pause: SIGSTOP, and SIGCONT much later. */
const pause = (part: keyof typeof PARTS, weight: number, only?: ActorKind): FaultKind => ({
  name: only === 'library' ? PAUSE_OF_PROCESS : `pause of the ${part}`,
  weight,
  of: 'processes',
  ...(only && { only }),
  lasts: [0.2, 4],
  begin({ task }) {
    const paused = PARTS[part](task);
    for (const process of paused) process.signal('SIGSTOP');
    const end = () => {
      for (const process of paused) process.signal('SIGCONT');
    };
    return { end };
  },
});

const signal = (
  name: string,
  part: keyof typeof PARTS,
  which: NodeJS.Signals,
  weight: number,
  only?: ActorKind,
): FaultKind => ({
  name,
  weight,
  of: 'processes',
  ...(only && { only }),
  begin({ task }) {
    for (const process of PARTS[part](task)) process.signal(which);
    return over;
  },
});

/** A request to S3, etcd, DynamoDB or PostgreSQL that writes. */
const WRITES = /^(PUT |POST \/v3\/kv\/txn )|\.PutItem\r|(INSERT INTO|UPDATE) nodelease/;

/** Everything that happens to single tasks. */
export const FAULTS: readonly FaultKind[] = [
  broken('cut', 3, (proxy) => proxy.cut()),
  broken('stall to the server', 3, (proxy) => proxy.stall('to-server')),
  broken('stall to the client', 3, (proxy) => proxy.stall('to-client')),
  broken('stall both ways', 2, (proxy) => proxy.stall('both')),
  network('stall, delivered late', 5, [0.2, 2.5], ({ proxy }, random) => {
    proxy.stall(random.next() < 0.5 ? 'to-server' : 'both');
    return { end: () => proxy.heal({ deliverHeld: true }) };
  }),
  network('delay', 3, [0.5, 2], ({ proxy }, random) => {
    proxy.delay(20 + random.next() * 500);
    return { end: () => proxy.heal() };
  }),
  network('reset', 4, undefined, ({ proxy }) => {
    proxy.reset();
    return over;
  }),
  network('lost reply to a write', 6, [1, 1], ({ proxy }) => ({
    happened: proxy.dropNextReply((head) => WRITES.test(head)),
    end: () => proxy.heal(),
  })),
  {
    ...network('lost reply to a write of the map', 12, [1, 3], ({ proxy }) => ({
      happened: proxy.dropNextReply(isMapWrite),
      end: () => proxy.heal(),
    })),
    only: 'shards',
  },
  pause('supervisor', 6, 'run'),
  pause('child', 3, 'run'),
  pause('group', 6, 'run'),
  pause('supervisor', 12, 'library'),
  signal('SIGKILL of the child', 'child', 'SIGKILL', 5, 'run'),
  signal('SIGKILL of the supervisor', 'supervisor', 'SIGKILL', 4, 'run'),
  signal('SIGKILL of the guard', 'guard', 'SIGKILL', 2, 'run'),
  signal('SIGKILL of the group', 'group', 'SIGKILL', 3, 'run'),
  signal('SIGKILL of the process', 'supervisor', 'SIGKILL', 5, 'library'),
  signal('SIGTERM', 'supervisor', 'SIGTERM', 16),
];

/** Whether a request writes the map of shards, to S3, etcd, DynamoDB or PostgreSQL. */
function isMapWrite(head: string, body: string): boolean {
  if (/(INSERT INTO|UPDATE) nodelease/.test(head)) return head.includes('shards.json');
  if (/\.PutItem\r/.test(head)) return body.includes('"object":{"S":"shards.json"}');
  const keys = [...body.matchAll(/"key":"([^"]+)"/g)].map(([, key = '']) => Buffer.from(key, 'base64'));
  return head.startsWith('POST /v3/kv/txn ')
    ? keys.some((key) => key.toString().endsWith('/shards.json'))
    : /^PUT \S+\/shards\.json/.test(head);
}

/** Draws one of the faults that can hit a task of this kind. */
export function drawFault(
  { kind, shards }: SlotSpec,
  busy: ReadonlySet<FaultKind['of']>,
  random: RandomSource,
): FaultKind | undefined {
  const possible = FAULTS.filter(
    ({ of, only = kind }) => !busy.has(of) && (only === 'shards' ? shards > 0 : only === kind),
  );
  let left = random.next() * possible.reduce((sum, { weight }) => sum + weight, 0);
  return possible.find(({ weight }) => {
    left -= weight;
    return left < 0;
  });
}
