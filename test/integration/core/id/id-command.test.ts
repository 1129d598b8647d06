import { readdir } from 'node:fs/promises';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { encodeCluster, newCluster } from '../../../../src/core/lease/model/cluster-config.js';
import {
  type FleetStore,
  initCluster,
  newStore,
  parseLog,
  removeStores,
  startTask,
} from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { childHandles, ProcessHandle } from '../../../support/process-handle.js';
import { cliFile, killAll, runCli, runProcess } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';
import { expectIncreasing, idsOf, printed, startId } from './id-support.js';

afterEach(async () => {
  vi.unstubAllEnvs();
  await killAll();
  await removeStores();
  removeFolders();
});

const tombstone = async (store: FleetStore, nodeId = 0) =>
  JSON.parse((await store.read(`${nodeId}.json`)) ?? '') as Record<string, unknown>;

/** A store with a cluster: a new one is warned of. */
async function storeWithCluster(): Promise<FleetStore> {
  const store = await newStore();
  await initCluster(store);
  return store;
}

describe('nodelease id', () => {
  it('prints nothing but ids: they go on from call to call without waiting for the calls before, and calls at the same time print others', async () => {
    const store = await storeWithCluster();
    const ids: bigint[] = [];
    // One that had to wait for the lease of the call before to run out, for 11 s, would say so.
    for (const count of ['1', '1000', '1000']) ids.push(...(await idsOf(startId(store, ['-n', count]))));
    expect(ids).toHaveLength(2_001);
    expectIncreasing(ids);
    expect(await tombstone(store)).toMatchObject({ released: true, version: 3 });
    const together = await Promise.all(
      Array.from({ length: 6 }, () => idsOf(startId(store, ['-n', '5000']))),
    );
    ids.push(...together.flat());
    expect(ids).toHaveLength(32_001);
    expect(new Set(ids).size).toBe(32_001);
  });

  it('prints ids that decode takes apart again', async () => {
    const store = await newStore();
    const begun = Date.now();
    const made = startId(store, ['--format', 'base32']);
    expect((await made.exit).code).toBe(0);
    const id = made.stdout().trim();
    expect(id).toMatch(/^[0-9A-HJKMNP-TV-Z]{13}$/);
    const decoded = await runInProcess(['decode', id, '--width', '8', '--json']);
    expect(decoded.code).toBe(0);
    const { timeMs, ...rest } = JSON.parse(decoded.answer) as Record<string, unknown>;
    expect(rest).toMatchObject({ node: 8, group: 0, index: 8, nodeId: 0, sequence: 0 });
    // The embedded store's time is this machine's, give or take a tick; the lag is 4 s.
    expect(Number(timeMs)).toBeGreaterThan(begun - 5_000);
    expect(Number(timeMs)).toBeLessThan(Date.now() - 3_000);
  });

  it('prints ids of Twitter’s layout', async () => {
    const store = await storeWithCluster();
    const [id] = await idsOf(startId(store, ['--layout', 'snowflake', '--epoch', '1700000000000']));
    const decoded = await runInProcess([
      'decode',
      String(id),
      '--layout',
      'snowflake',
      '--epoch',
      '1700000000000',
      '--json',
    ]);
    expect(JSON.parse(decoded.answer)).toMatchObject({ node: 8, nodeId: 0 });
  });

  it.each([1_000_000_000, 1_000])(
    'ends quietly with 141, and releases the lease, when its reader has read enough of %i',
    async (count) => {
      const store = await storeWithCluster();
      // The reader of the few has gone before there is one.
      const reader = count > 1_000 ? 'head -n 5' : 'true';
      const pipeline = `{ "$0" "$1" id -n ${count} "$2" "$3"; echo "code $?" >&2; } | ${reader}`;
      const shell = runProcess('sh', ['-c', pipeline, process.execPath, cliFile, ...store.options]);
      expect(await shell.exit).toEqual({ code: 0, signal: null });
      expectIncreasing(printed(shell));
      expect(printed(shell)).toHaveLength(count > 1_000 ? 5 : 0);
      expect(shell.stderr()).toBe('code 141\n');
      expect(await tombstone(store)).toMatchObject({ released: true });
    },
  );

  it('ends with 74 where its ids cannot be written, says why, and releases the lease', async () => {
    const store = await storeWithCluster();
    const script = '"$0" "$1" id -n 1000000000 "$2" "$3" > /dev/full';
    const shell = runProcess('sh', ['-c', script, process.execPath, cliFile, ...store.options]);
    expect(await shell.exit).toEqual({ code: 74, signal: null });
    expect(shell.stderr()).toBe('nodelease: standard output: ENOSPC: no space left on device, write\n');
    expect(await tombstone(store)).toMatchObject({ released: true });
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('releases the lease on %s, and ends with %i', async (signal, code) => {
    const store = await storeWithCluster();
    const call = startId(store, ['-n', '1000000000']);
    await call.waitForOutput(/^\d+\n/);
    call.kill(signal);
    expect(await call.exit).toEqual({ code, signal: null });
    expect(await tombstone(store)).toMatchObject({ released: true, stampedUntil: expect.any(Number) });
    expectIncreasing(printed(call));
    expect(call.stderr()).toBe('');
  });

  it('releases the lease on a signal also where its reader has stopped reading', async () => {
    const store = await newStore();
    // The shell that says its number becomes the call.
    const named = `sh -c 'echo "pid $$" >&2; exec "$0" "$@"' "$0" "$1" id -n 1000000000 "$2" "$3"`;
    const script = `{ ${named}; echo "code $?" >&2; } | sleep 300`;
    const shell = runProcess('sh', ['-c', script, process.execPath, cliFile, ...store.options]);
    const [, pid] = await shell.waitForOutput(/^pid (\d+)$/m);
    const call = new ProcessHandle(Number(pid));
    await expect.poll(async () => (await store.read('0.json')) ?? '').toContain('taskId');
    call.signal('SIGTERM');
    await shell.waitForOutput(/^code 143$/m);
    expect(await tombstone(store)).toMatchObject({ released: true });
    for (const reader of childHandles(shell.pid)) reader.signal('SIGKILL');
    await shell.exit;
  });

  it('ends with 76 when the lease is taken away in the middle, and what it printed is not made again', async () => {
    const store = await newStore();
    const call = startId(store, ['-n', '1000000000', '--nodes', '1', '--duration', '3s']);
    await call.waitForOutput(/^\d+\n/);
    // Its ids come faster than this process can take them and do anything else.
    call.kill('SIGSTOP');
    expect(await runInProcess(['release', '0', '--force', ...store.options])).toMatchObject({ code: 0 });
    call.kill('SIGCONT');
    expect((await call.exit).code).toBe(76);
    // So short a lease may be lost on a loaded machine.
    expect(await runInProcess(['tune', '--duration', '15s', ...store.options])).toMatchObject({ code: 0 });
    const next = startId(store, ['-n', '1000']);
    expect((await next.exit).code, next.stderr()).toBe(0);
    const before = printed(call);
    expectIncreasing(before);
    expect(printed(next)[0]).toBeGreaterThan(before.at(-1) as bigint);
  });

  it('ends with 75 when no node id is free in time', async () => {
    const store = await newStore();
    await startTask(store, ['--nodes', '1']).started();
    const call = startId(store, ['--acquire-timeout', '0s']);
    expect((await call.exit).code).toBe(75);
    expect(call.stdout()).toBe('');
    expect(parseLog(call.stderr()).at(-1)?.fields.exitCode).toBe(75);
  });

  it('ends with 69 when the store cannot be used', async () => {
    const call = runCli(['id', '--store', 'file:/dev/null/nowhere']);
    expect((await call.exit).code).toBe(69);
    expect(call.stdout()).toBe('');
  });

  it('logs what becomes of the lease where that is asked for, on standard error', async () => {
    const store = await newStore();
    const call = startId(store, ['--log-level', 'info']);
    expect((await call.exit).code).toBe(0);
    expect(printed(call)).toHaveLength(1);
    const [, url] = store.options;
    const made = `created a new cluster of 16 node ids in ${url}`;
    const lines = [
      `node ids come from ${url}`,
      made,
      `acquired node id 0 at version 1 in ${url}`,
      'lease released',
    ];
    expect(parseLog(call.stderr()).map(({ msg }) => msg)).toEqual(lines);
  });

  it('warns that a store in memory keeps no two calls apart', async () => {
    const call = runCli(['id', '--store', 'memory:']);
    expect((await call.exit).code).toBe(0);
    expect(parseLog(call.stderr()).map(({ msg }) => msg)).toEqual([
      expect.stringContaining('another call may print the same ids'),
      'created a new cluster of 16 node ids in memory:',
    ]);
  });

  it('acquires nothing for options that are wrong', async () => {
    const store = await newStore();
    for (const args of [
      ['--count', '1e3'],
      ['--format', 'octal'],
      ['--epoch', '1'],
    ]) {
      const { code, complaints } = await runInProcess(['id', ...args, ...store.options]);
      expect(code).toBe(64);
      expect(complaints).toMatch(new RegExp(`^nodelease: ${args[0]}: expected [^\n]*\n$`));
    }
    expect(await store.keys()).toEqual([]);
  });

  it('gives back a node id that the layout has no bits for, and says so', async () => {
    const store = await newStore();
    await store.spoil('cluster.json', encodeCluster({ ...newCluster({ nodes: 1_017 }), bootstrapped: true }));
    await store.spoil('1016.json', '');
    // Ids 0 to 1015 are taken, as far as a reader can see.
    const held = {
      taskId: 'other',
      version: 1,
      timestamp: Date.now() + 3_600_000,
      durationMs: 3_600_000,
      knownNodesMapping: {},
      ...{ acquiredAt: 0, idWidth: 8, narrowIdsUntil: 0, nonce: 'n', renewal: 0 },
    };
    await Promise.all(
      Array.from({ length: 1_016 }, (_, nodeId) => store.spoil(`${nodeId}.json`, JSON.stringify(held))),
    );
    const call = startId(store, ['--layout', 'snowflake']);
    expect((await call.exit).code, call.stderr()).toBe(64);
    expect(call.stderr()).toMatch(
      /^nodelease: node id: expected a node id from 0 to 1015, since layout snowflake has 10 bits .* got 1016 \[CONFIG_INVALID\]\n$/,
    );
    expect(await tombstone(store, 1_016)).toMatchObject({ released: true });
    expect(call.stdout()).toBe('');
  });
});

describe('nodelease id with node ids that come only from ZooKeeper', () => {
  it('prints other ids in each call, one after the other and at the same time, and leaves no store behind', async () => {
    const cwd = newFolder();
    const zookeeper = `${inject('zookeeper').connect}${uniqueChroot('id')}`;
    const start = () =>
      runCli(['id', '-n', '1000', '--provider', 'zookeeper', '--zookeeper', zookeeper], { cwd });
    const ids: bigint[] = [];
    for (let i = 0; i < 3; i += 1) ids.push(...(await idsOf(start())));
    expectIncreasing(ids);
    ids.push(...(await Promise.all(Array.from({ length: 4 }, () => idsOf(start())))).flat());
    expect(new Set(ids).size).toBe(7_000);
    expect(await readdir(cwd)).toEqual([]);
  });
});
