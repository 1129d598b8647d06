import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeAll, beforeEach, expect, inject, it } from 'vitest';
import type * as client from '../src/zookeeper/client/index.js';
import type { ZooKeeperClient } from '../src/zookeeper/client/zookeeper-client.js';
import type * as recipes from '../src/zookeeper/recipes/index.js';
import type { LockHandle } from '../src/zookeeper/recipes/index.js';
import { packageRoot } from '../test/support/package-root.js';
import { stopLinePeers } from '../test/support/peers/line-peer.js';
import { type RecipePeer, startCuratorRecipes } from '../test/support/peers/recipe-peer.js';
import { fourLetter } from '../test/support/servers/zookeeper-process.js';
import { uniqueChroot } from '../test/support/zookeeper.js';
import { inTurns, percentile, type Samples } from './comparison.js';
import { median, report } from './report.js';

/** How much of Curator's time the same may take here: what two measurements of the same thing differ by. */
const NOT_SLOWER = 1.1;
const WAITING = 100;
/** As a service that runs for long: V8 compiles the last functions of a lock after some ten thousand. */
const WARM = { counted: 20, warmUp: 60 };
/** The compiler's best, as a service that runs for long has it. */
const JAVA_OPTIONS = ['-Xmx256m', '-XX:+UseSerialGC', '-Dorg.slf4j.simpleLogger.defaultLogLevel=error'];
const SESSION_TIMEOUT_MS = 30_000;

const dist = pathToFileURL(join(packageRoot, 'dist/zookeeper/')).href;
const { openZooKeeper } = (await import(`${dist}client/index.js`)) as typeof client;
const { lock } = (await import(`${dist}recipes/index.js`)) as typeof recipes;

const { connect } = inject('zookeeper');
let java: RecipePeer;
let ours: ZooKeeperClient;
let base: string;
let rounds = 0;

beforeAll(() => {
  rounds = 0;
});
beforeEach(async () => {
  base = uniqueChroot('recipes');
  java = await startCuratorRecipes({ connect, sessionTimeoutMs: SESSION_TIMEOUT_MS }, JAVA_OPTIONS);
  ours = openZooKeeper({ connect, sessionTimeoutMs: SESSION_TIMEOUT_MS });
  await ours.whenConnected();
});
afterEach(async () => {
  await Promise.all([ours.close(), stopLinePeers()]);
});

const newPath = () => {
  rounds += 1;
  return `${base}/${rounds}`;
};

/** A counter of the server's. */
async function counter(name: 'zk_packets_received' | 'zk_watch_count'): Promise<number> {
  const [host, port] = connect.split(':');
  const reported = new RegExp(`^${name}\\t(\\d+)`, 'm').exec(
    await fourLetter(Number(port), 'mntr', { host: host as string }),
  );
  return Number(reported?.[1]);
}

const micros = (nanos: readonly number[]) => nanos.map((each) => each / 1_000);

async function compareWithCurator(
  title: string,
  samples: Samples,
  more: readonly (readonly [string, string, string])[] = [],
): Promise<void> {
  const row = (what: string, of: (values: readonly number[]) => number): [string, string, string][] => [
    [`Curator, ${what}`, `${of(samples.plain).toFixed(0)} µs`, '1.00'],
    [
      `nodelease, ${what}`,
      `${of(samples.ours).toFixed(0)} µs`,
      (of(samples.ours) / of(samples.plain)).toFixed(2),
    ],
  ];
  report(title, [...row('median', median), ...row('p99', (values) => percentile(values, 0.99)), ...more]);
}

const flat = (turns: { readonly plain: number[][]; readonly ours: number[][] }): Samples => ({
  plain: turns.plain.flat(),
  ours: turns.ours.flat(),
});

it('an uncontended lock', { timeout: 600_000 }, async () => {
  const count = 200;
  const [javaPath, ourPath] = [newPath(), newPath()];
  const contender = lock(ours, ourPath);
  const requests = { plain: 0, ours: 0 };
  const counted = async (of: keyof typeof requests, measure: () => Promise<number[]>) => {
    const before = await counter('zk_packets_received');
    const measured = await measure();
    requests[of] = ((await counter('zk_packets_received')) - before) / count;
    return measured;
  };
  const turns = await inTurns(
    WARM,
    () =>
      counted('plain', async () =>
        micros(await java.call<number[]>('uncontended', { path: javaPath, count })),
      ),
    () =>
      counted('ours', async () => {
        const took: number[] = [];
        for (let i = 0; i < count; i += 1) {
          const begun = performance.now();
          const handle = await contender.acquire();
          await handle.release();
          took.push((performance.now() - begun) * 1_000);
        }
        return took;
      }),
  );
  const samples = flat(turns);
  await compareWithCurator('A lock is acquired and released, without anybody else', samples, [
    ['Curator, requests', requests.plain.toFixed(1), '1.00'],
    ['nodelease, requests', requests.ours.toFixed(1), (requests.ours / requests.plain).toFixed(2)],
  ]);
  expect(median(samples.ours) / median(samples.plain), 'of Curator’s time').toBeLessThan(NOT_SLOWER);
});

/** What a round of hand-overs took, and cost. */
interface Round {
  /** Microseconds from the call that releases until the next one has it. */
  readonly took: readonly number[];
  readonly watches: number;
  readonly requests: number;
}

async function handOver(prepare: () => Promise<() => Promise<readonly number[]>>): Promise<Round> {
  const watchesBefore = await counter('zk_watch_count');
  const run = await prepare();
  const [watches, before] = [
    (await counter('zk_watch_count')) - watchesBefore,
    await counter('zk_packets_received'),
  ];
  const took = await run();
  return { took, watches, requests: ((await counter('zk_packets_received')) - before) / WAITING };
}

function prepareOurs(path: string): () => Promise<() => Promise<readonly number[]>> {
  return async () => {
    const holder = await lock(ours, path).acquire();
    const took: number[] = [];
    let givenAt = 0;
    const give = (handle: LockHandle) => {
      givenAt = performance.now();
      return handle.release();
    };
    const waiting = Array.from({ length: WAITING }, async () => {
      const handle = await lock(ours, path).acquire();
      took.push((performance.now() - givenAt) * 1_000);
      await give(handle);
    });
    await expect.poll(async () => (await ours.children(path))?.length).toBe(WAITING + 1);
    // The last one has its znode, and is about to watch its predecessor.
    await new Promise((resolve) => setTimeout(resolve, 100));
    return async () => {
      await Promise.all([give(holder), ...waiting]);
      return took;
    };
  };
}

function prepareJava(path: string): () => Promise<() => Promise<readonly number[]>> {
  return async () => {
    await java.call('hand-over-prepare', { id: path, path, count: WAITING });
    return async () => micros(await java.call<number[]>('hand-over', { id: path }));
  };
}

it(`a lock that ${WAITING} wait for`, { timeout: 600_000 }, async () => {
  const turns = await inTurns(
    WARM,
    () => handOver(prepareJava(newPath())),
    () => handOver(prepareOurs(newPath())),
  );
  const samples: Samples = {
    plain: turns.plain.flatMap(({ took }) => took),
    ours: turns.ours.flatMap(({ took }) => took),
  };
  const each = (of: readonly Round[], what: 'watches' | 'requests') => median(of.map((round) => round[what]));
  const rows = (['requests', 'watches'] as const).flatMap((what): [string, string, string][] => [
    [`Curator, ${what}`, each(turns.plain, what).toFixed(1), '1.00'],
    [
      `nodelease, ${what}`,
      each(turns.ours, what).toFixed(1),
      (each(turns.ours, what) / each(turns.plain, what)).toFixed(2),
    ],
  ]);
  await compareWithCurator(
    `A lock goes to the next of ${WAITING} waiting contenders of one session`,
    samples,
    rows,
  );
  expect(
    each(turns.ours, 'watches'),
    'one watch for each waiting contender, and the holder’s of its own znode',
  ).toBeLessThanOrEqual(WAITING + 1);
  expect(median(samples.ours) / median(samples.plain), 'of Curator’s time').toBeLessThan(NOT_SLOWER);
});
