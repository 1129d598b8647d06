import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../', import.meta.url));

const GLOBAL = 'lint/style/noRestrictedGlobals';
const PLUGIN = 'plugin';

/** Imports of a driver's package, or of time and chance, out of their folder. */
const forbiddenImports: readonly (readonly [folder: string, module: string])[] = [
  ['src/core/lease', '@aws-sdk/client-s3'],
  ['src/core/store', '@smithy/node-http-handler'],
  ['src/core/store/file', '@aws-sdk/client-s3'],
  ['src/app/cli', '@aws-sdk/client-s3/dist-cjs/index.js'],
  ['src', '@smithy/types'],
  ['src/core/store', '@azure/storage-blob'],
  ['src/core/store/s3', '@azure/identity'],
  ['src/app/cli', 'google-auth-library'],
  ['src/core/store', 'pg'],
  ['src/core/store/s3', 'pg'],
  ['src/core/lease', 'node-zookeeper-client'],
  ['src/zookeeper/discovery', 'node-zookeeper-client'],
  ['src/core/lease', '@opentelemetry/api'],
  ['src/app/cli', '@opentelemetry/sdk-trace-base'],
  ['src/node/monitor', 'prom-client'],
  ['src/app/cli', 'prom-client'],
  ['src/core/lease', 'node:timers'],
  ['src/core/lease', 'node:timers/promises'],
  ['src/core/store/s3', 'timers'],
  ['src/app/http', 'node:perf_hooks'],
  ['src/app/cli', 'node:process'],
];

const allowedImports: readonly (readonly [folder: string, module: string])[] = [
  ['src/core/base', 'p-retry'],
  ['src/core/store/s3', '@aws-sdk/client-s3'],
  ['src/core/store/s3', '@smithy/node-http-handler'],
  ['src/core/store/dynamodb', '@aws-sdk/client-dynamodb'],
  ['src/core/store/azure', '@azure/storage-blob'],
  ['src/core/store/gcs', 'google-auth-library'],
  ['src/core/store/postgres', 'pg'],
  ['src/zookeeper/client', 'node-zookeeper-client'],
];

/** Every way to write an import of a module, each with something that the unused-code rules leave alone. */
const importForms: Readonly<Record<string, (module: string) => string>> = {
  import: (module) => `import { it } from '${module}';\nexport const use = it;\n`,
  'import type': (module) => `import type { It } from '${module}';\nexport type Use = It;\n`,
  'export from': (module) => `export { it } from '${module}';\n`,
  'import()': (module) => `export const use = () => import('${module}');\n`,
};

const ambient: readonly (readonly [expression: string, rule: string])[] = [
  ['Date.now()', PLUGIN],
  ['[].map(Date.now)', PLUGIN],
  ['Date?.now()', PLUGIN],
  ['new Date()', PLUGIN],
  ['new Date', PLUGIN],
  ['Date()', PLUGIN],
  ['Math.random()', PLUGIN],
  ["Math['random']()", PLUGIN],
  ['process.hrtime()', PLUGIN],
  ['process.hrtime.bigint()', PLUGIN],
  ['process.uptime()', PLUGIN],
  ['AbortSignal.timeout(1)', PLUGIN],
  ['(() => { const { now } = Date; return now; })()', PLUGIN],
  ['(() => { const { hrtime } = process; return hrtime; })()', PLUGIN],
  ['setTimeout(() => {}, 1)', GLOBAL],
  ['setInterval(() => {}, 1)', GLOBAL],
  ['setImmediate(() => {})', GLOBAL],
  ['performance.now()', GLOBAL],
  ['globalThis.setTimeout(() => {}, 1)', GLOBAL],
];

const converted = ['new Date(0).toISOString()', 'Math.max(1, 2)', 'process.pid', 'Date.parse("2026-01-01")'];

/** Ways of a test to depend on luck. */
const lucky = [
  'expect.poll(state, { interval: 10 })',
  'expect.poll(state, { timeout: 30_000, interval: 5 })',
  'expect.poll(state, { timeout: 500 })',
  'vi.waitFor(state)',
  'vi.waitUntil(state, { timeout: 30_000 })',
  'run.waitForOutput(/ready/, 500)',
  "it('ends', async () => {}, 60_000)",
  "describe('it', { timeout: 30_000 }, () => {})",
  "shell('sleep 60 & echo $!; wait')",
  'shell(`sleep 60 & echo $! ready`)',
];
const patient = [
  'expect.poll(state)',
  'expect.poll(state, { timeout: 5_000, interval: 300 })',
  'run.waitForOutput(/ready/, 60_000)',
  "it('ends', async () => {}, 300_000)",
  "describe('it', { timeout: 900_000 }, () => {})",
  "shell('test -e file && echo $!')",
  'lock.acquire({ timeoutMs: 200 })',
];

const files = new Map<string, string>();

/** Registers a source to be linted; its name has to be unique in its folder. */
function source(folder: string, text: string, suffix = '.ts'): string {
  const file = `${folder}/case-${files.size}${suffix}`;
  files.set(file, text);
  return file;
}

const folders = [
  'src',
  'src/core/lease',
  'src/core/store',
  'src/core/store/file',
  'src/core/store/s3',
  'src/core/id',
  'src/app/http',
  'src/zookeeper/discovery',
  'src/node/runtime/worker',
  'src/app/cli',
];

let workspace: string;
/** The rules that each file breaks. */
let broken: Map<string, Set<string>>;

beforeAll(async () => {
  workspace = await mkdtemp(join(tmpdir(), 'nodelease-lint-'));
  await cp(join(root, 'biome.json'), join(workspace, 'biome.json'));
  await cp(join(root, 'lint'), join(workspace, 'lint'), { recursive: true });
  for (const [file, text] of files) {
    await mkdir(dirname(join(workspace, file)), { recursive: true });
    await writeFile(join(workspace, file), text);
  }
  // One run for all files: starting the linter takes longer than linting them.
  const output = await new Promise<string>((resolve) => {
    const biome = join(root, 'node_modules/.bin/biome');
    execFile(
      biome,
      ['lint', '--reporter=json', '--max-diagnostics=none', '.'],
      { cwd: workspace, maxBuffer: 2 ** 26 },
      (_, stdout) => resolve(stdout),
    );
  });
  broken = new Map([...files.keys()].map((file) => [file, new Set()]));
  for (const { category, severity, location } of (JSON.parse(output) as BiomeReport).diagnostics) {
    if (severity === 'error') broken.get(location.path)?.add(category);
  }
});

afterAll(() => rm(workspace, { recursive: true, force: true }));

interface BiomeReport {
  readonly diagnostics: readonly {
    readonly category: string;
    readonly severity: string;
    readonly location: { readonly path: string };
  }[];
}

describe.each(Object.keys(importForms))('the seams of packages hold for "%s"', (form) => {
  const write = importForms[form] ?? (() => '');

  describe.each(forbiddenImports)('%s must not reach %s', (folder, module) => {
    const file = source(folder, write(module));
    test('it is refused', () => expect(broken.get(file)).toContain(PLUGIN));
  });

  describe.each(allowedImports)('%s may use %s', (folder, module) => {
    const file = source(folder, write(module));
    test('nothing is reported', () => expect(broken.get(file)).toEqual(new Set()));
  });
});

describe.each(ambient)('ambient time and chance: %s', (expression, rule) => {
  const text = `export const use = () => ${expression};\n`;
  const sources = folders.map((folder) => source(folder, text));
  const exempt = source('src/core/lease', text, '.test.ts');

  test(`${rule} refuses it in every folder`, () => {
    for (const file of sources) expect(broken.get(file), file).toContain(rule);
  });

  test('a test next to the code may use it', () => {
    const rules = broken.get(exempt);
    expect(rules).not.toContain(PLUGIN);
    expect(rules).not.toContain(GLOBAL);
  });
});

describe('ambient time and chance', () => {
  const system = 'src/core/base/system.ts';
  files.set(
    system,
    'export const use = () => [Date.now(), new Date(), Math.random(), process.hrtime(), setTimeout(() => {}, 1), performance.now()];\n',
  );
  test('src/core/base/system.ts provides them', () => expect(broken.get(system)).toEqual(new Set()));

  describe.each(converted)('%s asks no clock', (expression) => {
    const file = source('src/core/lease', `export const use = () => ${expression};\n`);
    test('it is allowed', () => expect(broken.get(file)).toEqual(new Set()));
  });
});

describe('a test that depends on luck', () => {
  const text = (expression: string) => `export const use = () => ${expression};\n`;

  describe.each(lucky)('%s', (expression) => {
    const sources = ['src/core/lease', 'test/integration/app/cli'].map((folder) =>
      source(folder, text(expression), '.test.ts'),
    );
    const support = source('test/support', text(expression));
    test('is refused', () => {
      for (const file of [...sources, support]) expect(broken.get(file), file).toContain(PLUGIN);
    });
  });

  describe.each(patient)('%s', (expression) => {
    const file = source('test/integration/app/cli', text(expression), '.test.ts');
    test('is allowed', () => expect(broken.get(file)).not.toContain(PLUGIN));
  });
});
