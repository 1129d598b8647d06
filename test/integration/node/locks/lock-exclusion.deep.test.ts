import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { packageRoot } from '../../../support/package-root.js';
import { killAll, runCli } from '../../../support/processes.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';

const s3 = inject('s3');
let folder: string;

beforeEach(() => {
  folder = newFolder();
  for (const [name, value] of Object.entries(awsEnvironment(s3))) vi.stubEnv(name, value);
});
afterEach(async () => {
  await killAll();
  await stopProxies();
  removeFolders();
  vi.unstubAllEnvs();
});

const onDisk = async () => ['--store', `file:${folder}/store`];
const onS3 = async () => [
  '--store',
  `s3://${(await createBucket(s3)).name}/p`,
  '--endpoint',
  s3.endpoint,
  '--region',
  s3.region,
];

/**
 * Five processes that take turns; each run works for a moment, with a witness that reports when two do at a
 * time.
 */
async function fiveProcesses(runs: number, options: readonly string[], nameOf: (process: number) => string) {
  const [witness, tokens] = [join(folder, 'witness'), join(folder, 'tokens')];
  // Making a folder is atomic: it fails where another command is at work.
  const script = `mkdir ${witness} || exit 9; echo $LOCK_TOKEN >> ${tokens}; sleep 0.0$((LOCK_TOKEN % 5 + 2)); rmdir ${witness}`;
  const args = [...options, '--log-level', 'warn', '--', '/bin/sh', '-c', script];
  const turns = async (process: number) => {
    const codes: (number | null)[] = [];
    for (let run = 0; run < runs; run += 1) {
      codes.push((await runCli(['lock', nameOf(process), ...args], { env: awsEnvironment(s3) }).exit).code);
    }
    return codes;
  };
  const codes = (await Promise.all([0, 1, 2, 3, 4].map(turns))).flat();
  return { codes, tokens: readFileSync(tokens, 'utf8').trim().split('\n').map(Number) };
}

describe('five processes with one lock', () => {
  it.each([
    ['twenty runs each on a folder', 20, onDisk],
    ['six runs each on S3', 6, onS3],
  ])('never overlap, and each run has a greater token: %s', async (_, runs, storeOptions) => {
    const { codes, tokens } = await fiveProcesses(runs, await storeOptions(), () => 'nightly');
    expect(codes).toEqual(Array(5 * runs).fill(0));
    expect(tokens).toEqual(Array.from({ length: 5 * runs }, (_run, index) => index + 1));
  });

  it('would overlap with a lock each, which the witness reports', async () => {
    const { codes } = await fiveProcesses(4, await onDisk(), (process) => `nightly-${process}`);
    expect(codes).toContain(9);
  });
});

describe('a lock on S3', () => {
  it('has its objects below locks/NAME, and the record of the one probe next to them', async () => {
    const bucket = await createBucket(s3);
    const args = [
      '--store',
      `s3://${bucket.name}/p`,
      '--endpoint',
      s3.endpoint,
      '--region',
      s3.region,
      '--',
      'sh',
      '-c',
      'echo $LOCK_TOKEN',
    ];
    for (const name of ['nightly', 'weekly']) {
      const run = runCli(['lock', name, ...args], { env: awsEnvironment(s3) });
      expect((await run.exit).code).toBe(0);
      expect(run.stdout()).toBe('1\n');
    }
    expect(await bucket.listKeys()).toEqual([
      'p/locks/cluster.json',
      ...['nightly', 'weekly'].flatMap((name) => [`p/locks/${name}/0.json`, `p/locks/${name}/cluster.json`]),
    ]);
  });

  it('is lost before its deadline while the store is away, and with --restart the command runs again once that is back', async () => {
    const { proxy, through } = await throughProxy(s3.endpoint);
    const options = [
      '--store',
      `s3://${(await createBucket(s3)).name}/p`,
      '--endpoint',
      through,
      '--region',
      s3.region,
    ];
    const script = `trap 'echo asked to stop; exit 5' TERM; echo token $LOCK_TOKEN; while :; do sleep 0.05; done`;
    const run = runCli(
      ['lock', 'nightly', ...options, '--duration', '2s', '--restart', '--', 'sh', '-c', script],
      {
        env: awsEnvironment(s3),
      },
    );
    await run.waitForOutput(/^token 1$/m);
    proxy.cut();
    await run.waitForOutput(/asked to stop/);
    // Longer than a first contact may take.
    await run.waitForOutput(/lock nightly cannot be acquired/);
    await sleep(1_000);
    proxy.heal();
    await run.waitForOutput(/^token 2$/m);
    run.kill('SIGTERM');
    expect((await run.exit).code).toBe(5);
  });
});

describe('acquireLock and electOnStore of the build', () => {
  const library = async () =>
    (await import(
      join(packageRoot, 'dist/node/locks/index.js')
    )) as typeof import('../../../../src/node/locks/index.js');
  /** Nothing runs in this thread meanwhile. */
  const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

  it('keep the lock of a blocked thread by a separate thread, and lose it without', async () => {
    const { acquireLock } = await library();
    const options = { store: `file:${folder}/store`, durationMs: 3_000 };
    const kept = await acquireLock('kept', { ...options, keeper: 'worker' });
    const lost = await acquireLock('lost', options);
    block(7_000);
    expect([kept.isValid(), lost.isValid()]).toEqual([true, false]);
    await expect.poll(() => lost.signal.aborted).toBe(true);
    expect(lost.signal.reason).toMatchObject({
      code: 'LOCK_LOST',
      lock: 'lost',
      token: 1n,
      reason: 'paused',
    });
    await Promise.all([kept.release(), lost.release()]);
    const next = await acquireLock('kept', { ...options, timeoutMs: 0 });
    expect(next.token).toBe(2n);
    await next.release();
  });

  it.each(['inline', 'worker'] as const)(
    'stand again once a store that was away is back, with a keeper that is %s',
    async (keeper) => {
      const { electOnStore } = await library();
      const { proxy, through } = await throughProxy(s3.endpoint);
      const store = `s3://${(await createBucket(s3)).name}/p`;
      const tokens: bigint[] = [];
      let failures = 0;
      const onEvent = ({ type }: { type: string }) => {
        if (type !== 'store-failed' || tokens.length === 0) return;
        failures += 1;
        // More than one attempt makes.
        if (failures > 12) proxy.heal();
      };
      for await (const term of electOnStore('leader', {
        store,
        endpoint: through,
        region: s3.region,
        durationMs: 2_000,
        keeper,
        onEvent,
      })) {
        tokens.push(term.token);
        if (tokens.length === 2) break;
        proxy.cut();
        await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
        expect(term.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'unreachable' });
      }
      expect(tokens).toEqual([1n, 2n]);
    },
  );
});
