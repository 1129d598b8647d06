import { afterEach, expect, inject, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../src/core/base/system.js';
import { openZooKeeper, type ZooKeeperClient } from '../src/zookeeper/client/zookeeper-client.js';
import { sha256 } from '../src/zookeeper/shared-data/layout.js';
import { encodePair, toScalar } from '../src/zookeeper/shared-data/scalar-codec.js';
import { sharedData } from '../src/zookeeper/shared-data/shared-data.js';
import { uniqueChroot } from '../test/support/zookeeper.js';
import { compare, medianAndP99, medianAndSlowest, noSamples } from './comparison.js';
import { PlainClient } from './plain-client.js';
import { PlainWatcher } from './plain-watcher.js';
import { median } from './report.js';
import { settledHeap } from './settled-heap.js';

const ENTRIES = 10_000;
const WATCHERS = 20;
/** How many of them are measured when they begin: collecting garbage takes its time. */
const MEASURED = 3;
const ROUNDS = 50;

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const client of opened.splice(0).reverse()) await client.close();
});

async function ours(connect: string): Promise<ZooKeeperClient> {
  const client = openZooKeeper({ connect, sessionTimeoutMs: 30_000, clock, random });
  opened.push(client);
  await client.whenConnected();
  return client;
}

async function plain(connect: string): Promise<PlainClient> {
  const client = await PlainClient.open(connect);
  opened.push(client);
  return client;
}

const key = (n: number) => `key ${n}`;
const document = (n: number, value: number) => encodePair(toScalar(key(n)), toScalar(value));

it('one map of 10,000 entries, followed by 20 clients', { timeout: 900_000 }, async () => {
  const connect = `${inject('zookeeper').connect}${uniqueChroot('shared-data')}`;
  const writer = await ours(connect);
  const written = await sharedData(writer).map<string, number>('large');
  await written.set(key(0), 0);
  for (let from = 1; from < ENTRIES; from += 500) {
    const range = Array.from({ length: Math.min(500, ENTRIES - from) }, (_, n) => from + n);
    await writer.multi(
      range.map(
        (n) =>
          ({
            type: 'create',
            path: `${written.path}/${sha256(key(n))}`,
            data: document(n, 0),
            mode: 'shared',
          }) as const,
      ),
      { timeoutMs: 30_000 },
    );
  }
  const folder = written.path.slice(0, written.path.lastIndexOf('/'));
  const path = (n: number) => `${written.path}/${sha256(key(n))}`;

  const sight = noSamples();
  const memory = noSamples();
  const followPlainly = async (client: PlainClient) => {
    const watcher = new PlainWatcher(client.library);
    await watcher.watch(folder);
    return watcher;
  };
  const follow = async (client: ZooKeeperClient) => {
    const map = await sharedData(client).map<string, number>('large', { timeoutMs: 30_000 });
    await map.ready;
    return map;
  };
  const delays = noSamples();
  /** One side after the other: the server has to keep a watch for each entry and client. */
  const measure = async <C extends { close(): Promise<void> }, W>(
    side: 'plain' | 'ours',
    open: () => Promise<C>,
    watch: (client: C) => Promise<W>,
    onChange: (watcher: W, changed: string, notify: () => void) => void,
  ) => {
    const watchers: W[] = [];
    for (let n = 0; n < WATCHERS; n += 1) {
      const client = await open();
      const [heap, begun] = [n < MEASURED ? await settledHeap() : 0, performance.now()];
      watchers.push(await watch(client));
      sight[side].push(performance.now() - begun);
      if (n < MEASURED) memory[side].push(((await settledHeap()) - heap) / 2 ** 20);
    }
    for (let round = 1; round <= ROUNDS; round += 1) {
      const n = (round * 197) % ENTRIES;
      const begun = performance.now();
      const seen = watchers.map(
        (watcher) =>
          new Promise<void>((resolve) => {
            onChange(watcher, path(n), () => {
              delays[side].push(performance.now() - begun);
              resolve();
            });
          }),
      );
      await writer.setData(path(n), document(n, side === 'ours' ? round : -round));
      await Promise.all(seen);
    }
    for (const client of opened.splice(1)) await client.close();
  };
  await measure(
    'plain',
    () => plain(connect),
    followPlainly,
    (watcher, wanted, notify) => {
      watcher.onChange = (changed) => changed === wanted && notify();
    },
  );
  await measure(
    'ours',
    () => ours(connect),
    follow,
    (map, _, notify) => {
      const forget = map.onChange(() => {
        forget();
        notify();
      });
    },
  );
  compare(
    `${ENTRIES} entries in one map, ${WATCHERS} clients on each side, one side after the other`,
    'ms',
    1,
    [...medianAndSlowest('first sight', sight), ...medianAndP99('a change is seen', delays)],
  );
  compare('Memory of one client', 'MiB', 1, [
    { what: 'all entries', plain: median(memory.plain), ours: median(memory.ours) },
  ]);
  expect(median(delays.ours) / median(delays.plain)).toBeLessThan(3);
});
