import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../', import.meta.url));

const RING = 'lint/style/noRestrictedImports';
const GLOBAL = 'lint/style/noRestrictedGlobals';
const PLUGIN = 'plugin';

/**
 * Imports that reach up, sideways past a seam, or to a driver's package: folder, module, and the rule that
 * refuses it.
 */
const forbiddenImports: readonly (readonly [folder: string, module: string, rule: string])[] = [
  ['src/base', '../store/lease-store.js', RING],
  ['src/base', '../lease/model/lease.js', RING],
  ['src/store', '../lease/model/lease.js', RING],
  ['src/store', '../zookeeper/zookeeper.js', RING],
  ['src/store', '../monitor/cluster-follower.js', RING],
  ['src/store', '../cli/commands/run-command.js', RING],
  ['src/store/file', '../../lease/model/lease.js', RING],
  ['src/store/s3', '../../cli/commands/run-command.js', RING],
  ['src/store/s3', '../../id/unique-id-generator.js', RING],
  ['src/zookeeper', '../store/lease-store.js', RING],
  ['src/zookeeper', '../lease/model/lease.js', RING],
  ['src/zookeeper', '../discovery/discovery-tree.js', RING],
  ['src/zookeeper', '../services/routing/service-dispatcher.js', RING],
  ['src/lease', '../cli/commands/run-command.js', RING],
  ['src/lease', '../http/server/listen.js', RING],
  ['src/lease', '../zookeeper/zookeeper.js', RING],
  ['src/lease/model', '../../discovery/discovery-tree.js', RING],
  ['src/lease/acquire', '../../id/unique-id-generator.js', RING],
  ['src/lease/session', '../../store/s3/s3-lease-store.js', RING],
  ['src/lease/hold', '../../store/file/file-lease-store.js', RING],
  ['src/lease/hold', '../../store/azure/azure-lease-store.js', RING],
  ['src/lease/hold', '../../store/etcd/etcd-lease-store.js', RING],
  ['src/lease/hold', '../../store/gcs/gcs-lease-store.js', RING],
  ['src/lease/hold', '../../store/memory/memory-lease-store.js', RING],
  ['src/lease/acquire', '../../store/open-store.js', RING],
  ['src/lease/hold', '../../base/system.js', RING],
  ['src/lease/operate', '../../settings/settings.js', RING],
  ['src/lease/hold', '../../runtime/acquire.js', RING],
  ['src/id', '../discovery/discovery-tree.js', RING],
  ['src/id', '../http/server/listen.js', RING],
  ['src/id', '../services/service-discovery.js', RING],
  ['src/services', '../discovery/discovery-tree.js', RING],
  ['src/services', '../cli/commands/run-command.js', RING],
  ['src/services/strategies', '../../http/server/listen.js', RING],
  ['src/services/routing', '../../http/server/listen.js', RING],
  ['src/services/routing', '../../cli/commands/run-command.js', RING],
  ['src/discovery', '../http/server/listen.js', RING],
  ['src/discovery', '../monitor/cluster-follower.js', RING],
  ['src/discovery/allocation', '../../settings/settings.js', RING],
  ['src/discovery', '../recipes/lock.js', RING],
  ['src/recipes', '../discovery/discovery-tree.js', RING],
  ['src/recipes', '../runtime/acquire.js', RING],
  ['src/configuration', '../discovery/discovery-tree.js', RING],
  ['src/configuration', '../settings/settings.js', RING],
  ['src/recipes', '../shared-data/shared-data.js', RING],
  ['src/zookeeper', '../shared-data/shared-data.js', RING],
  ['src/shared-data', '../recipes/recipe.js', RING],
  ['src/shared-data', '../runtime/acquire.js', RING],
  ['src/data-dir', '../settings/settings.js', RING],
  ['src/data-dir', '../zookeeper/zookeeper.js', RING],
  ['src/lease', '../data-dir/prepare.js', RING],
  ['src/store/file', '../../data-dir/prepare.js', RING],
  ['src/settings', '../http/server/listen.js', RING],
  ['src/settings', '../runtime/acquire.js', RING],
  ['src/monitor', '../http/node-app.js', RING],
  ['src/monitor', '../cli/commands/run-command.js', RING],
  ['src/runtime', '../http/node-app.js', RING],
  ['src/http', '../cli/commands/run-command.js', RING],
  ['src/runtime', '../cli/commands/run-command.js', RING],
  ['src/runtime/worker', '../../cli/commands/run-command.js', RING],
  ['src/runtime', '../locks/store-lock.js', RING],
  ['src/http', '../locks/store-lock.js', RING],
  ['src/runtime', '../shards/own-shards.js', RING],
  ['src/lease/hold', '../../shards/plan.js', RING],
  ['src/locks', '../cli/commands/run-command.js', RING],
  ['src/shards', '../cli/commands/run-command.js', RING],
  ['src/shards', '../dns/dns-server.js', RING],
  ['src/dns', '../cli/commands/run-command.js', RING],
  ['src/http', '../dns/dns-server.js', RING],
  ['src/runtime', '../dns/dns-server.js', RING],
  ['src/console', '../lease/model/lease.js', RING],
  ['src/console/page', '../../lease/model/lease.js', RING],
  ['src/console/model', '../../lease/model/lease.js', RING],
  ['src/lease', '@aws-sdk/client-s3', PLUGIN],
  ['src/cli/kit', '../commands/commands.js', RING],
  ['src/cli/run', '../commands/run-command.js', RING],
  ['src/store', '@smithy/node-http-handler', PLUGIN],
  ['src/store/file', '@aws-sdk/client-s3', PLUGIN],
  ['src/cli', '@aws-sdk/client-s3/dist-cjs/index.js', PLUGIN],
  ['src', '@smithy/types', PLUGIN],
  ['src/store', '@azure/storage-blob', PLUGIN],
  ['src/store/s3', '@azure/identity', PLUGIN],
  ['src/cli', 'google-auth-library', PLUGIN],
  ['src/lease', 'node-zookeeper-client', PLUGIN],
  ['src/discovery', 'node-zookeeper-client', PLUGIN],
  ['src/lease', '@opentelemetry/api', PLUGIN],
  ['src/cli', '@opentelemetry/sdk-trace-base', PLUGIN],
  ['src/monitor', 'prom-client', PLUGIN],
  ['src/cli', 'prom-client', PLUGIN],
  ['src/lease', 'node:timers', PLUGIN],
  ['src/lease', 'node:timers/promises', PLUGIN],
  ['src/store/s3', 'timers', PLUGIN],
  ['src/http', 'node:perf_hooks', PLUGIN],
  ['src/cli', 'node:process', PLUGIN],
];

const allowedImports: readonly (readonly [folder: string, module: string])[] = [
  ['src/lease/model', './lease-codec.js'],
  ['src/lease/hold', '../model/lease-codec.js'],
  ['src/lease/session', '../../store/lease-store.js'],
  ['src/lease/acquire', '../../store/probe/probe.js'],
  ['src/lease/model', '../../base/errors.js'],
  ['src/lease/model', '../../base/clock.js'],
  ['src/base', 'p-retry'],
  ['src/store', '../base/errors.js'],
  ['src/store/file', '../lease-store.js'],
  ['src/store/s3', '@aws-sdk/client-s3'],
  ['src/store/s3', '@smithy/node-http-handler'],
  ['src/store/azure', '@azure/storage-blob'],
  ['src/store/gcs', 'google-auth-library'],
  ['src/zookeeper', 'node-zookeeper-client'],
  ['src/services', '../zookeeper/zookeeper.js'],
  ['src/discovery', '../lease/model/lease.js'],
  ['src/recipes', '../lease/hold/holder.js'],
  ['src/recipes', '../zookeeper/zookeeper.js'],
  ['src/configuration', '../recipes/lock.js'],
  ['src/data-dir', '../lease/model/lease.js'],
  ['src/data-dir', '../base/files.js'],
  ['src/discovery', '../services/service-discovery.js'],
  ['src/services/routing', '../service-provider.js'],
  ['src/http', '../services/service-directory.js'],
  ['src/http', '../runtime/node-monitor.js'],
  ['src/locks', '../runtime/hold-node.js'],
  ['src/shards', '../runtime/opened-store.js'],
  ['src/dns', '../shards/shard-map.js'],
  ['src/cli/run', '../../runtime/acquire.js'],
  ['src/cli/commands', '../../locks/store-lock.js'],
  ['src/cli/commands', '../../http/server/listen.js'],
  ['src/cli/commands', '../kit/answer.js'],
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
  "shell('sleep 60 & echo $!; wait')",
  'shell(`sleep 60 & echo $! ready`)',
];
const patient = [
  'expect.poll(state)',
  'expect.poll(state, { timeout: 5_000, interval: 300 })',
  'run.waitForOutput(/ready/, 60_000)',
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
  'src/lease',
  'src/store',
  'src/store/file',
  'src/store/s3',
  'src/id',
  'src/http',
  'src/discovery',
  'src/runtime/worker',
  'src/cli',
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

describe.each(Object.keys(importForms))('the rings hold for "%s"', (form) => {
  const write = importForms[form] ?? (() => '');

  describe.each(forbiddenImports)('%s must not reach %s', (folder, module, rule) => {
    const file = source(folder, write(module));
    test(`${rule} refuses it`, () => expect(broken.get(file)).toContain(rule));
  });

  describe.each(allowedImports)('%s may use %s', (folder, module) => {
    const file = source(folder, write(module));
    test('nothing is reported', () => expect(broken.get(file)).toEqual(new Set()));
  });
});

describe.each(ambient)('ambient time and chance: %s', (expression, rule) => {
  const text = `export const use = () => ${expression};\n`;
  const sources = folders.map((folder) => source(folder, text));
  const exempt = source('src/lease', text, '.test.ts');

  test(`${rule} refuses it in every folder`, () => {
    for (const file of sources) expect(broken.get(file), file).toContain(rule);
  });

  test('a test beside the code may use it', () => {
    const rules = broken.get(exempt);
    expect(rules).not.toContain(PLUGIN);
    expect(rules).not.toContain(GLOBAL);
  });
});

describe('ambient time and chance', () => {
  const system = 'src/base/system.ts';
  files.set(
    system,
    'export const use = () => [Date.now(), new Date(), Math.random(), process.hrtime(), setTimeout(() => {}, 1), performance.now()];\n',
  );
  test('src/base/system.ts provides them', () => expect(broken.get(system)).toEqual(new Set()));

  describe.each(converted)('%s asks no clock', (expression) => {
    const file = source('src/lease', `export const use = () => ${expression};\n`);
    test('it is allowed', () => expect(broken.get(file)).toEqual(new Set()));
  });
});

describe('a test that depends on luck', () => {
  const text = (expression: string) => `export const use = () => ${expression};\n`;

  describe.each(lucky)('%s', (expression) => {
    const sources = ['src/lease', 'test/integration/cli'].map((folder) =>
      source(folder, text(expression), '.test.ts'),
    );
    const support = source('test/support', text(expression));
    test('is refused', () => {
      for (const file of [...sources, support]) expect(broken.get(file), file).toContain(PLUGIN);
    });
  });

  describe.each(patient)('%s', (expression) => {
    const file = source('test/integration/cli', text(expression), '.test.ts');
    test('is allowed', () => expect(broken.get(file)).not.toContain(PLUGIN));
  });
});
