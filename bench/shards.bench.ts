import { expect, it } from 'vitest';
import { systemClock, systemRandom } from '../src/core/base/system.js';
import { acquireLease } from '../src/core/lease/acquire/acquire-lease.js';
import { MemoryLeaseStore } from '../src/core/store/memory/memory-lease-store.js';
import { ownShards, shardOf } from '../src/node/shards/index.js';
import { plan } from '../src/node/shards/plan.js';
import { decodeMap, encodeMap, type MapMember, type ShardMap } from '../src/node/shards/shard-map.js';
import { report } from './report.js';

const COUNT = 4_096;
const NODES = 100;
const ROUNDS = 15;
const CALLS = 50_000;

/** Milliseconds of processor time: the least of some rounds. */
function timed(act: () => void): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    act();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

const member = (id: number): MapMember => ({ id, version: 1_000, address: `10.0.${id}.7:8080` });
const none = Array.from({ length: COUNT }, () => ({ owner: undefined, token: 0, next: undefined }));

/** A map whose shards have fair shares. */
function settledMap(epoch: number, members = Array.from({ length: NODES }, (_, id) => member(id))): ShardMap {
  const map = plan({ epoch: epoch - 1, members: [], shards: none }, { members });
  if (map === undefined) throw new Error('nothing is planned');
  return map;
}

it('the size of a map of 4,096 shards, and the time that plans take', () => {
  const map = settledMap(1_000_000);
  const body = encodeMap(map);
  const newcomer = member(NODES);
  const alone = settledMap(1_000_000, [member(0)]);
  const changes: [string, () => ShardMap | undefined][] = [
    ['all shards get an owner', () => settledMap(2)],
    ['a node joins', () => plan(map, { members: [...map.members, newcomer], settled: true })],
    ['a node is gone', () => plan(map, { members: map.members.slice(1), settled: true })],
    [
      '99 nodes join one that owns all',
      () =>
        plan(alone, {
          members: [...alone.members, ...Array.from({ length: NODES - 1 }, (_, id) => member(id + 1))],
          settled: true,
        }),
    ],
  ];
  const plain = timed(() => JSON.stringify(JSON.parse(body)));
  const row = (what: string, ms: number): [string, string, string] => [
    what,
    `${ms.toFixed(2)} ms`,
    (ms / plain).toFixed(1),
  ];
  const moving = changes.at(-1)?.[1]();
  const size = (of: ShardMap | undefined) => `${((of ? encodeMap(of).length : 0) / 1_024).toFixed(1)} KiB`;
  report(`${COUNT} shards on ${NODES} nodes`, [
    row('JSON of the map, parsed and written', plain),
    row(
      'the map is decoded',
      timed(() => decodeMap(body)),
    ),
    ...changes.map(([what, make]) => row(what, timed(make))),
    ['size at epoch 1,000,000', size(map), ''],
    ['size while 99 of 100 shards are to move', size(moving), ''],
  ]);
  expect(moving?.shards.filter(({ next }) => next).length).toBeGreaterThan(4_000);
});

it('the time that owns() takes, compared with a look into a Map', async () => {
  const store = new MemoryLeaseStore({ clock: systemClock });
  const shared = { store, clock: systemClock, random: systemRandom, taskId: 'bench' };
  const lease = await acquireLease({ ...shared, nodes: 1, durationMs: 60_000 });
  const shards = await ownShards(lease, { count: COUNT, start: () => undefined });
  await expect.poll(() => shards.owned.length).toBe(COUNT);
  const texts = Array.from({ length: 1_000 }, (_, at) => `customer-${at}`);
  const ids = texts.map((_, at) => 7_000_000_000_000_000_000n + BigInt(at));
  const known = new Map(texts.map((text, at) => [text, at % 2 === 0]));
  let yes = 0;
  expect(shards.owns('customer-0')).toBe(true);
  const nanoseconds = <K>(keys: readonly K[], isOwned: (key: K) => boolean | undefined) =>
    (timed(() => {
      for (let call = 0; call < CALLS; call += 1) if (isOwned(keys[call % keys.length] as K)) yes += 1;
    }) *
      1e6) /
    CALLS;
  const plain = nanoseconds(texts, (key) => known.get(key));
  const row = (what: string, ns: number): [string, string, string] => [
    what,
    `${ns.toFixed(0)} ns`,
    (ns / plain).toFixed(1),
  ];
  report(`owns(), ${COUNT} shards`, [
    row('Map.get', plain),
    row(
      'a wall and a monotonic clock are read',
      nanoseconds(texts, () => Date.now() + process.hrtime()[1] > 0),
    ),
    row(
      'shardOf(text)',
      nanoseconds(texts, (key) => shardOf(key, COUNT) >= 0),
    ),
    row(
      'shardOf(bigint)',
      nanoseconds(ids, (key) => shardOf(key, COUNT) >= 0),
    ),
    row(
      'isValid()',
      nanoseconds(texts, () => lease.isValid()),
    ),
    row(
      'owns(text)',
      nanoseconds(texts, (key) => shards.owns(key)),
    ),
    row(
      'owns(bigint)',
      nanoseconds(ids, (key) => shards.owns(key)),
    ),
  ]);
  expect(yes).toBe(CALLS * ROUNDS * 6.5);
  await lease.release();
});
