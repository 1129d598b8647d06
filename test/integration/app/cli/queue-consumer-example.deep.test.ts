import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { cliFile, killAll, runProcess, type TestProcess } from '../../../support/processes.js';
import { freePort } from '../../../support/servers/free-ports.js';
import { exampleFolder } from './example-support.js';
import { newFolder, removeFolders } from './run-support.js';

const COUNT = 8;

let folder: string;
let queue: string;
let sinkUrl: string;
let sink: TestProcess;
let jobs: number;

beforeEach(async () => {
  folder = exampleFolder('queue-consumer');
  queue = join(newFolder(), 'queue');
  jobs = 0;
  sink = runProcess(process.execPath, ['sink.js'], { cwd: folder, env: { PORT: '0' } });
  sinkUrl = (await sink.waitForOutput(/http:\S+/))[0];
});
afterEach(async () => {
  await killAll();
  removeFolders();
});

const start = (...options: string[]) => {
  const settings = ['--store', `file:${queue}-leases`, '--duration', '3s', '--grace', '500ms'];
  const args = [cliFile, 'run', ...settings, '--shards', String(COUNT), ...options];
  return runProcess(process.execPath, [...args, '--', process.execPath, 'consumer.js'], {
    cwd: folder,
    env: { QUEUE: queue, SINK: sinkUrl },
  });
};
/** The tokens of the partitions that a consumer has now, by partition. */
const tokens = (consumer: TestProcess) => {
  const held = new Map<number, number>();
  for (const [, verb, partition, token] of consumer
    .stdout()
    .matchAll(/^(consumes|leaves) (\d+)(?: with token (\d+))?$/gm))
    if (verb === 'consumes') held.set(Number(partition), Number(token));
    else held.delete(Number(partition));
  return held;
};
const share = (...consumers: readonly TestProcess[]) =>
  expect
    .poll(() => consumers.map((consumer) => tokens(consumer).size), { timeout: 60_000 })
    .toEqual(consumers.map(() => COUNT / consumers.length));
/** A job for each partition. Resolves when the queue is empty: it has a job until the sink has it. */
const deliverAll = async () => {
  for (let partition = 0; partition < COUNT; partition += 1) {
    mkdirSync(join(queue, String(partition)), { recursive: true });
    writeFileSync(join(queue, String(partition), `job-${jobs}`), '');
    jobs += 1;
  }
  const left = () => readdirSync(queue).flatMap((partition) => readdirSync(join(queue, partition)));
  await expect.poll(left, { timeout: 60_000 }).toEqual([]);
};
const taken = () =>
  [...sink.stdout().matchAll(/^took (\S+) of (\d+) with token (\d+)$/gm)].map(
    ([, job, partition, token]) => ({
      ...{ job, partition: Number(partition), token: Number(token) },
    }),
  );

it('the partitions of the queue follow the consumers that come, leave and are killed, and the sink refuses old tokens', async () => {
  const first = start();
  await share(first);
  await deliverAll();
  const second = start();
  // Half of them move although the first one works on: it is asked to stop them, and answers.
  await share(first, second);
  await deliverAll();
  const ofFirst = tokens(first);
  first.kill('SIGKILL');
  await share(second);
  await deliverAll();
  const [partition, token] = [...ofFirst][0] ?? [];
  const late = await fetch(sinkUrl, {
    method: 'POST',
    body: JSON.stringify({ partition, token, job: 'late' }),
  });
  expect(late.status).toBe(409);
  const third = start();
  await share(second, third);
  second.kill('SIGTERM');
  expect((await second.exit).code, second.stderr()).toBe(0);
  expect(tokens(second)).toEqual(new Map());
  await share(third);
  await deliverAll();

  // Each job once, and of each partition under tokens that only rise.
  expect(new Set(taken().map(({ job }) => job)).size).toBe(jobs);
  const highest = new Map<number, number>();
  for (const each of taken()) {
    expect(each.token).toBeGreaterThanOrEqual(highest.get(each.partition) ?? 0);
    highest.set(each.partition, each.token);
  }
  expect([second, third].map((consumer) => consumer.stdout().match(/^refused .*/gm))).toEqual([null, null]);
});

it('a consumer whose sidecar is killed ends its work, and begins again with another sidecar, with greater tokens', async () => {
  const port = String(await freePort());
  const tokenFile = `${queue}-token`;
  writeFileSync(tokenFile, 'a-token-for-the-tests\n');
  const url = `http://127.0.0.1:${port}`;
  const serve = (name: string) => {
    const settings = ['--store', `file:${queue}-leases`, '--duration', '3s', '--grace', '500ms'];
    const args = [cliFile, 'serve', ...settings, '--shards', String(COUNT), '--http', `127.0.0.1:${port}`];
    args.push('--bearer-token-file', tokenFile);
    return runProcess(process.execPath, [...args, '--task-id', name], { cwd: folder });
  };
  const sidecar = serve('first');
  await sidecar.waitForOutput(/http:/);
  const env = { QUEUE: queue, SINK: sinkUrl, NODELEASE_URL: url, TOKEN_FILE: tokenFile };
  const consumer = runProcess(process.execPath, ['consumer.js'], { cwd: folder, env });
  await share(consumer);
  const before = tokens(consumer);
  sidecar.kill('SIGKILL');
  await expect.poll(() => tokens(consumer).size, { timeout: 60_000 }).toBe(0);
  const next = serve('second');
  await share(consumer);
  for (const [partition, token] of tokens(consumer))
    expect(token).toBeGreaterThan(before.get(partition) ?? 0);
  await deliverAll();
  consumer.kill('SIGTERM');
  expect((await consumer.exit).code, consumer.stderr()).toBe(0);
  next.kill('SIGTERM');
  expect((await next.exit).code, next.stderr()).toBe(0);
});

it('a run whose number of shards is not that of the cluster ends with 64, and its command is not started', async () => {
  const first = start();
  await share(first);
  const other = start('--shards', '16');
  expect((await other.exit).code).toBe(64);
  expect(other.stdout()).toBe('');
  expect(other.stderr().trimEnd().split('\n').at(-1)).toBe(
    "nodelease: --shards: expected 8, the cluster's number of shards (keys belong to shards by that number, so it never changes), got 16 [CONFIG_INVALID]",
  );
  expect(other.stderr()).toContain('lease released');
});

it('a partition that cannot be consumed is given up, and the others are consumed', async () => {
  for (let partition = 0; partition < COUNT; partition += 1)
    mkdirSync(join(queue, String(partition), ...(partition === 3 ? ['no-job'] : [])), { recursive: true });
  const consumer = start();
  await expect.poll(() => consumer.stderr(), { timeout: 60_000 }).toMatch(/^partition 3: /m);
  for (const partition of ['0', '7']) writeFileSync(join(queue, partition, 'job'), '');
  await expect.poll(() => ['0', '7'].flatMap((each) => readdirSync(join(queue, each)))).toEqual([]);
  consumer.kill('SIGTERM');
  expect((await consumer.exit).code, consumer.stderr()).toBe(0);
});

it('work that has failed does not begin again when the events do, before the failure is known', async () => {
  let [streams, failures, starts] = [0, 0, 0];
  const stop = new AbortController();
  const server = createServer((request, response) => {
    if (request.url === '/shards/events') {
      streams += 1;
      response.write('event: start\ndata: {"shard":3,"token":7,"deadline":null}\n\n');
      if (streams === 1) stop.signal.addEventListener('abort', () => response.end());
      return;
    }
    failures += Number(streams > 1 && request.url === '/shards/3/failed?token=7');
    // Lost, until the events have come again, and some time after that.
    if (failures === 3) stop.abort();
    else if (failures < 3) return server.closeAllConnections();
    response.writeHead(204).end();
  });
  const port = await freePort();
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const { followShards } = await import(join(folder, 'shards.js'));
  const start = (_shard: number, _token: number, fail: () => Promise<void>) => {
    starts += 1;
    void fail();
    return async () => undefined;
  };
  await followShards(`http://127.0.0.1:${port}`, start, stop.signal);
  expect([starts, failures]).toEqual([1, 3]);
  server.close();
});
