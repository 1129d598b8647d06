import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { fleetStore } from '../../../support/fleet.js';
import { packageRoot } from '../../../support/package-root.js';
import { cliFile, killAll, runCli, runProcess } from '../../../support/processes.js';

const bundle = dirname(cliFile);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-bundle-'));
});
afterEach(async () => {
  await killAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

/**
 * The URLs of what the main thread of a command has loaded: V8 writes the coverage of each thread down when it
 * ends.
 */
async function loadedModules(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const coverage = await mkdtemp(join(folder, 'coverage-'));
  const task = runCli(args, { env: { ...env, NODE_V8_COVERAGE: coverage } });
  expect((await task.exit).code, task.stderr()).toBe(0);
  const reports = await Promise.all(
    (await readdir(coverage)).map((name) => readFile(join(coverage, name), 'utf8')),
  );
  const threads = reports.map((report) =>
    (JSON.parse(report) as { result: { url: string }[] }).result.map(({ url }) => url),
  );
  const urls = threads.find((each) => each.some((url) => url.endsWith('/nodelease.js'))) ?? [];
  return urls.sort();
}

async function loadedFiles(...command: Parameters<typeof loadedModules>): Promise<string[]> {
  return (await loadedModules(...command)).filter((url) => url.startsWith('file:'));
}

/** Those of Node's own modules that are for everyone: the rest differs from version to version. */
async function loadedBuiltins(...command: Parameters<typeof loadedModules>): Promise<string[]> {
  const own = /^node:(?!internal\/|_)(.+)$/;
  return (await loadedModules(...command)).flatMap((url) => own.exec(url)?.[1] ?? []);
}

const FOR_EVERY_COMMAND = [
  ...[
    'buffer',
    'console',
    'crypto',
    'diagnostics_channel',
    'events',
    'fs',
    'module',
    'net',
    'os',
    'path',
    'process',
  ],
  ...['stream', 'stream/promises', 'string_decoder', 'tty', 'url', 'vm'],
];
const FOR_A_CHILD = ['child_process', 'dgram', 'fs/promises', 'timers', 'util'];

/** Sources and packages that files of the bundle were made of. */
async function partsOf(files: readonly string[]): Promise<string[]> {
  const texts = await Promise.all(files.map((file) => readFile(new URL(file), 'utf8')));
  const parts = texts.flatMap((text) => [
    ...text.matchAll(/^\/\/ (src\/\S+|node_modules\/(?:@[^/]+\/)?[^/]+)/gm),
  ]);
  return [...new Set(parts.map(([, part = '']) => part))].sort();
}

describe('the bundled command', () => {
  it('loads for a run on S3 its own files and the S3 client, and nothing of HTTP, metrics, ZooKeeper, or other stores', async () => {
    const store = await fleetStore('s3', inject('s3'));
    const files = await loadedFiles(['run', '--nodes', '1', ...store.options, '--', 'true'], store.env);
    expect(files.map((file) => basename(file))).toEqual([
      'aws.js',
      'base.js',
      'main.js',
      'nodelease.js',
      'rolldown-runtime.js',
      'run.js',
      's3.js',
    ]);
    const parts = await partsOf(files);
    expect(
      parts.filter((part) => !part.startsWith('src/')).map((part) => part.slice('node_modules/'.length)),
    ).toEqual([
      ...['@aws-sdk/checksums', '@aws-sdk/client-s3', '@aws-sdk/core', '@aws-sdk/credential-provider-env'],
      ...[
        '@aws-sdk/credential-provider-node',
        '@aws-sdk/middleware-sdk-s3',
        '@aws-sdk/signature-v4-multi-region',
      ],
      ...[
        '@aws-sdk/xml-builder',
        '@aws/lambda-invoke-store',
        '@pinojs/redact',
        '@smithy/core',
        '@smithy/node-http-handler',
      ],
      ...[
        '@smithy/signature-v4',
        '@smithy/types',
        'atomic-sleep',
        'commander',
        'is-network-error',
        'on-exit-leak-free',
        'p-retry',
      ],
      ...['pino', 'pino-std-serializers', 'quick-format-unescaped', 'safe-stable-stringify', 'sonic-boom'],
    ]);
    const other =
      /^src\/(node\/monitor\/|app\/console\/|core\/store\/(file|memory)\/(?!.*-kind\.ts$))|(node-http|node-server|zookeeper-client|discoverer)\.ts$/;
    expect(parts.filter((part) => other.test(part))).toEqual([]);
  });

  it('loads for a run on files no S3 client', async () => {
    const files = await loadedFiles(['run', '--store', `file:${folder}/leases`, '--', 'true']);
    const parts = await partsOf(files);
    expect(parts.filter((part) => /aws|smithy|store\/(s3|memory)\/(?!.*-kind\.ts$)/.test(part))).toEqual([]);
    expect(parts).toContain('src/core/store/file/file-lease-store.ts');
  });

  it('loads for a store in DynamoDB no S3 client', async () => {
    const needed = new Set(['open-dynamodb-store.js']);
    for (const name of needed) {
      const text = await readFile(join(bundle, name), 'utf8');
      for (const [, file = ''] of text.matchAll(/^(?:const \w+ = )?require\("\.\/(.+?)"\)/gm))
        needed.add(file);
    }
    expect([...needed]).toContain('aws.js');
    const parts = await partsOf([...needed].map((name) => pathToFileURL(join(bundle, name)).href));
    expect(parts.filter((part) => /@aws-sdk|@smithy|store\/s3\/(?!.*-kind\.ts$)/.test(part))).toEqual([]);
  });

  it('loads those modules of Node.js that a command uses, and no others', async () => {
    const store = await fleetStore('s3', inject('s3'));
    const run = (...options: string[]) => ['run', '--nodes', '1', ...options, '--', 'true'];
    expect(await loadedBuiltins(['--version'])).toEqual(FOR_EVERY_COMMAND);
    const onFiles = [...FOR_EVERY_COMMAND, ...FOR_A_CHILD];
    expect(await loadedBuiltins(run('--store', `file:${folder}/leases`))).toEqual(onFiles.sort());
    const onS3 = [...onFiles, 'http', 'https', 'tls', 'v8'];
    expect(await loadedBuiltins(run(...store.options), store.env)).toEqual(onS3.sort());
  });

  it('loads with HTTP the metrics of the process, and leaves the answers to a separate thread', async () => {
    const parts = await partsOf(
      await loadedFiles(['run', '--store', `file:${folder}/leases`, '--http', '127.0.0.1:0', '--', 'true']),
    );
    expect(parts).toContain('node_modules/prom-client');
    expect(parts.filter((part) => /\/hono$|node-server|zookeeper-client/.test(part))).toEqual([]);
  });

  it('has every file that it names next to itself, threads included', async () => {
    const names = await readdir(bundle);
    const named = await Promise.all(
      names
        .filter((name) => name.endsWith('.js'))
        .map(async (name) => {
          const text = await readFile(join(bundle, name), 'utf8');
          return [...text.matchAll(/(?:require\(|new URL\()["']\.\/([^"']+)["']/g)].map(
            ([, file = '']) => file,
          );
        }),
    );
    expect(named.flat()).toContain('node-http-thread.js');
    expect(named.flat().filter((name) => !names.includes(name))).toEqual([]);
  });

  it('needs one byte a character, and no loader of ES modules', async () => {
    const names = (await readdir(bundle)).filter((name) => name.endsWith('.js'));
    const costly = names.map(async (name) => {
      const text = await readFile(join(bundle, name), 'utf8');
      return /[\u0100-\uffff]|\bimport\(/.test(text) ? [name] : [];
    });
    expect((await Promise.all(costly)).flat()).toEqual([]);
  });

  it('keeps the bytecode of a start for later ones, and does without where that is damaged or may not be kept', async () => {
    const copy = join(folder, 'cli');
    // Other tests start the command meanwhile, and write there.
    await cp(bundle, copy, { recursive: true, filter: (path) => !path.includes('compile-cache') });
    const cache = join(copy, 'compile-cache');
    const s3 = await fleetStore('s3', inject('s3'));
    // On S3 it changes flags of V8, which then refuses what was compiled with others.
    const start = async () => {
      for (const store of [['--store', `file:${folder}/leases`], s3.options]) {
        const args = [join(copy, 'nodelease.js'), 'run', '--nodes', '1', ...store, '--', 'true'];
        const task = runProcess(process.execPath, args, { env: s3.env });
        expect((await task.exit).code, task.stderr()).toBe(0);
      }
    };
    const kept = async () => {
      const files = (await readdir(cache)).filter((name) => name.includes('.js-'));
      const of = async (name: string) => {
        const { ino, size } = await stat(join(cache, name));
        return [name.replace(/-.*/, ''), { name, ino, size }] as const;
      };
      return new Map(await Promise.all(files.map(of)));
    };
    await start();
    const first = await kept();
    expect([...first.keys()]).toEqual(expect.arrayContaining(['base.js', 'main.js', 'run.js', 's3.js']));
    await start();
    expect(await kept()).toEqual(first);
    const run = join(cache, first.get('run.js')?.name ?? '');
    const bytecode = await readFile(run);
    await writeFile(run, bytecode.with(bytecode.length >> 1, 1 + (bytecode[bytecode.length >> 1] ?? 0)));
    await start();
    expect(await kept()).not.toEqual(first);
    expect((await kept()).get('base.js')).toEqual(first.get('base.js'));
    await rm(cache, { recursive: true });
    await writeFile(cache, 'a file where the folder would be');
    await start();
    await rm(cache);
    // Where anybody could write it.
    const open = [
      '-c',
      'umask 0; exec "$@"',
      'sh',
      process.execPath,
      join(copy, 'nodelease.js'),
      '--version',
    ];
    expect((await runProcess('sh', open).exit).code).toBe(0);
    expect(await readdir(copy)).not.toContain('compile-cache');
  });

  it('says in one line of its own until when an old Node.js is supported, and the SDK says nothing', async () => {
    const store = await fleetStore('s3', inject('s3'));
    const env = { ...store.env, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: '' };
    const task = runCli(['run', '--nodes', '1', '--log-level', 'warn', ...store.options, '--', 'true'], {
      env,
    });
    expect((await task.exit).code).toBe(0);
    const said = task.stderr().match(/.*January 2027.*/g) ?? [];
    const isOld = Number(process.versions.node.split('.')[0]) < 22;
    expect(said).toEqual(
      isOld ? [expect.stringContaining(`"msg":"Node.js ${process.versions.node} is supported until`)] : [],
    );
  });

  it('instruments the installed S3 client where an OpenTelemetry SDK was loaded before it', async () => {
    const store = await fleetStore('s3', inject('s3'));
    const sdk = pathToFileURL(join(packageRoot, 'test/fixtures/programs/instrumented-s3.mjs')).href;
    const spansFile = join(folder, 'spans');
    const env = { ...store.env, NODE_OPTIONS: `--import ${sdk}`, SPANS_FILE: spansFile };
    const task = runCli(['run', '--nodes', '1', ...store.options, '--', 'true'], { env });
    expect((await task.exit).code, task.stderr()).toBe(0);
    const spans = (await readFile(spansFile, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { name: string; id: string; parent: string | undefined });
    const idOf = (name: string) => spans.find((span) => span.name === name)?.id;
    const childrenOf = (name: string) =>
      spans.filter(({ parent }) => parent === idOf(name)).map((span) => span.name);
    expect(childrenOf('nodelease.acquire')).toContain('S3.ListObjectsV2Command');
    expect(childrenOf('nodelease.release')).toEqual(['S3.PutObjectCommand']);
  });
});
