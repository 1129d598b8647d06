import { afterEach, describe, expect, inject, it } from 'vitest';
import type { StatusReport } from '../../src/monitor/status-report.js';
import { type FleetStore, fleetStore, startTask } from '../support/fleet.js';
import { killAll, runCli } from '../support/processes.js';
import { S3StandIn } from '../support/s3-stand-in.js';

/** How long anything may take on a loaded machine, in milliseconds. */
const PATIENCE_MS = 60_000;

const stores: FleetStore[] = [];

async function newStore(kind: 'file' | 's3'): Promise<FleetStore> {
  const store = await fleetStore(kind, inject('s3'));
  stores.push(store);
  return store;
}

afterEach(async () => {
  await killAll();
  for (const store of stores.splice(0)) await store.remove();
});

function call(store: FleetStore, ...args: string[]) {
  return runCli([...args, ...store.options], { env: store.env });
}

async function scale(store: FleetStore, ...args: string[]) {
  const command = call(store, 'scale', ...args);
  const { code } = await command.exit;
  return { code, answer: command.stdout(), complaints: command.stderr() };
}

async function status(store: FleetStore): Promise<StatusReport> {
  const command = call(store, 'status', '--json');
  await command.exit;
  return JSON.parse(command.stdout()) as StatusReport;
}

const settings = async (store: FleetStore) => JSON.parse((await store.read('cluster.json')) ?? '{}') as Record<string, unknown>;

describe.each(['file', 's3'] as const)('nodelease scale on %s', (kind) => {
  it(
    'gives more node ids to running tasks, who all make wider unique ids before anybody gets an id that takes them',
    async () => {
      const store = await newStore(kind);
      const options = ['--nodes', '3', '--duration', '6s'];
      const tasks = [0, 1, 2].map((number) => startTask(store, [...options, '--task-id', `old-${number}`]));
      const ids = await Promise.all(tasks.map(async (task) => (await task.started(PATIENCE_MS)).id));
      expect(ids.sort()).toEqual([0, 1, 2]);
      const waiting = startTask(store, options);
      await waiting.waitForOutput(/no node id is free/, PATIENCE_MS);

      const { code, answer, complaints } = await scale(store, '300');
      expect({ code, complaints }).toMatchObject({ code: 0 });
      expect(answer).toMatch(
        /^the cluster at .* has 300 node ids now, and had 3: 297 lease objects written\na node id takes 9 bits in unique ids\n$/,
      );
      expect(complaints).toMatch(
        /^nodelease: waiting for [123] holders? to make .* 9 bits .*: \d \(old-\d, 8 bits\).*\nnodelease: every holder makes .*\n$/,
      );
      expect((await waiting.started(PATIENCE_MS)).id).toBeGreaterThanOrEqual(3);
      const fresh = startTask(store, [...options, '--task-id', 'fresh']);
      expect((await fresh.started(PATIENCE_MS)).id).toBeGreaterThanOrEqual(3);

      const { cluster, nodes } = await status(store);
      expect(cluster).toMatchObject({ size: 300, idWidth: 9 });
      const held = nodes.filter(({ state }) => state === 'held');
      expect(held.map(({ idWidth }) => idWidth)).toEqual([9, 9, 9, 9, 9]);
      expect(nodes.filter(({ taskId }) => taskId?.startsWith('old-')).map(({ id, version }) => [id, version])).toEqual([
        [0, 1],
        [1, 1],
        [2, 1],
      ]);
      // None of them made ids, and says so: nobody has to wait for what they might have made.
      expect((await settings(store)).idFloor).toBeUndefined();
      expect(await store.keys()).toHaveLength(301);
      expect(await scale(store, '300')).toMatchObject({ code: 0, answer: expect.stringMatching(/300 node ids already: nothing to do\n$/) });
    },
    2 * PATIENCE_MS,
  );

  it(
    'ends with 75 when a holder does not follow in time, names it, and goes on when it is called again',
    async () => {
      const store = await newStore(kind);
      const holder = startTask(store, ['--nodes', '3', '--duration', '10m', '--task-id', 'slow']);
      await holder.started(PATIENCE_MS);
      const first = await scale(store, '300', '--wait-timeout', '1s');
      expect(first).toMatchObject({ code: 75, answer: '' });
      expect(first.complaints).toMatch(/did not go over to 9 bits .* 0 \(slow, 8 bits\); .* stays published, nodelease scale 300 goes on/);
      expect(await settings(store)).toMatchObject({ size: 3, idWidth: 9 });
      const table = call(store, 'status');
      await table.exit;
      expect(table.stdout()).toMatch(/^growing: .* 9 bits .*, 1 holder not there yet: 0 \(slow, 8 bits\)\nID {2}STATE/);
      holder.kill('SIGTERM');
      await holder.exit;
      expect(await scale(store, '300')).toMatchObject({ code: 0, complaints: '' });
      expect(await settings(store)).toMatchObject({ size: 300, idWidth: 9 });
    },
    2 * PATIENCE_MS,
  );
});

describe('nodelease scale', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)('ends by %s while it waits, with the cluster as it was but for the width', async (signal) => {
    const store = await newStore('file');
    const holder = startTask(store, ['--nodes', '3', '--duration', '10m']);
    await holder.started(PATIENCE_MS);
    const command = call(store, 'scale', '300');
    await command.waitForOutput(/waiting for 1 holder/, PATIENCE_MS);
    command.kill(signal);
    expect((await command.exit).code).toBe(signal === 'SIGINT' ? 130 : 143);
    expect(command.stderr()).toMatch(/^nodelease: waiting for .*\n$/);
    expect(command.stdout()).toBe('');
    expect(await settings(store)).toMatchObject({ size: 3, idWidth: 9 });
    expect(holder.kill('SIGTERM')).toBe(true);
    await holder.exit;
  });

  it('grows a cluster whose tasks are gone without a release, once their leases have expired', async () => {
    const store = await newStore('file');
    const holder = startTask(store, ['--nodes', '3', '--duration', '2s', '--task-id', 'gone']);
    await holder.started(PATIENCE_MS);
    holder.kill('SIGKILL');
    await holder.exit;
    const { code, complaints } = await scale(store, '300');
    expect({ code, complaints }).toMatchObject({ code: 0 });
    const { nodes } = await status(store);
    expect(nodes[0]).toMatchObject({ state: 'released', version: 2 });
    expect((await settings(store)).idFloor).toBe((nodes[0]?.timestamp ?? 0) - 1);
  });

  it('refuses fewer node ids than there are with 64, and a cluster that is not there with 69', async () => {
    const store = await newStore('file');
    expect(await scale(store, '5')).toMatchObject({
      code: 69,
      complaints: expect.stringMatching(/^nodelease: there is no cluster at .* nodelease init --nodes 5 makes one\n$/),
    });
    expect(await store.keys()).toEqual([]);
    await call(store, 'init', '--nodes', '6').exit;
    expect(await scale(store, '5')).toEqual({
      code: 64,
      answer: '',
      complaints:
        'nodelease: number of node ids: expected at least 6, which the cluster has: taking node ids away is not offered yet, got 5\n',
    });
    expect(await store.keys()).toHaveLength(7);
  });

  it('says in one line, with 69, that the store denies writing', async () => {
    const server = await S3StandIn.start();
    try {
      const env = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' };
      const options = ['--store', 's3://bucket/fleet', '--endpoint', server.endpoint];
      expect((await runCli(['init', '--nodes', '3', ...options], { env }).exit).code).toBe(0);
      server.next('as-usual', 'as-usual', { status: 403, code: 'AccessDenied' });
      const command = runCli(['scale', '4', ...options], { env });
      expect((await command.exit).code).toBe(69);
      expect(command.stderr()).toMatch(/^nodelease: .*creating 3\.json: access denied .*\n$/);
      expect(command.stdout()).toBe('');
      const again = runCli(['scale', '4', ...options], { env });
      expect((await again.exit).code).toBe(0);
    } finally {
      await server.stop();
    }
  });
});
