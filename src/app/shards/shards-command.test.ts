import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../test/support/captured-io.js';
import { type ShardFleetOptions, type ShardTask, shardFleet } from '../../../test/support/shard-fleet.js';
import { inVirtualTime } from '../../../test/support/virtual-clock.js';
import { encodeCluster, newCluster } from '../../core/lease/model/cluster-config.js';
import { encodeMap, SHARDS_KEY } from '../../node/shards/shard-map.js';
import { showStatus } from '../cli/status/status-command.js';
import type { Screen } from '../kit/io.js';
import { showShards } from './shards-command.js';

const COMPLETE = { json: false, watch: false };
const JSON_ONCE = { json: true };

/** A fleet, and `nodelease shards` on its store. */
function scene(options: ShardFleetOptions, screen?: Screen) {
  const fleet = shardFleet(options);
  const io = capturedIo(screen, fleet.clock);
  const show = (how: { json?: boolean; watch?: boolean } = COMPLETE) => showShards(fleet.session(), how, io);
  /** The last answer, by lines, and those by cells. */
  const shown = async () => {
    const before = io.answer().length;
    expect(await inVirtualTime(fleet.clock, show())).toBe(0);
    return io.answer().slice(before).trimEnd().split('\n');
  };
  return { ...fleet, io, show, shown, untilAllRun: () => fleet.untilAllRun() };
}

const row = (lines: readonly string[], start: RegExp) => lines.find((line) => start.test(line)) ?? '';

describe('nodelease status of a cluster with shards', () => {
  it('has their numbers in one more field of its JSON, and in a line, with what is wrong with the map', async () => {
    const { task, untilAllRun, session, clock, io, bucket } = scene({ count: 3 });
    await task();
    await untilAllRun();
    const status = (json: boolean) => inVirtualTime(clock, showStatus(session(), { json }, io));
    await status(true);
    const numbers = { count: 3, epoch: 2, owned: 3, moving: 0, orphaned: 0, failing: 0, problem: null };
    expect(JSON.parse(io.answer()).shards).toEqual(numbers);
    bucket.remove(SHARDS_KEY);
    await status(false);
    const problem = 'shards.json is gone: nodelease init --repair mends it';
    expect(io.answer().trimEnd().split('\n').at(-1)).toBe(
      `shards: owned 0, moving 0, orphaned 3; ${problem}`,
    );
  });
});

describe('nodelease shards', () => {
  it('shows each owner with its token as JSON, with exactly these fields, and null without an owner', async () => {
    const { task, untilAllRun, map, bucket, io, show } = scene({ count: 3 });
    await task();
    await untilAllRun();
    const { members, shards, epoch } = map();
    const [owner] = members;
    const other = { id: 5, version: 2 };
    const [one, two, three] = shards.map((shard) => ({ ...shard, owner }));
    const changed = [
      { ...one, token: 2 },
      { ...two, owner: undefined, token: 3, failed: 2 },
      { ...three, token: 2, next: other },
    ];
    bucket.remove(SHARDS_KEY);
    const limits = new Map([[other, 0]]);
    const body = { epoch: epoch + 1, members: [...members, other], shards: changed as typeof shards, limits };
    bucket.create(SHARDS_KEY, encodeMap(body), {});
    expect(await show(JSON_ONCE)).toBe(0);
    const tenure = { nodeId: owner?.id, version: 1 };
    expect(JSON.parse(io.answer())).toEqual({
      count: 3,
      epoch: 3,
      shards: [
        { shard: 0, owner: tenure, token: 2, next: null, failed: 0 },
        { shard: 1, owner: null, token: 3, next: null, failed: 2 },
        { shard: 2, owner: tenure, token: 2, next: { nodeId: 5, version: 2 }, failed: 0 },
      ],
      limits: [{ nodeId: 5, version: 2, limit: 0 }],
    });
  });

  it('shows how many shards each node has, and which of them wait for an owner that stops slowly', async () => {
    const { task, untilAllRun, clock, shown } = scene({ count: 4 });
    const slow = await task({ stopMs: 60_000 });
    await untilAllRun();
    const joiner = await task();
    await clock.advance(30_000);
    const lines = await shown();
    const { lease: a } = slow;
    const { lease: b } = joiner;
    expect(row(lines, new RegExp(`^ *${a.id} +1 +task-0`))).toMatch(/task-0:80 +4 +held$/);
    expect(row(lines, new RegExp(`^ *${b.id} +1 +task-1`))).toMatch(/task-1:80 +0 +held$/);
    const waits = lines.filter((line) => line.endsWith(`${b.id} (version 1)  node ${a.id} to stop it`));
    expect(waits).toHaveLength(2);
    expect(row(lines, /^epoch/)).toMatch(
      /^epoch \d+, written \d+\.\ds ago; shards: owned 4, moving 2, orphaned 0$/,
    );
  });

  it('shows which shards do not start, where, and which node takes no more for now', async () => {
    const { task, clock, shown } = scene({ count: 2 });
    const { lease } = await task({
      start: (shard) => {
        if (shard === 1) throw new Error('no such partition');
        return undefined;
      },
    });
    await clock.advance(4_000);
    const lines = await shown();
    expect(row(lines, /^epoch/)).toMatch(/; shards: owned 2, moving 0, orphaned 0, failing 1$/);
    const start = new RegExp(`^ *1 .* node ${lease.id} to start it: [2-4] starts in a row have failed$`);
    expect(lines.filter((line) => start.test(line))).toHaveLength(1);
    expect(row(lines, /task-0/)).toMatch(/ 2 +held, takes at most 1 since starts have failed$/);
  });

  it('says that shards of a crashed node wait for the proof that it is over', async () => {
    const { task, clock, shown, untilAllRun } = scene({ count: 2 });
    const only = await task();
    await untilAllRun();
    only.network.fault = () => new Promise(() => undefined);
    await clock.advance(17_000);
    const lines = await shown();
    expect(lines.filter((line) => line.endsWith('is over: its lease is expired'))).toHaveLength(2);
  });

  it('answers 69 where there is no cluster, and says so where the cluster has no shards', async () => {
    const { show, io, bucket } = scene({ count: 2 });
    expect(await show()).toBe(69);
    expect(io.answer()).toBe('There is no cluster at memory:. [CLUSTER_MISSING]\n');
    bucket.create('cluster.json', encodeCluster(newCluster({ nodes: 2 })), {});
    expect(await show()).toBe(0);
    expect(io.answer()).toContain('The cluster at memory: has no shards.\n');
    expect(await show(JSON_ONCE)).toBe(0);
    expect(io.answer()).toContain('{"count":0,"epoch":0,"shards":[],"limits":[]}\n');
  });

  it('shows all shards without an owner until a task has made the map, and fails where it was made and is gone', async () => {
    const { show, shown, bucket } = scene({ count: 2 });
    const config = newCluster({ nodes: 2 });
    bucket.create('cluster.json', encodeCluster({ ...config, shards: { count: 2, created: false } }), {});
    expect(row(await shown(), /^epoch/)).toBe('epoch 0; shards: owned 0, moving 0, orphaned 2');
    bucket.remove('cluster.json');
    bucket.create('cluster.json', encodeCluster({ ...config, shards: { count: 2, created: true } }), {});
    await expect(show()).rejects.toThrow('shards.json is gone: nodelease init --repair mends it');
  });

  it('shows with --watch what has changed within a second, and first what waits where not all fits', async () => {
    const screen = { columns: 100, rows: 12, color: false };
    const { task, untilAllRun, clock, show, io } = scene({ count: 64 }, screen);
    const slow: ShardTask = await task({ stopMs: 600_000 });
    await untilAllRun();
    const ended = show({ watch: true });
    await clock.advance(100);
    expect(io.answer()).not.toContain('to stop it');
    await task();
    await clock.advance(40_000);
    const last = io.answer().slice(io.answer().lastIndexOf('\x1b[H'));
    expect(last.match(new RegExp(`node ${slow.lease.id} to stop it`, 'g'))).toHaveLength(3);
    expect(last).toContain('shards: owned 64, moving 32, orphaned 0');
    expect(last.split('\n').length - 1).toBe(10);
    io.signals.emit('SIGINT', 'SIGINT');
    await clock.advance(1_000);
    expect(await ended).toBe(0);
  });
});
