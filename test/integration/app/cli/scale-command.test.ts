import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import {
  type FleetStore,
  initCluster,
  newStore,
  removeStores,
  startTask,
  statusOf,
} from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli } from '../../../support/processes.js';
import { restrictedEnvironment } from '../../../support/restricted-access.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { uniqueChroot } from '../../../support/zookeeper.js';

/** How long anything may take on a loaded machine, in milliseconds. */
const PATIENCE_MS = 60_000;
const READ_ONLY = { 's3:GetObject': '*', 's3:ListBucket': '*' };

afterEach(async () => {
  vi.unstubAllEnvs();
  await killAll();
  await removeStores();
});

function call(store: FleetStore, ...args: string[]) {
  return runCli([...args, ...store.options], { env: store.env });
}

async function scale(store: FleetStore, ...args: string[]) {
  return runInProcess(['scale', ...args, ...store.options], { env: store.env });
}

/** All objects, as they are. */
async function contents(store: FleetStore): Promise<Record<string, string | undefined>> {
  return Object.fromEntries(
    await Promise.all((await store.keys()).map(async (key) => [key, await store.read(key)] as const)),
  );
}

const settings = async (store: FleetStore) =>
  JSON.parse((await store.read('cluster.json')) ?? '{}') as Record<string, unknown>;

describe('nodelease scale', () => {
  it('gives more node ids to running tasks, who all make wider unique ids before anybody gets an id that takes them', async () => {
    const store = await newStore('file');
    const options = ['--nodes', '3', '--duration', '6s'];
    const tasks = [0, 1, 2].map((number) => startTask(store, [...options, '--task-id', `old-${number}`]));
    const ids = await Promise.all(tasks.map(async (task) => (await task.started()).id));
    expect(ids.sort()).toEqual([0, 1, 2]);
    const waiting = startTask(store, options);
    await waiting.waitForOutput(/no node id is free/);

    const command = call(store, 'scale', '300');
    expect(await command.exit, command.stderr()).toMatchObject({ code: 0 });
    expect(command.stdout()).toMatch(
      /^the cluster at .* has 300 node ids now, and had 3: 297 lease objects written\na node id takes 9 bits in unique ids\n$/,
    );
    expect(command.stderr()).toMatch(
      /^nodelease: waiting for [123] holders? to make .* 9 bits .*: \d \(old-\d, 8 bits\).*\nnodelease: every holder makes .*\n$/,
    );
    expect((await waiting.started()).id).toBeGreaterThanOrEqual(3);
    const fresh = startTask(store, [...options, '--task-id', 'fresh']);
    expect((await fresh.started()).id).toBeGreaterThanOrEqual(3);

    const { cluster, nodes } = await statusOf(store);
    expect(cluster).toMatchObject({ size: 300, idWidth: 9 });
    // By who holds them: a lease that is read slowly may look overdue.
    const holders = nodes.filter(({ taskId }) => taskId !== null);
    expect(holders.map(({ idWidth }) => idWidth)).toEqual([9, 9, 9, 9, 9]);
    expect(
      nodes.filter(({ taskId }) => taskId?.startsWith('old-')).map(({ id, version }) => [id, version]),
    ).toEqual([
      [0, 1],
      [1, 1],
      [2, 1],
    ]);
    // No task has made ids, and each says so: no task has to wait for what they might have made.
    expect((await settings(store)).idFloor).toBeUndefined();
    // Tasks that waited may have left their markers.
    expect((await store.keys()).filter((key) => !key.startsWith('waiting-'))).toHaveLength(301);
    expect(await scale(store, '300')).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/300 node ids already: nothing to do\n$/),
    });
  });

  it('ends by SIGINT while it waits, with the cluster as it was but for the width', async () => {
    const store = await newStore('file');
    const holder = startTask(store, ['--nodes', '3', '--duration', '10m']);
    await holder.started();
    const command = call(store, 'scale', '300');
    await command.waitForOutput(/waiting for 1 holder/);
    command.kill('SIGINT');
    expect((await command.exit).code).toBe(130);
    expect(command.stderr()).toMatch(/^nodelease: waiting for .*\n$/);
    expect(command.stdout()).toBe('');
    expect(await settings(store)).toMatchObject({ size: 3, idWidth: 9 });
    expect(holder.kill('SIGTERM')).toBe(true);
    await holder.exit;
  });

  it('grows a cluster whose tasks are gone without a release, once their leases have expired', async () => {
    const store = await newStore('file');
    const holder = startTask(store, ['--nodes', '3', '--duration', '3s', '--task-id', 'gone']);
    await holder.started();
    holder.kill('SIGKILL');
    await holder.exit;
    const { code, complaints } = await scale(store, '300');
    expect({ code, complaints }).toMatchObject({ code: 0 });
    const { nodes } = await statusOf(store);
    expect(nodes[0]).toMatchObject({ state: 'released', version: 2 });
    expect((await settings(store)).idFloor).toBe((nodes[0]?.timestamp ?? 0) - 1);
  });

  it('changes nothing where it is called wrongly', async () => {
    const store = await newStore('file');
    await initCluster(store, '--nodes', '6');
    const before = await contents(store);
    for (const args of [
      ['0'],
      ['65529'],
      ['-1'],
      ['4', '--drain-timeout', '25h'],
      ['4', '--drain-timeout', 'soon'],
      ['4', '--on-retire', 'stop'],
    ]) {
      expect(await scale(store, ...args), args.join(' ')).toMatchObject({
        code: 64,
        answer: '',
        complaints: expect.stringMatching(/^.*\n$/),
      });
    }
    expect(await runInProcess(['scale', '4', ...store.options], { env: { NODELEASE_NODE_ID: '5' } })).toEqual(
      {
        code: 64,
        answer: '',
        complaints:
          'nodelease: number of node ids: expected at least 6, for NODELEASE_NODE_ID makes 5 a fixed node id in use, got 4 [CONFIG_INVALID]\n',
      },
    );
    expect(await contents(store)).toEqual(before);
  });

  it('says in one line, with 69, that it may not write, leaves everything as it is, and goes on once it may', async () => {
    const store = await newStore('s3');
    await initCluster(store, '--nodes', '6');
    const before = await contents(store);
    const env = await restrictedEnvironment(inject('s3'), READ_ONLY);
    const complaints = [
      ['2', /^nodelease: .*cluster\.json: access denied .* \[STORE_DENIED\]\n$/],
      ['9', /^nodelease: .*creating [678]\.json: access denied .* \[STORE_DENIED\]\n$/],
    ] as const;
    for (const [size, complaint] of complaints) {
      expect(await runInProcess(['scale', size, ...store.options], { env })).toEqual({
        code: 69,
        answer: '',
        complaints: expect.stringMatching(complaint),
      });
    }
    expect(await contents(store)).toEqual(before);

    const some = await restrictedEnvironment(inject('s3'), {
      ...READ_ONLY,
      's3:PutObject': '*/cluster.json',
    });
    expect(await runInProcess(['scale', '2', ...store.options], { env: some })).toMatchObject({
      code: 69,
      complaints: expect.stringMatching(/\nnodelease: .*[2-5]\.json: access denied .* \[STORE_DENIED\]\n$/),
    });
    // The size is already published: no task takes one of the others any more.
    expect(await settings(store)).toMatchObject({ size: 2 });
    vi.unstubAllEnvs();
    expect(await scale(store, '2')).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/has 2 node ids already: 4 lease objects retired\n$/),
    });
    expect(await scale(store, '9')).toMatchObject({ code: 0 });
  });

  it('goes on where SIGKILL has ended it, and the cluster can grow again at once', async () => {
    const store = await newStore('file');
    await initCluster(store, '--nodes', '3', '--duration', '9s');
    const options = ['--on-retire', 'drain'];
    const staying = startTask(store, [...options, '--task-id', 'staying']);
    await staying.started();
    const going = startTask(store, [...options, '--task-id', 'going']);
    await going.started();
    const first = call(store, 'scale', '1');
    await first.waitForOutput(/waiting for 1 holder to give a node id back/);
    first.kill('SIGKILL');
    await first.exit;
    expect(await settings(store)).toMatchObject({ size: 1 });
    const second = await scale(store, '1', '--drain-timeout', '1s');
    expect(second).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/already: .*retired\ntaken from their holders by force: 1 \(going\)\n$/),
    });
    expect((await going.exit).code).toBe(76);
    const up = await scale(store, '3');
    expect(up).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/has 3 node ids now, and had 1: all lease objects are there\n$/),
    });
    const { nodes } = await statusOf(store);
    expect(nodes[0]).toMatchObject({ state: 'held', taskId: 'staying', version: 1 });
    const fresh = startTask(store, [...options, '--task-id', 'fresh']);
    const { id, version } = await fresh.started();
    expect([1, 2]).toContain(id);
    expect(version).toBe(id === 1 ? 3 : 1);
  });

  describe('with fixed node ids in the same discovery tree', () => {
    const connectTo = () => `${inject('zookeeper').connect}${uniqueChroot('scale')}`;

    it('refuses with 64 to give one of them up, before anything is written, and does not mind leased ones', async () => {
      const store = await newStore('file');
      const connect = connectTo();
      const zookeeper = ['--zookeeper', connect];
      await initCluster(store, '--nodes', '6', '--duration', '9s');
      const fixed = runCli([
        'run',
        '--node-id',
        '3',
        '--task-id',
        'web-3',
        ...zookeeper,
        '--',
        'sleep',
        '300',
      ]);
      const reader = new TreeReader(connect);
      try {
        await reader.until('/discovery/nodes/00/0B', (seen) => seen !== undefined, PATIENCE_MS);
        const before = await contents(store);
        const refused = await scale(store, '2', ...zookeeper);
        expect(refused).toMatchObject({ code: 64, answer: '' });
        expect(refused.complaints).toMatch(
          /^nodelease: number of node ids: expected at least 4, for node id 3 is in use without a lease: task web-3 announces it at .*, got 2 \[CONFIG_INVALID\]\n$/,
        );
        expect(await contents(store)).toEqual(before);
        expect(await scale(store, '4', ...zookeeper)).toMatchObject({ code: 0 });
        // One after the other: of two that start together the loser of a race takes any free id.
        for (const id of [0, 1]) {
          const task = startTask(store, ['--task-id', `leased-${id}`, ...zookeeper]);
          expect((await task.started()).id).toBe(id);
        }
        await reader.until('/discovery/nodes/00/09', (seen) => seen !== undefined, PATIENCE_MS);
        fixed.kill('SIGTERM');
        await fixed.exit;
        await reader.until('/discovery/nodes/00/0B', (seen) => seen === undefined, PATIENCE_MS);
        expect(await scale(store, '1', ...zookeeper)).toMatchObject({
          code: 0,
          complaints: expect.stringContaining('1 (leased-'),
        });
      } finally {
        await reader.close();
      }
    });
  });
});
