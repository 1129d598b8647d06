import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { fleetStore } from '../../../support/fleet.js';
import { packageRoot } from '../../../support/package-root.js';
import { cliFile, killAll, runCli } from '../../../support/processes.js';

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
 * The files that the main thread of a command has loaded: V8 writes the coverage of each thread down when it
 * ends.
 */
async function loadedFiles(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const coverage = join(folder, 'coverage');
  const task = runCli(args, { env: { ...env, NODE_V8_COVERAGE: coverage } });
  expect((await task.exit).code, task.stderr()).toBe(0);
  const reports = await Promise.all(
    (await readdir(coverage)).map((name) => readFile(join(coverage, name), 'utf8')),
  );
  const threads = reports.map((report) =>
    (JSON.parse(report) as { result: { url: string }[] }).result.map(({ url }) => url),
  );
  const files = threads.find((urls) => urls.some((url) => url.endsWith('/nodelease.js'))) ?? [];
  return files.filter((url) => url.startsWith('file:')).sort();
}

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
      ...[
        'pino',
        'pino-std-serializers',
        'quick-format-unescaped',
        'safe-stable-stringify',
        'sonic-boom',
        'thread-stream',
      ],
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

  it('needs one byte a character, and no loader of ES modules for what Node.js brings', async () => {
    const names = (await readdir(bundle)).filter((name) => name.endsWith('.js'));
    const costly = names.map(async (name) => {
      const text = await readFile(join(bundle, name), 'utf8');
      return /[\u0100-\uffff]|\bimport\(["']node:/.test(text) ? [name] : [];
    });
    expect((await Promise.all(costly)).flat()).toEqual([]);
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
