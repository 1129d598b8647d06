import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);

describe('the package, installed into an empty folder', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodelease-package-'));
    const project = join(folder, 'project');
    await mkdir(project);
    // What prepack would do has been done by the set-up of these tests, and is in use by them.
    const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]);
    const listing: unknown = JSON.parse(stdout);
    const [packed] = (Array.isArray(listing) ? listing : Object.values(listing as object)) as {
      filename: string;
      files: { path: string }[];
    }[];
    expect(packed?.files.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        ...['LICENSE', 'README.md', 'CHANGELOG.md', 'dist/index.d.ts'],
        // What the build copies or compiles apart from the rest.
        ...['dist/console/index.html', 'dist/console/console.css', 'dist/console/page/main.js'],
      ]),
    );
    expect(packed?.files.filter(({ path }) => /^(test|src|bench)\/|\.test\.|tsbuildinfo/.test(path))).toEqual([]);
    await writeFile(join(project, 'package.json'), '{"name":"consumer","private":true,"type":"module"}');
    await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', join(folder, packed?.filename ?? '')], { cwd: project });
    folder = project;
  }, 240_000);

  afterAll(async () => {
    await rm(resolve(folder, '..'), { recursive: true, force: true });
  });

  it('has the command', async () => {
    const { stdout } = await run(
      'npx',
      ['--no-install', 'nodelease', 'run', '--nodes', '3', '--', 'sh', '-c', 'echo $NODE_ID $NODE_ID_VERSION'],
      {
        cwd: folder,
      },
    );
    expect(stdout).toBe('0 1\n');
    const version = await run('npx', ['--no-install', 'nodelease', '--version'], { cwd: folder });
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('has the library, with every entry point', async () => {
    await writeFile(
      join(folder, 'program.mjs'),
      `import { acquire, staticLease, LeaseLostError } from 'nodelease';
       import { acquireLease, nativeCodec } from 'nodelease/engine';
       import { openStore, probeStore } from 'nodelease/store';
       import { FileLeaseStore } from 'nodelease/store/file';
       import { MemoryLeaseStore } from 'nodelease/store/memory';
       import { S3LeaseStore } from 'nodelease/store/s3';
       import { Discovery } from 'nodelease/discovery';
       import { ServiceDiscovery } from 'nodelease/services';
       import { serviceDispatcher } from 'nodelease/routing';
       import { discoveryApp } from 'nodelease/http';
       import { standaloneIds } from 'nodelease/ids';
       import { openZooKeeper } from 'nodelease/zookeeper';
       const lease = await acquire({ store: 'file:leases', nodes: 2, taskId: 'program' });
       console.log(lease.id, lease.version, lease.taskId, lease.isValid());
       await lease.release();
       console.log([acquireLease, openStore, probeStore, FileLeaseStore, MemoryLeaseStore, S3LeaseStore, staticLease, LeaseLostError].map((it) => typeof it).join());
       console.log([Discovery, ServiceDiscovery, serviceDispatcher, discoveryApp, standaloneIds, openZooKeeper].map((it) => typeof it).join());
       console.log(typeof nativeCodec.decode);`,
    );
    const { stdout } = await run(process.execPath, ['program.mjs'], { cwd: folder });
    expect(stdout).toBe(`0 1 program true\n${Array(8).fill('function').join()}\n${Array(6).fill('function').join()}\nfunction\n`);
  });

  it('has types that a strict consumer can compile against', async () => {
    await writeFile(
      join(folder, 'program.ts'),
      `import { acquire, type Lease, type LeaseEvent } from 'nodelease';
       import type { LeaseStore } from 'nodelease/store';
       import { S3LeaseStore } from 'nodelease/store/s3';
       import { FileLeaseStore } from 'nodelease/store/file';
       import { MemoryLeaseStore } from 'nodelease/store/memory';
       import { acquireLease } from 'nodelease/engine';
       export async function program(): Promise<number> {
         await using lease: Lease = await acquire({ onEvent: (event: LeaseEvent) => console.log(event.type) });
         return lease.id;
       }
       export const all: unknown[] = [S3LeaseStore, FileLeaseStore, MemoryLeaseStore, acquireLease];
       export type Store = LeaseStore;`,
    );
    await mkdir(join(folder, 'node_modules/@types'), { recursive: true });
    await symlink(resolve('node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
    await symlink(resolve('node_modules/undici-types'), join(folder, 'node_modules/undici-types'));
    const options = [
      '--strict',
      '--noEmit',
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--lib',
      'es2023,esnext.disposable',
      '--types',
      'node',
    ];
    await run(resolve('node_modules/.bin/tsc'), [...options, '--skipLibCheck', 'program.ts'], { cwd: folder });
  });
});
