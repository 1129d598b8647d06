// `npm run chaos`: a fleet under real faults on a real S3 server, a cluster of etcd, or PostgreSQL. Exits with 0 when
// nothing was wrong, 1 otherwise, 64 for a wrong call.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { killAll } from '../support/processes.js';
import { nonlinear } from '../support/programs/porcupine.js';
import { startEtcdCluster } from '../support/servers/etcd-cluster.js';
import { startMinio } from '../support/servers/minio.js';
import { startStoreServer } from '../support/servers/store-servers.js';
import { type ChaosStore, chaosStoreIn, etcdChaosStore, s3ChaosStore } from './chaos-store.js';
import { startPostgresChaosStore } from './postgres-chaos-store.js';
import { type ChaosOptions, runChaos } from './run-chaos.js';
import { failuresOf, progressLine, summary } from './summary.js';

const EXIT = { passed: 0, failed: 1, usage: 64 };
const ENDED_WITHIN_MS = 10_000;
const DURATION = { ms: 1, s: 1_000, m: 60_000 };

interface Flags {
  readonly minutes: number;
  readonly seed: number;
  readonly store: 's3' | 'etcd' | 'dynamodb' | 'postgres';
  readonly lossy?: boolean;
  readonly tasks: number;
  readonly ids: number;
  readonly duration: number;
  readonly shards: number;
  readonly linear?: boolean;
  readonly traces?: boolean;
  readonly tune: readonly number[];
}

function readFlags(args: readonly string[]): Flags {
  const program = new Command('npm run chaos --')
    .description(
      'Runs a fleet on a real store, harms it, and checks that no node id is ever used by two tasks at a time.',
    )
    .requiredOption('--minutes <m>', 'how long tasks are harmed', number(0.1, 10_000, false))
    .option(
      '--seed <s>',
      'what the faults are drawn from (default: a new one each time)',
      number(0, 2 ** 32 - 1, true),
      randomBytes(4).readUInt32LE(),
    )
    .addOption(
      new Option('--store <kind>', 'what holds the leases')
        .choices(['s3', 'etcd', 'dynamodb', 'postgres'])
        .default('s3'),
    )
    .option('--lossy', 'PostgreSQL: fail-overs lose the writes of the last seconds')
    .option('--shards <n>', 'how many shards they share as well, each with a lock', number(0, 4_096, true), 0)
    .option('--linear', 'checks the history of all acts with Porcupine, which needs Go')
    .option(
      '--traces',
      'checks that what happens to leases is a path of the model; all tasks use the library',
    )
    .option('--tasks <n>', 'how many tasks there are at a time', number(2, 100, true), 10)
    .option('--ids <n>', 'how many node ids they share', number(1, 100, true), 5)
    .option('--duration <time>', 'how long a lease lasts, such as 3s or 1500ms', duration, 3_000)
    .option(
      '--tune <times>',
      'durations that an operator sets one after the other, such as 60s,5s; then every other task is spared',
      (text: string) => text.split(',').map(duration),
      [],
    )
    .allowExcessArguments(false)
    .exitOverride();
  const flags = program.parse(args, { from: 'user' }).opts<Flags>();
  const { traces, store, shards } = flags;
  if (traces && store !== 's3' && store !== 'etcd')
    program.error(`--traces: expected s3 or etcd as --store, which keep all versions, got ${store}`);
  if (traces && shards > 0) program.error('--traces: expected no --shards, whose owners read leases as well');
  return flags;
}

function number(least: number, most: number, whole: boolean): (text: string) => number {
  return (text) => {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most && (!whole || Number.isInteger(value))) return value;
    throw new InvalidArgumentError(`Expected a ${whole ? 'whole ' : ''}number from ${least} to ${most}.`);
  };
}

function duration(text: string): number {
  const [, digits, unit] = /^(\d+)(ms|s|m)$/.exec(text) ?? [];
  const ms = Number(digits) * DURATION[unit as keyof typeof DURATION];
  if (ms >= 1_000 && ms <= 60_000) return ms;
  throw new InvalidArgumentError('Expected a time from 1s to 1m.');
}

/** Starts a server: MinIO, dynalite, three of etcd, or PostgreSQL and its standby. */
async function startStore({
  store: kind,
  lossy = false,
}: Flags): Promise<{ store: ChaosStore; description: string; stop: () => Promise<void> }> {
  if (kind === 'etcd') {
    const cluster = await startEtcdCluster();
    return { store: etcdChaosStore(cluster), description: `etcd at ${cluster.address}`, stop: cluster.stop };
  }
  if (kind === 'dynamodb') {
    const { endpoint, env, createBucket, stop } = await startStoreServer('dynalite');
    const store = chaosStoreIn(await createBucket(), endpoint, env);
    return { store, description: `dynalite at ${endpoint}`, stop };
  }
  if (kind === 'postgres') return startPostgresChaosStore(lossy);
  const { stop, ...s3 } = await startMinio();
  return { store: await s3ChaosStore(s3), description: s3.description, stop };
}

async function chaos(flags: Flags): Promise<number> {
  const { minutes, seed, tasks, ids, shards, duration, linear, traces = false, tune } = flags;
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
  const { store, description, stop } = await startStore(flags);
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-chaos-history-'));
  const history = linear ? join(folder, 'acts') : undefined;
  let keeps = traces;
  const terminal = process.stderr.isTTY;
  console.log(`seed ${seed}, on ${description}`);
  const onProgress: ChaosOptions['onProgress'] = (progress) => {
    if (terminal)
      process.stderr.write(`\r\x1b[K${progressLine(progress).slice(0, (process.stderr.columns || 80) - 1)}`);
  };
  try {
    const { signal } = interrupted;
    const result = await runChaos({
      store,
      lengthMs: minutes * 60_000,
      seed,
      ...{ tasks, ids, shards, tune },
      ...(traces && { traces: await mkdtemp(join(folder, 'traces-')) }),
      ...(history && { history }),
      durationMs: duration,
      onProgress,
      signal,
    });
    if (terminal) process.stderr.write('\r\x1b[K');
    console.log(summary(result));
    const failures = failuresOf(result);
    if (history) {
      const wrong = await nonlinear(history);
      console.log(`Porcupine: ${wrong.length} node ids, shards and locks are not linear`);
      failures.push(...wrong);
    }
    for (const failure of failures) console.log(`\nFAILED: ${failure}`);
    if (interrupted.signal.aborted) console.log('\nFAILED: interrupted');
    const failed = failures.length > 0 || interrupted.signal.aborted;
    keeps &&= failed;
    return failed ? EXIT.failed : EXIT.passed;
  } finally {
    if (keeps) console.log(`The traces are kept in ${folder}`);
    await killAll();
    await stop();
    if (!keeps) await rm(folder, { recursive: true });
  }
}

// The client that looks into the bucket need not repeat on every start that the SDK will want a newer Node
// one day.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

try {
  process.exitCode = await chaos(readFlags(process.argv.slice(2)));
  // Everything has ended. What keeps this process alive from now on was forgotten somewhere.
  setTimeout(() => {
    console.log(`\nFAILED: does not end: ${process.getActiveResourcesInfo()}`);
    process.exit(EXIT.failed);
  }, ENDED_WITHIN_MS).unref();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? EXIT.passed : EXIT.usage;
}
