import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';
import { killAll, runCli } from '../../../support/processes.js';
import { seededRandom } from '../../../support/virtual-clock.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';

const s3 = inject('s3');
const HOSTS = 5;
const PERIOD_MS = 5_000;
/** Ten for the figures of docs/design/safety.md. */
const MINUTES = Number(process.env.NODELEASE_TEST_ONCE_MINUTES ?? 1);

let folder: string;

beforeEach(() => {
  folder = newFolder();
});
afterEach(async () => {
  await killAll();
  removeFolders();
});

/** Five crons start the command at each tick, some a little early; some of these processes get SIGKILL. */
async function fleet(name: string, url: string, options: readonly string[]) {
  const random = seededRandom(7);
  const log = join(folder, name);
  // A line is appended at once. The command ends with nodelease, by the guard.
  const script = `echo start $ONCE_TICK $LOCK_TOKEN >> ${log}; sleep 0.4; echo end $ONCE_TICK $LOCK_TOKEN >> ${log}`;
  const args = [
    'once',
    name,
    '--store',
    url,
    '--every',
    '5s',
    '--endpoint',
    s3.endpoint,
    '--region',
    s3.region,
  ];
  const command = [
    ...args,
    // The lock of a host that was killed lasts as long, and up to 2 s of whole seconds. Then the tick is still due.
    '--duration',
    '2s',
    '--grace',
    '100ms',
    '--wait-poll',
    '200ms',
    '--log-level',
    'warn',
  ];
  const codes = new Map<string, number>();
  let kills = 0;
  const call = async (host: number) => {
    const run = runCli([...command, ...options, '--', '/bin/sh', '-c', script], { env: awsEnvironment(s3) });
    const isKilled = host > 0 && random.next() < 0.1;
    if (isKilled) void sleep(random.next() * 2_000).then(() => run.kill('SIGKILL'));
    const { code, signal } = await run.exit;
    if (signal === 'SIGKILL') kills += 1;
    const end = String(signal ?? code);
    codes.set(end, (codes.get(end) ?? 0) + 1);
  };
  const until = Date.now() + MINUTES * 60_000;
  const calls: Promise<void>[] = [];
  const cron = async (host: number) => {
    for (;;) {
      const next = Math.ceil((Date.now() + 1_000) / PERIOD_MS) * PERIOD_MS + (random.next() - 0.3) * 800;
      if (next > until) return;
      await sleep(next - Date.now());
      calls.push(call(host));
    }
  };
  await Promise.all(Array.from({ length: HOSTS }, (_, host) => cron(host)));
  await Promise.all(calls);
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  const events = lines.map((line) => line.split(' ') as ['start' | 'end', string, string]);
  const of = (kind: string) => events.flatMap(([what, tick]) => (what === kind ? [Date.parse(tick)] : []));
  const [starts, ends] = [of('start'), of('end')];
  const [from, to] = [Math.min(...starts), Math.max(...starts)];
  const ticks = Array.from({ length: (to - from) / PERIOD_MS + 1 }, (_, at) => from + at * PERIOD_MS);
  return { ticks, starts, ends, kills, codes: Object.fromEntries(codes), events };
}

/** Ends of runs after which another one has started. */
function overlaps(events: readonly (readonly [kind: string, tick: string, token: string])[]) {
  const lastStart = (at: number) => events.slice(0, at).findLast(([kind]) => kind === 'start')?.[2];
  return events.filter(([kind, , token], at) => kind === 'end' && token !== lastStart(at));
}

function figures({ codes, kills, ticks, starts, ends }: Awaited<ReturnType<typeof fleet>>) {
  const without = (those: readonly number[]) => ticks.filter((tick) => !those.includes(tick)).length;
  const counts = { ticks: ticks.length, starts: starts.length, ends: ends.length };
  return { codes, kills, ...counts, notStarted: without(starts), notEnded: without(ends) };
}

/** Runs the fleet on a store that has been probed, and prints what a longer run shows. */
async function run(name: string, options: readonly string[]) {
  const url = `s3://${(await createBucket(s3)).name}/p`;
  const access = ['--endpoint', s3.endpoint, '--region', s3.region];
  const first = runCli(['lock', 'first', '--store', url, ...access, '--', 'true'], {
    env: awsEnvironment(s3),
  });
  expect((await first.exit).code).toBe(0);
  const found = await fleet(name, url, options);
  // How many ticks are missing depends on the machine.
  console.log(JSON.stringify(figures(found)));
  expect(Math.min(found.starts.length, found.kills)).toBeGreaterThan(0);
  return found;
}

const timeout = (MINUTES + 2) * 60_000;

describe(`five crons in ${MINUTES} minutes of ticks of 5 s on S3, with kill -9`, { timeout }, () => {
  it('start no tick twice', async () => {
    const { starts } = await run('plain', []);
    expect(new Set(starts).size).toBe(starts.length);
  });

  it('with --retry have one run at a time', async () => {
    const { events } = await run('retried', ['--retry', '50', '--timeout', '15s']);
    expect(overlaps(events)).toEqual([]);
  });
});
