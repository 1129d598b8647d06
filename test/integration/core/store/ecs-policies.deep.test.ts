import { readFileSync } from 'node:fs';
import { afterEach, beforeAll, expect, inject, it } from 'vitest';
import { awsEnvironment, createBucket, type TestBucket } from '../../../support/bucket.js';
import { killAll, runCli } from '../../../support/processes.js';
import { policyEnvironment } from '../../../support/restricted-access.js';

// The policies of infra/ecs, tried: a role that has them, and no other right, on a real server.

interface Policy {
  readonly Statement: readonly { readonly Sid: string }[];
}

/** The commands that the policies are for, and the first lock of a bucket, which has the policy for init. */
const COMMANDS = {
  run: { args: ['run', '--cluster', 'existing'], work: ['--', 'sh', '-c', 'echo "node $NODE_ID"'] },
  init: { args: ['init', '--nodes', '2'], work: [] },
  doctor: { args: ['doctor'], work: [] },
  lock: { args: ['lock', 'nightly'], work: ['--', 'sh', '-c', 'echo "token $LOCK_TOKEN"'] },
  audit: { args: ['audit'], work: [] },
  // A bucket with locks alone.
  auditLocks: { args: ['audit'], work: [] },
} as const;
type Name = keyof typeof COMMANDS;

const s3 = inject('s3');
/** Has the cluster of leases that `run` and `doctor` expect. */
let initialized: TestBucket;
let locked: TestBucket;

const optionsOf = ({ name }: TestBucket) => ['--store', `s3://${name}/orders`, '--endpoint', s3.endpoint];

beforeAll(async () => {
  initialized = await createBucket(s3);
  const init = runCli([...COMMANDS.init.args, ...optionsOf(initialized)], { env: awsEnvironment(s3) });
  expect(await init.exit, init.stderr()).toEqual({ code: 0, signal: null });
  locked = await createBucket(s3);
  const { args, work } = COMMANDS.lock;
  const lock = runCli([...args, ...optionsOf(locked), ...work], { env: awsEnvironment(s3) });
  expect(await lock.exit, lock.stderr()).toEqual({ code: 0, signal: null });
});
afterEach(killAll);

/** Runs a command with its policy, or without some of its statements. */
async function attempt(name: Name, ...without: string[]) {
  const isFirst = name === 'init' || name === 'lock';
  const existing = name === 'auditLocks' ? locked : initialized;
  const bucket = isFirst ? await createBucket(s3) : existing;
  const policyOf = isFirst ? 'init' : name.replace('Locks', '');
  const text = readFileSync(
    new URL(`../../../../infra/ecs/policy-${policyOf}.json`, import.meta.url),
    'utf8',
  );
  const policy = JSON.parse(text.replaceAll('my-bucket', bucket.name)) as Policy;
  const Statement = policy.Statement.filter(({ Sid }) => !without.includes(Sid));
  expect(Statement).toHaveLength(policy.Statement.length - without.length);
  const env = await policyEnvironment(s3, { ...policy, Statement });
  const { args, work } = COMMANDS[name];
  const child = runCli([...args, ...optionsOf(bucket), ...work], { env });
  const { code } = await child.exit;
  const scratch = (await bucket.listKeys()).filter((key) => key.includes('/probe-'));
  return { code, output: child.stdout() + child.stderr(), scratch };
}

it.each(Object.keys(COMMANDS) as Name[])('the policy for %s suffices', async (name) => {
  const { code, output, scratch } = await attempt(name);
  expect(code, output).toBe(0);
  expect(output).not.toContain('denied');
  expect(scratch).toEqual([]);
  if (name === 'run') expect(output).toMatch(/^node [01]$/m);
  if (name === 'lock') expect(output).toMatch(/^token 1$/m);
});

it.each([
  ['run', 'ListLeases'],
  ['run', 'ReadLeases'],
  ['run', 'WriteLeases'],
  ['init', 'ListLeases'],
  ['init', 'ReadLeases'],
  ['init', 'WriteLeases'],
  ['lock', 'ReadLeases'],
  ['lock', 'WriteLeases'],
  ['doctor', 'ListLeases'],
  ['doctor', 'ReadLeases'],
  ['doctor', 'WriteScratchObjects'],
  // On this server, who may list may also list versions.
  ['audit', 'ListVersions', 'ListLeases'],
  ['audit', 'ReadVersions'],
  ['auditLocks', 'ListLeases'],
] as const)(
  'the policy for %s has no statement too many: without %s, access is denied',
  async (name, ...without) => {
    const { code, output } = await attempt(name, ...without);
    expect(code, output).toBe(69);
    expect(output).toContain('access denied');
  },
);

it.each([
  ['init', /^orders\/probe-/],
  ['lock', /^orders\/locks\/probe-/],
] as const)('without RemoveScratchObjects, the probe of %s leaves its objects behind', async (name, keys) => {
  expect((await attempt(name, 'RemoveScratchObjects')).scratch).toContainEqual(expect.stringMatching(keys));
});
