import { afterEach, describe, expect, it } from 'vitest';
import type { StatusReport } from '../../../src/monitor/status-report.js';
import { type FleetStore, newStore, removeStores, startTask } from '../../support/fleet.js';
import { cliFile, killAll, runCli, runProcess } from '../../support/processes.js';

afterEach(async () => {
  await killAll();
  await removeStores();
});

async function answer(store: FleetStore, ...args: string[]): Promise<string> {
  const status = runCli(['status', ...store.options, ...args], { env: store.env });
  expect(await status.exit).toEqual({ code: 0, signal: null });
  expect(status.stderr()).toBe('');
  return status.stdout();
}

describe.each(['file', 's3'] as const)('nodelease status on %s', (kind) => {
  it('shows who holds what, from before there is a cluster until after the release', async () => {
    const store = await newStore(kind);
    expect(await answer(store)).toMatch(/^There is no cluster at .* yet: .*\n$/);
    const task = startTask(store, ['--nodes', '3', '--task-id', 'somebody']);
    await task.started();
    expect(await answer(store)).toMatch(/^ID {2}STATE .*PROBLEM\n 0 {2}held +1 {2}somebody +~?\d+\.\ds +\d+\.\ds\n/);
    const held = JSON.parse(await answer(store, '--json')) as StatusReport;
    expect(held.nodes).toHaveLength(3);
    expect(held.nodes[0]).toMatchObject({ id: 0, state: 'held', version: 1, taskId: 'somebody', problem: null });
    expect(held.nodes[0]?.expiresInMs).toBeGreaterThan(8_000);
    expect(held.nodes[0]?.expiresInMs).toBeLessThanOrEqual(15_000);
    task.kill('SIGTERM');
    await task.exit;
    const released = JSON.parse(await answer(store, '--json')) as StatusReport;
    expect(released.nodes[0]).toMatchObject({ state: 'released', version: 1, taskId: null, expiresInMs: null });
  });
});

describe('nodelease status --watch', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)('goes on until %s, and ends with 0', async (signal) => {
    const store = await newStore('file');
    const watch = runCli(['status', '--watch', ...store.options]);
    await watch.waitForOutput(/(There is no cluster.*\n\n){2}/);
    watch.kill(signal);
    expect(await watch.exit).toEqual({ code: 0, signal: null });
    expect(watch.stderr()).toBe('');
  });

  it('ends without a complaint when its reader has read enough', async () => {
    const store = await newStore('file');
    const pipeline = '"$0" "$1" status --watch --json --store "$2" | head -n 1';
    const shell = runProcess('sh', ['-c', pipeline, process.execPath, cliFile, store.options[1] ?? '']);
    expect(await shell.exit).toEqual({ code: 0, signal: null });
    const [, ...more] = shell.stdout().split('\n');
    expect([JSON.parse(shell.stdout()), more]).toMatchObject([{ store: store.options[1], cluster: null, nodes: [] }, ['']]);
    expect(shell.stderr()).toBe('');
  });
});

describe('nodelease status of many node ids', () => {
  it('loses nothing in a pipe whose reader is slow', async () => {
    const store = await newStore('file');
    const init = runCli(['init', '--nodes', '2000', ...store.options]);
    expect((await init.exit).code).toBe(0);
    const shell = runProcess('sh', [
      '-c',
      '"$0" "$1" status --json --all --store "$2" | (sleep 1; wc -l; )',
      process.execPath,
      cliFile,
      store.options[1] ?? '',
    ]);
    await shell.exit;
    expect(shell.stdout().trim()).toBe('1');
    const report = JSON.parse(await answer(store, '--json', '--all')) as StatusReport;
    expect(report.nodes).toHaveLength(2_000);
  });

  it('is refused with a reason where it is to begin beyond them', async () => {
    const store = await newStore('file');
    expect((await runCli(['init', '--nodes', '4', ...store.options]).exit).code).toBe(0);
    for (const args of [
      ['--from', '4'],
      ['--limit', '0'],
      ['--held', '--free'],
      ['--all', '--from', '1'],
    ]) {
      const status = runCli(['status', ...store.options, ...args]);
      expect((await status.exit).code).toBe(64);
      expect(status.stderr()).toMatch(/^nodelease: [^\n]*--[^\n]+\n$/);
      expect(status.stdout()).toBe('');
    }
  });
});
