import { afterEach, expect, inject, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../src/base/system.js';
import type { SharedMap } from '../src/shared-data/collections.js';
import { sha256 } from '../src/shared-data/layout.js';
import { encodePair, toScalar } from '../src/shared-data/scalar-codec.js';
import { sharedData } from '../src/shared-data/shared-data.js';
import { openZooKeeper, type ZooKeeperClient } from '../src/zookeeper/zookeeper-client.js';
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
      range.map((n) => ({ type: 'create', path: `${written.path}/${sha256(key(n))}`, data: document(n, 0), mode: 'shared' }) as const),
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
  const watchers: PlainWatcher[] = [];
  const maps: SharedMap<string, number>[] = [];
  const measure = async <C, W>(open: () => Promise<C>, watch: (client: C) => Promise<W>, into: 'plain' | 'ours', all: W[]) => {
    const client = await open();
    if (all.length >= MEASURED) {
      all.push(await watch(client));
      return;
    }
    const [heap, begun] = [await settledHeap(), performance.now()];
    all.push(await watch(client));
    sight[into].push(performance.now() - begun);
    memory[into].push(((await settledHeap()) - heap) / 2 ** 20);
  };
  for (let n = 0; n < WATCHERS; n += 1) {
    await measure(() => plain(connect), followPlainly, 'plain', watchers);
    await measure(() => ours(connect), follow, 'ours', maps);
  }
  expect([watchers[0]?.nodes.size, maps[0]?.size]).toEqual([ENTRIES, ENTRIES]);

  const delays = noSamples();
  for (let round = 1; round <= ROUNDS; round += 1) {
    const n = (round * 197) % ENTRIES;
    const begun = performance.now();
    const seen = (into: number[], subscribe: (tell: () => void) => void) =>
      new Promise<void>((resolve) =>
        subscribe(() => {
          into.push(performance.now() - begun);
          resolve();
        }),
      );
    const told = [
      ...watchers.map((watcher) =>
        seen(delays.plain, (tell) => {
          watcher.onChange = (changed) => changed === path(n) && tell();
        }),
      ),
      ...maps.map((map) =>
        seen(delays.ours, (tell) => {
          const forget = map.onChange(() => {
            forget();
            tell();
          });
        }),
      ),
    ];
    await writer.setData(path(n), document(n, round));
    await Promise.all(told);
  }
  compare(`${ENTRIES} entries in one map, ${WATCHERS} clients on each side in one process`, 'ms', 1, [
    ...medianAndSlowest('first sight', sight),
    ...medianAndP99('a change is seen', delays),
  ]);
  compare('Memory of one client', 'MiB', 1, [{ what: 'all entries', plain: median(memory.plain), ours: median(memory.ours) }]);
  expect(median(delays.ours) / median(delays.plain)).toBeLessThan(3);
});
