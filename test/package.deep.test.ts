import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, symlink, unlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type InstalledPackage, installPackage } from './support/installed-package.js';

const run = promisify(execFile);

describe('the package, installed into an empty folder', () => {
  let installed: InstalledPackage;
  let folder: string;

  beforeAll(async () => {
    installed = await installPackage();
    folder = installed.folder;
  });

  afterAll(() => installed.remove());

  it('has what the build compiles, bundles and copies, and no sources or tests', () => {
    expect(installed.files).toEqual(
      expect.arrayContaining([
        ...['LICENSE', 'README.md', 'CHANGELOG.md', 'dist/index.d.ts'],
        ...['dist/console/frame.html', 'dist/console/console.css', 'dist/console/page/main.js'],
        'dist/console/LICENSES',
        ...['dist/cli/openapi.json', 'dist/app/services/curator/openapi.json'],
        ...['dist/cli/nodelease.js', 'dist/cli/package.json', 'dist/cli/LICENSES'],
      ]),
    );
    expect(
      installed.files.filter((path) => /^(test|src|bench)\/|\.test\.|\.map$|tsbuildinfo/.test(path)),
    ).toEqual([]);
  });

  it('brings what the library needs, and not what is in the bundled command', async () => {
    const { dependencies } = JSON.parse(await readFile(resolve('package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    const present = await readdir(join(folder, 'node_modules'));
    for (const name of Object.keys(dependencies)) expect(present).toContain(name.split('/')[0]);
    expect(
      present.filter((name) =>
        ['@opentelemetry', 'commander', 'pino', 'pino-pretty', 'rolldown'].includes(name),
      ),
    ).toEqual([]);
  });

  it('has all files that its README links to', async () => {
    const root = join(folder, 'node_modules/nodelease');
    const readme = await readFile(join(root, 'README.md'), 'utf8');
    const targets = [...readme.matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) => target);
    const missing = targets.filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(root, target)));
    expect(targets.length).toBeGreaterThan(30);
    expect(missing).toEqual([]);
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

  it('loads no package of CommonJS, such as the ZooKeeper library, before it is used', async () => {
    await writeFile(
      join(folder, 'lean.mjs'),
      `import 'nodelease';
       import { createRequire } from 'node:module';
       console.log(Object.keys(createRequire(import.meta.url).cache));`,
    );
    expect((await run(process.execPath, ['lean.mjs'], { cwd: folder })).stdout).toBe('[]\n');
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

  describe('has types that a strict consumer compiles, with those of all libraries', () => {
    let entries: readonly string[];

    beforeAll(async () => {
      const { exports } = JSON.parse(await readFile(resolve('package.json'), 'utf8')) as {
        exports: Record<string, unknown>;
      };
      entries = Object.keys(exports).filter((path) => path !== './package.json');
      await writeFile(
        join(folder, 'program.ts'),
        `${entries.map((path, n) => `export * as entry${n} from 'nodelease${path.slice(1)}';`).join('\n')}
         import { acquire, type Lease, type LeaseEvent } from 'nodelease';
         export async function program(): Promise<number> {
           await using lease: Lease = await acquire({ onEvent: (event: LeaseEvent) => console.log(event.type) });
           return lease.id;
         }`,
      );
      // The only types that it installs: those of Node.js, and of what fetch is declared in.
      await mkdir(join(folder, 'node_modules/@types'), { recursive: true });
      await symlink(resolve('node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
      await symlink(resolve('node_modules/undici-types'), join(folder, 'node_modules/undici-types'));
    });

    it.each([
      ['node16', 'node16'],
      ['nodenext', 'nodenext'],
      ['esnext', 'bundler'],
    ])('as modules of %s, resolved for %s', async (module, moduleResolution) => {
      const options = { strict: true, noEmit: true, skipLibCheck: false, module, moduleResolution };
      await writeFile(
        join(folder, 'tsconfig.json'),
        JSON.stringify({
          compilerOptions: {
            ...options,
            ...{ target: 'es2023', lib: ['es2023', 'esnext.disposable'], types: ['node'] },
          },
          files: ['program.ts'],
        }),
      );
      await run(resolve('node_modules/.bin/tsc'), [], { cwd: folder });
    });

    it('and whose options take undefined, also with exactOptionalPropertyTypes', async () => {
      // What users implement, and what they have from the library, are no options.
      const program = `
      ${entries.map((path, n) => `import * as entry${n} from 'nodelease${path.slice(1)}';`).join('\n')}
      import type { AcquireOptions, AcquireZooKeeperOptions, DataDirOptions, LeaseStore } from 'nodelease';
      import type { ClusterConfig } from 'nodelease/engine';
      import type { InstancePicker } from 'nodelease/routing';

      type NoOptions = LeaseStore | ClusterConfig | InstancePicker | readonly unknown[] | Uint8Array | ((...given: never[]) => unknown);
      type Given<F> = F extends (...given: infer A) => unknown ? A[number] : F extends new (...given: infer A) => unknown ? A[number] : never;
      /** The optional fields that cannot be undefined. */
      type Refused<T> = T extends NoOptions ? never : T extends object
        ? { [K in keyof T]-?: {} extends Pick<T, K> ? ({ [P in K]: undefined } extends Pick<T, K> ? never : K) : never }[keyof T]
        : never;
      type All<Entry> = { [Name in keyof Entry as [Refused<Given<Entry[Name]>>] extends [never] ? never : Name]: Refused<Given<Entry[Name]>> };
      type None = Record<string, never>;
      type IsNone<T extends None> = T;
      export type Checked = [
        ${entries.map((_, n) => `IsNone<All<typeof entry${n}>>`).join(',\n')},
        IsNone<{ [Name in Refused<AcquireZooKeeperOptions> | Refused<DataDirOptions> | Refused<AcquireOptions>]: Name }>,
      ];
      // @ts-expect-error The check finds such a field.
      export type Twin = IsNone<All<{ open: (options: { readonly signal?: AbortSignal }) => void }>>;

      export const options = (port?: number, nodes?: number): AcquireOptions => ({
        nodes,
        onEvent: undefined,
        zookeeper: { connect: 'zk1', port, tls: undefined },
      });`;
      await writeFile(join(folder, 'program.ts'), program);
      await writeFile(
        join(folder, 'tsconfig.json'),
        JSON.stringify({
          compilerOptions: {
            ...{ strict: true, noEmit: true, skipLibCheck: true, exactOptionalPropertyTypes: true },
            ...{ module: 'nodenext', moduleResolution: 'nodenext', types: ['node'] },
            ...{ target: 'es2023', lib: ['es2023', 'esnext.disposable'] },
          },
          files: ['program.ts'],
        }),
      );
      await run(resolve('node_modules/.bin/tsc'), ['--noErrorTruncation'], { cwd: folder });
    });
  });

  it('has no fault that publint or are-the-types-wrong knows', async () => {
    const { tarball } = installed;
    const { messages } = await publint({ pack: { tarball: new Uint8Array(await readFile(tarball)).buffer } });
    // The command is a script for /bin/sh, and the shell stays where it is process 1 of a container.
    expect(messages.filter(({ code }) => code !== 'BIN_FILE_NOT_EXECUTABLE')).toEqual([]);
    // It exits with 1 for a fault. The package has ES modules only, which CommonJS gets by `import()`.
    await run(resolve('node_modules/.bin/attw'), [tarball, '--profile', 'esm-only', '--no-definitely-typed']);
  });
});
