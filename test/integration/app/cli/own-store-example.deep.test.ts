import { execFile } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { installed } from '../../../support/installed.js';
import { killAll, runProcess, type TestProcess } from '../../../support/processes.js';
import { exampleFolder } from './example-support.js';
import { removeFolders } from './run-support.js';

const env = { AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local', AWS_REGION: 'local' };
const run = promisify(execFile);

/** The packages that the example needs. */
let packages: string;

beforeAll(async () => {
  packages = await installed('install-dynalite.sh', [], 'install npm');
}, 300_000);

afterEach(async () => {
  await killAll();
  removeFolders();
});

/** The example's folder with everything that it needs. */
function ownStore(): string {
  const folder = exampleFolder('own-store', ['nodelease']);
  for (const name of ['dynalite', '@aws-sdk'])
    symlinkSync(join(packages, name), join(folder, 'node_modules', name));
  return folder;
}

async function nodeOf(service: TestProcess): Promise<{ id: number; version: number }> {
  const [, id, version] = await service.waitForOutput(/^node (\d+), version (\d+)/m, 60_000);
  return { id: Number(id), version: Number(version) };
}

describe('the example of a store of one’s own', () => {
  it('keeps every promise of the contract, by its own tests', async () => {
    const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap'], {
      cwd: ownStore(),
      env: { ...process.env, ...env },
    });
    expect(stdout).toMatch(/^# fail 0$/m);
    expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(25);
  });

  it('gives each service a node id, takes that of a killed one over, and gets back what is released', async () => {
    const cwd = ownStore();
    const server = runProcess(process.execPath, ['local-server.js', '0'], { cwd, env });
    const [endpoint] = await server.waitForOutput(/http:\S+/, 30_000);
    const start = () =>
      runProcess(process.execPath, ['service.js'], {
        cwd,
        env: { ...env, DYNAMODB: endpoint, NODES: '2', DURATION_MS: '4000' },
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
  });
});
