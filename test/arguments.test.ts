import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../src/core/base/errors.js';
import { openZooKeeper } from '../src/zookeeper/client/zookeeper-client.js';
import { HANDLES, INTERNAL, ROWS } from './support/exported-functions.js';
import { settled } from './support/virtual-clock.js';

const ROOT = new URL('../', import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
  exports: Record<string, { default?: string } | string>;
};
const entries = Object.values(exports).flatMap((entry) =>
  typeof entry === 'object' && entry.default ? [entry.default] : [],
);

/** Classes that are exported for their types. */
const NOT_MADE = new Set(['BearerTokenFile', 'SharedList', 'SharedMap', 'SharedScalar', 'SharedSet']);

type Call = (...given: readonly unknown[]) => unknown;

/** Everything that a user can call, by name: from the entry points, and from what they return. */
async function exported(): Promise<ReadonlyMap<string, Call>> {
  const found = new Map<string, Call>();
  const methods = (name: string, handle: object) => {
    for (let at = handle; at && at !== Object.prototype; at = Object.getPrototypeOf(at))
      for (const key of Object.getOwnPropertyNames(at)) {
        const value = Object.getOwnPropertyDescriptor(at, key)?.value;
        if (
          typeof value === 'function' &&
          key !== 'constructor' &&
          !INTERNAL.test(`${name}.${key}`) &&
          !found.has(`${name}.${key}`)
        )
          found.set(`${name}.${key}`, (...given) => value.apply(handle, given));
      }
  };
  for (const entry of entries) {
    const path = new URL(entry.replace('./dist/', 'src/').replace(/js$/, 'ts'), ROOT).pathname;
    const module = (await import(/* @vite-ignore */ path)) as Record<string, unknown>;
    for (const [name, value] of Object.entries(module)) {
      if (typeof value !== 'function' || value.prototype instanceof Error) continue;
      const isClass = /^class/.test(Function.prototype.toString.call(value));
      if (isClass)
        for (const [key, method] of Object.entries(Object.getOwnPropertyDescriptors(value)))
          if (typeof method.value === 'function')
            found.set(`${name}.${key}`, (...given) => method.value(...given));
      if (!NOT_MADE.has(name))
        found.set(name, (...given) => (isClass ? Reflect.construct(value, given) : value(...given)));
    }
  }
  for (const [name, make] of Object.entries(HANDLES)) methods(name, await make());
  return found;
}

const sockets = () => process.getActiveResourcesInfo().filter((kind) => kind.startsWith('TCP')).length;
const socketsBefore = sockets();
const calls = await exported();

describe('a wrong argument of an exported function', () => {
  it('is of a function that is in the list of this test', () => {
    expect([...calls.keys()].filter((name) => !(name in ROWS)).sort()).toEqual([]);
    expect(Object.keys(ROWS).filter((name) => !calls.has(name))).toEqual([]);
  });

  it.each(Object.keys(ROWS).filter((name) => ROWS[name]?.args.length))(
    'is refused by name: %s',
    async (name) => {
      const { args = [], isAsync = false } = ROWS[name] ?? {};
      const call = calls.get(name) as Call;
      const problems: string[] = [];
      for (const [at, kind] of args.entries())
        for (const [what, wrong] of kind.wrong()) {
          const given = args.map((each, index) => (index === at ? wrong : each.good()));
          const problem = await outcomeOf(() => call(...given), isAsync);
          if (problem) problems.push(`argument ${at + 1} ${what}: ${problem}`);
        }
      expect(problems).toEqual([]);
      expect(sockets()).toBeLessThanOrEqual(socketsBefore);
    },
  );
});

it('openZooKeeper needs no clock and no source of random numbers', async () => {
  const client = openZooKeeper({ connect: '127.0.0.1:1' });
  expect(client.state.status).not.toBe('closed');
  await client.close();
});

it.each([
  ['an object without a prototype', Object.create(null), 'an object'],
  ['an array, whose elements may be secrets', ['s3://user:secret@host'], 'an array'],
  ['a long text, shortened', 'x'.repeat(5_000), `"${'x'.repeat(999)}…`],
])('a wrong argument is described: %s', (_, value, shown) => {
  expect(new ConfigError('name', value, 'another').message).toBe(`name: expected another, got ${shown}`);
});

/** What is wrong with the answer to a wrong argument; undefined for nothing. */
async function outcomeOf(call: () => unknown, isAsync: boolean): Promise<string | undefined> {
  let outcome: unknown = 'accepted';
  let answer: unknown;
  try {
    answer = call();
    if (typeof Object(answer).then !== 'function') return `accepted: ${String(answer)}`;
    if (!isAsync) outcome = 'a promise';
  } catch (error) {
    if (isAsync) return `thrown, not rejected: ${String(error)}`;
    outcome = error;
  }
  const rejected = Promise.resolve(answer).then(
    () => {},
    (error: unknown) => {
      outcome = error;
    },
  );
  await Promise.race([rejected, settled()]);
  return outcome instanceof ConfigError ? undefined : String(outcome);
}
