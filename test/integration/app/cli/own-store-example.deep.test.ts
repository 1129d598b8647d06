import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { killAll, runProcess, type TestProcess } from '../../../support/processes.js';
import { exampleFolder } from './example-support.js';
import { removeFolders } from './run-support.js';

const run = promisify(execFile);

afterEach(async () => {
  await killAll();
  removeFolders();
});

/** The example's folder with everything that it needs. */
const ownStore = () => exampleFolder('own-store', ['nodelease']);

async function nodeOf(service: TestProcess): Promise<{ id: number; version: number }> {
  const [, id, version] = await service.waitForOutput(/^node (\d+), version (\d+)/m, 60_000);
  return { id: Number(id), version: Number(version) };
}

describe('the example of a store of one’s own', () => {
  it('keeps every promise of the contract, by its own tests', async () => {
    const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap'], {
      cwd: ownStore(),
    });
    expect(stdout).toMatch(/^# fail 0$/m);
    expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(25);
  });

  it('gives each service a node id, takes that of a killed one over, and gets back what is released', async () => {
    const cwd = ownStore();
    const server = runProcess(process.execPath, ['local-server.js', '0'], { cwd });
    const [endpoint] = await server.waitForOutput(/http:\S+/, 30_000);
    const start = () =>
      runProcess(process.execPath, ['service.js'], {
        cwd,
        env: { CONSUL: endpoint ?? '', NODES: '2', DURATION_MS: '4000' },
      });
    const first = start();
    expect(await nodeOf(first)).toEqual({ id: 0, version: 1 });
    const second = start();
    expect(await nodeOf(second)).toEqual({ id: 1, version: 1 });
    const heir = start();
    first.kill('SIGKILL');
    expect(await nodeOf(heir)).toEqual({ id: 0, version: 2 });
    second.kill('SIGTERM');
    expect((await second.exit).code).toBe(0);
    expect(await nodeOf(start())).toEqual({ id: 1, version: 2 });
    const waiting = start();
    await expect.poll(() => waiting.stderr(), { timeout: 60_000 }).toMatch(/^nodelease: /m);
    waiting.kill('SIGTERM');
    expect((await waiting.exit).code, waiting.stderr()).toBe(0);
  });
});
