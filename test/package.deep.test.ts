import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);

describe('the package, installed into an empty folder', () => {
  const place = mkdtempSync(join(tmpdir(), 'nodelease-package-'));
  const folder = join(place, 'project');

  beforeAll(async () => {
    await mkdir(folder);
    // What prepack would do has been done by the set-up of these tests, and is in use by them.
    const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', place]);
    const listing: unknown = JSON.parse(stdout);
    const [packed] = (Array.isArray(listing) ? listing : Object.values(listing as object)) as {
      filename: string;
      files: { path: string }[];
    }[];
    expect(packed?.files.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        ...['LICENSE', 'README.md', 'CHANGELOG.md', 'dist/index.d.ts'],
        // What the build copies or compiles apart from the rest.
        ...['dist/console/frame.html', 'dist/console/console.css', 'dist/console/page/main.js'],
        'dist/console/LICENSES',
        ...['dist/cli/nodelease.js', 'dist/cli/package.json', 'dist/cli/LICENSES'],
      ]),
    );
    expect(
      packed?.files.filter(({ path }) => /^(test|src|bench)\/|\.test\.|\.map$|tsbuildinfo/.test(path)),
    ).toEqual([]);
    await writeFile(join(folder, 'package.json'), '{"name":"consumer","private":true,"type":"module"}');
    await run(
      'npm',
      ['install', '--no-audit', '--no-fund', '--prefer-offline', join(place, packed?.filename ?? '')],
      { cwd: folder },
    );
    // prom-client has it as a dependency. Moved there, it is not installed for anything else.
    await mkdir(join(folder, 'node_modules/prom-client/node_modules'), { recursive: true });
    await rename(
      join(folder, 'node_modules/@opentelemetry'),
      join(folder, 'node_modules/prom-client/node_modules/@opentelemetry'),
    );
  }, 240_000);

  afterAll(() => rm(place, { recursive: true, force: true }));

  it('brings what the library needs, and not what is in the bundled command', async () => {
    const { dependencies } = JSON.parse(await readFile(resolve('package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    const installed = await readdir(join(folder, 'node_modules'));
    for (const name of Object.keys(dependencies)) expect(installed).toContain(name.split('/')[0]);
    expect(
      installed.filter((name) =>
        ['@opentelemetry', 'commander', 'pino', 'pino-pretty', 'rolldown'].includes(name),
      ),
    ).toEqual([]);
  });

  it('has the licenses of all packages that are in the bundled command', async () => {
    const bundle = join(folder, 'node_modules/nodelease/dist/cli');
    const files = (await readdir(bundle)).filter((name) => name.endsWith('.js'));
    const texts = await Promise.all(files.map((name) => readFile(join(bundle, name), 'utf8')));
    const bundled = texts.flatMap((text) =>
      [...text.matchAll(/^\/\/ (?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)/gm)].map(([, name]) => name),
    );
    const licenses = await readFile(join(bundle, 'LICENSES'), 'utf8');
    const licensed = [...licenses.matchAll(/^== (.*)$/gm)].flatMap(([, names = '']) =>
      names.split(', ').map((name) => name.split(' ')[0]),
    );
    expect(new Set(bundled)).toEqual(new Set(licensed));
    expect(licensed).toEqual(
      expect.arrayContaining(['@aws-sdk/client-s3', 'commander', 'hono', 'node-zookeeper-client', 'pino']),
    );
  });

  it('has the command', async () => {
    const { stdout } = await run(
      'npx',
      [
        '--no-install',
        'nodelease',
        'run',
        '--store',
        'file:.nodelease',
        '--nodes',
        '3',
        '--',
        'sh',
        '-c',
        'echo $NODE_ID $NODE_ID_VERSION',
      ],
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
       import { observedAge, openStore, probeStore } from 'nodelease/store';
       import { leaseStoreContract } from 'nodelease/store/testing';
       import { FileLeaseStore } from 'nodelease/store/file';
       import { MemoryLeaseStore } from 'nodelease/store/memory';
       import { S3LeaseStore } from 'nodelease/store/s3';
       import { Discovery } from 'nodelease/discovery';
       import { ServiceDiscovery } from 'nodelease/services';
       import { serviceDispatcher } from 'nodelease/routing';
       import { discoveryApp } from 'nodelease/http';
       import { standaloneIds } from 'nodelease/ids';
       import { acquireLock } from 'nodelease/locks';
       import { ownShards, shardRouter } from 'nodelease/shards';
       import { openZooKeeper } from 'nodelease/zookeeper';
       const lease = await acquire({ store: 'file:leases', nodes: 2, taskId: 'program' });
       console.log(lease.id, lease.version, lease.taskId, lease.isValid());
       await lease.release();
       console.log([observedAge, leaseStoreContract].map((it) => typeof it).join());
       console.log([acquireLease, openStore, probeStore, FileLeaseStore, MemoryLeaseStore, S3LeaseStore, staticLease, LeaseLostError].map((it) => typeof it).join());
       console.log([Discovery, ServiceDiscovery, serviceDispatcher, discoveryApp, standaloneIds, acquireLock, ownShards, shardRouter, openZooKeeper].map((it) => typeof it).join());
       console.log(typeof nativeCodec.decode);`,
    );
    const { stdout } = await run(process.execPath, ['program.mjs'], { cwd: folder });
    expect(stdout).toBe(
      `0 1 program true\nfunction,function\n${Array(8).fill('function').join()}\n${Array(9).fill('function').join()}\nfunction\n`,
    );
  });

  it('traces where the API of OpenTelemetry is installed', async () => {
    const api = join(folder, 'node_modules/@opentelemetry');
    await symlink(resolve('node_modules/@opentelemetry'), api);
    await writeFile(
      join(folder, 'traced.mjs'),
      `import { acquire } from 'nodelease';
       const lease = await acquire({ store: 'file:traced', nodes: 1 });
       await lease.release();`,
    );
    const sdk = pathToFileURL(resolve('test/fixtures/programs/spans-to-file.mjs')).href;
    const spansFile = join(folder, 'spans');
    await run(process.execPath, ['--import', sdk, 'traced.mjs'], {
      cwd: folder,
      env: { ...process.env, SPANS_FILE: spansFile },
    });
    await unlink(api);
    const spans = (await readFile(spansFile, 'utf8')).trim().split('\n');
    expect(spans.map((line) => (JSON.parse(line) as { name: string }).name)).toEqual([
      'nodelease.acquire',
      'nodelease.release',
    ]);
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
    await run(resolve('node_modules/.bin/tsc'), [...options, '--skipLibCheck', 'program.ts'], {
      cwd: folder,
    });
  });
});
