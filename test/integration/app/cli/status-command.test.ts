import { afterEach, describe, expect, it, vi } from 'vitest';
import { encodeCluster, newCluster } from '../../../../src/core/lease/model/cluster-config.js';
import type { StatusReport } from '../../../../src/node/wire/status-report.js';
import { type FleetStore, newStore, removeStores, startTask } from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { cliFile, killAll, runCli, runProcess } from '../../../support/processes.js';

afterEach(async () => {
  vi.unstubAllEnvs();
  await killAll();
  await removeStores();
});

async function answer(store: FleetStore, ...args: string[]): Promise<string> {
  const { answer, ...end } = await runInProcess(['status', ...store.options, ...args], { env: store.env });
  expect(end).toEqual({ code: 0, complaints: '' });
  return answer;
}

describe('nodelease status', () => {
  it('shows who holds what on S3, from before there is a cluster until after the release', async () => {
    const store = await newStore('s3');
    expect(await runInProcess(['status', ...store.options], { env: store.env })).toEqual({
      code: 69,
      answer: expect.stringMatching(/^There is no cluster at .* yet: .*\n$/),
      complaints: '',
    });
    const task = startTask(store, ['--nodes', '3', '--task-id', 'somebody']);
    // The first start probes the store, too.
    await task.started();
    expect(await answer(store)).toMatch(
      /^ID {2}STATE .*PROBLEM\n 0 {2}held +1 {2}somebody +~?\d+\.\ds +\d+\.\ds\n/,
    );
    const held = JSON.parse(await answer(store, '--json')) as StatusReport;
    expect(held.nodes).toHaveLength(3);
    expect(held.nodes[0]).toMatchObject({
      id: 0,
      state: 'held',
      version: 1,
      taskId: 'somebody',
      problem: null,
    });
    // It is renewed when 10 s of it are left, or later by what the machine takes for that.
    expect(held.nodes[0]?.expiresInMs).toBeGreaterThan(5_000);
    expect(held.nodes[0]?.expiresInMs).toBeLessThanOrEqual(15_000);
    task.kill('SIGTERM');
    await task.exit;
    const released = JSON.parse(await answer(store, '--json')) as StatusReport;
    expect(released.nodes[0]).toMatchObject({
      state: 'released',
      version: 1,
      taskId: null,
      expiresInMs: null,
    });
  });

  it('of many node ids loses nothing in a pipe whose reader is slow', async () => {
    const store = await newStore('file');
    // All of them are absent: there is a line for each.
    await store.spoil('cluster.json', encodeCluster({ ...newCluster({ nodes: 2_000 }), bootstrapped: true }));
    const pipeline = '"$0" "$1" status --json --all --store "$2" | (sleep 1; cat)';
    const shell = runProcess('sh', ['-c', pipeline, process.execPath, cliFile, store.options[1] ?? '']);
    await shell.exit;
    const [line = '', ...more] = shell.stdout().split('\n');
    expect(more).toEqual(['']);
    // Several times what a pipe takes at once.
    expect(line.length).toBeGreaterThan(4 * 65_536);
    expect((JSON.parse(line) as StatusReport).nodes).toHaveLength(2_000);
  });
});

describe('nodelease status --watch', () => {
  it('goes on until SIGTERM, and ends with 0', async () => {
    const store = await newStore('file');
    const watch = runCli(['status', '--watch', ...store.options]);
    await watch.waitForOutput(/(There is no cluster.*\n\n){2}/);
    watch.kill('SIGTERM');
    expect(await watch.exit).toEqual({ code: 0, signal: null });
    expect(watch.stderr()).toBe('');
  });

  it('ends without a complaint when its reader has read enough', async () => {
    const store = await newStore('file');
    const pipeline = '"$0" "$1" status --watch --json --store "$2" | head -n 1';
    const shell = runProcess('sh', ['-c', pipeline, process.execPath, cliFile, store.options[1] ?? '']);
    expect(await shell.exit).toEqual({ code: 0, signal: null });
    const [, ...more] = shell.stdout().split('\n');
    expect([JSON.parse(shell.stdout()), more]).toMatchObject([
      { store: store.options[1], cluster: null, nodes: [] },
      [''],
    ]);
    expect(shell.stderr()).toBe('');
  });
});
