import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageRoot } from './support/package-root.js';

/**
 * The rooms from the ground up. A module imports its own room and rooms of earlier rows: not of its own row,
 * and not of a later wing.
 */
const FLOORS: readonly (readonly string[])[] = [
  ['core/base'],
  ['core/settings'],
  ['core/store', 'zookeeper/client'],
  ['core/lease'],
  ['core/id', 'core/data-dir', 'zookeeper/recipes', 'zookeeper/services', 'zookeeper/shared-data'],
  ['zookeeper/discovery', 'zookeeper/configuration'],
  ['node/wire'],
  ['node/monitor', 'node/runtime'],
  ['node/locks', 'node/shards'],
  ['app/http/http-settings.ts'],
  // What a product says to the table of settings.
  [
    'app/configuration/config-settings.ts',
    'app/data-dir/data-dir-settings.ts',
    'app/dns/dns-settings.ts',
    'app/shards/shards-settings.ts',
  ],
  ['app/settings'],
  ['index.ts'],
  ['app/http', 'app/console'],
  ['app/kit'],
  ['app/supervisor'],
  // A product is a folder.
  [
    'app/audit',
    'app/camunda',
    'app/configuration',
    'app/data-dir',
    'app/dns',
    'app/recipes',
    'app/services',
    'app/shards',
    'app/shared-data',
  ],
  ['app/products.ts'],
  ['app/discovery', 'app/http/index.ts'],
  ['app/cli'],
  ['app/cli/commands'],
  ['app/cli/main.ts'],
];
const WINGS = ['core', 'zookeeper', 'node', 'app', 'index.ts'];

/** What lies below a room, and is closed to it all the same. */
const CLOSED: readonly (readonly [room: string, closed: RegExp, why: string])[] = [
  ['core/lease', /^core\/base\/system\.ts$/, 'the engine is given its time and its chance'],
  ['core/lease', /^core\/store\/((?!probe\/).*\/|open-store|stores|lock-url)/, 'the engine knows no driver'],
  ['app/console', /^(?!node\/wire\/|app\/console\/)/, 'it runs in a browser'],
];

const sources = new Map(
  readdirSync(join(packageRoot, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /(?<!\.test)\.ts$/.test(file))
    .map((file) => [file, readFileSync(join(packageRoot, 'src', file), 'utf8')]),
);
const all = [...sources].flatMap(([file, text]) => importsOf(file, text));

it('has every module in a room', () => {
  expect([...sources.keys()].filter((file) => roomOf(file) === undefined)).toEqual([]);
});

it('imports downwards only', () => {
  expect(all.length).toBeGreaterThan(2_000);
  expect(all.flatMap(([file, imported]) => problem(file, imported) ?? [])).toEqual([]);
});

it.each([
  ['upwards', 'core/lease/hold/holder.ts', '../../../app/http/listen.js'],
  ['into a later wing on a lower floor', 'core/store/lease-store.ts', '../../zookeeper/client/zookeeper.js'],
  ['sideways', 'zookeeper/recipes/lock.ts', '../services/service-cache.js'],
  ['of a driver by the engine', 'core/lease/hold/holder.ts', '../../store/s3/s3-lease-store.js'],
  ['of the list of stores by the engine', 'core/lease/hold/holder.ts', '../../store/stores.js'],
  ['of the real clock by the engine', 'core/lease/hold/holder.ts', '../../base/system.js'],
  ['of the table of commands by a room of them', 'app/kit/call.ts', '../cli/commands/commands.js'],
  ['of the command line by the library', 'index.ts', './app/cli/main.js'],
  ['of the server by its page', 'app/console/page/main.ts', '../../../core/base/clock.js'],
  ['of a driver from its package', 'core/store/s3/sdk.ts', '../../../node/runtime/acquire.js'],
])('finds an import %s, in each form', (_, file, module) => {
  const forms = [
    `import { it } from '${module}';`,
    `import type { It } from '${module}';`,
    `import {\n  it,\n} from '${module}';`,
    `import '${module}';`,
    `export { it } from '${module}';`,
    `export * from "${module}";`,
    `const use = () => import('${module}');`,
    `type Use = typeof import('${module}');`,
  ];
  for (const form of forms)
    expect(importsOf(file, form).map(([from, to]) => problem(from, to))).toEqual([expect.any(String)]);
});

/** The modules of ours that a module imports, types too. */
function importsOf(file: string, text: string): (readonly [file: string, imported: string])[] {
  const modules = text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*(['"])(\.[^'"]*)\1/g);
  return [...modules].map(([, , module = '']) => [file, join(file, '..', module).replace(/\.js$/, '.ts')]);
}

/** Why this must not be imported there; undefined if it may. */
function problem(file: string, imported: string): string | undefined {
  const [from, to] = [roomOf(file), roomOf(imported)];
  if (from === undefined || to === undefined) return `${file} → ${imported}: not in a room`;
  const closed = CLOSED.find(([room, what]) => room === from && what.test(imported));
  if (closed) return `${file} → ${imported}: ${closed[2]}`;
  if (from === to || (floorOf(to) < floorOf(from) && wingOf(to) <= wingOf(from))) return undefined;
  return `${file} → ${imported}: upwards`;
}

function roomOf(file: string): string | undefined {
  const rooms = FLOORS.flat().filter((room) => file === room || file.startsWith(`${room}/`));
  return rooms.sort((a, b) => b.length - a.length)[0];
}

const floorOf = (room: string) => FLOORS.findIndex((rooms) => rooms.includes(room));
const wingOf = (room: string) => WINGS.indexOf(room.split('/')[0] ?? '');
