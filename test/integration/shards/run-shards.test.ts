import { afterEach, beforeEach, expect, it } from 'vitest';
import { killAll, runCli, type TestProcess } from '../../support/processes.js';
import { urlOf } from '../cli/ecs-support.js';
import { newFolder, removeFolders } from '../cli/run-support.js';

// The protocol is tested in virtual time, in `shard-mirror.test.ts`: these show that commands speak it.

interface Held {
  readonly shard: number;
  readonly token: number;
}
interface ShardsAnswer {
  readonly owned: readonly Held[];
  readonly stopping: readonly Held[];
}

let store: string[];

beforeEach(() => {
  store = ['--store', `file:${newFolder()}`, '--duration', '3s', '--shards', '4'];
});
afterEach(async () => {
  await killAll();
  removeFolders();
});

const shards = async (url: string) => (await (await fetch(`${url}/shards`)).json()) as ShardsAnswer;
const owns = (url: string, number: number) =>
  expect.poll(async () => (await shards(url)).owned.length).toBe(number);

/** Reads events until one of them is of the kind. */
async function firstOf(url: string, kind: string): Promise<Held> {
  const { body } = await fetch(`${url}/shards/events`);
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const [, data] = new RegExp(`^event: ${kind}\ndata: (.*)\n\n`, 'm').exec(text) ?? [];
    if (data !== undefined) return JSON.parse(data) as Held;
  }
  throw new Error(`no ${kind} in ${text}`);
}

it('run: the command finds where to ask for its shards, also without --http, and its end releases them', async () => {
  const inherited = { NODELEASE_SHARD_STOP_TIMEOUT: '5s' };
  const script = 'echo "at $NODELEASE_URL [$NODELEASE_SHARDS]"; exec sleep 300';
  const task = runCli(['run', ...store, '--', 'sh', '-c', script], { env: inherited });
  const [, url = ''] = await task.waitForOutput(/^at (http:\/\/127\.0\.0\.1:\d+) \[\]$/m);
  await owns(url, 4);
  expect(task.stderr()).toMatch(/a program that follows \/shards\/events is asked to stop those that are to/);
  task.kill('SIGTERM');
  expect((await task.exit).code).toBe(143);
  expect(task.stderr()).toContain('lease released');
});

it('serve: a shard moves once a program has answered, and the others when the sidecar is stopped', async () => {
  const serve = (): TestProcess => runCli(['serve', ...store, '--http', '127.0.0.1:0']);
  const first = serve();
  const url = await urlOf(first);
  await owns(url, 4);
  const second = serve();
  const other = await urlOf(second);
  // The stream ends with this: a further stop is asked for when a program follows again.
  const { shard, token } = await firstOf(url, 'stop');
  expect((await shards(url)).stopping).toContainEqual({ shard, token });
  const answered = await fetch(`${url}/shards/${shard}/stopped?token=${token}`, { method: 'POST' });
  expect(answered.status).toBe(204);
  const started = await firstOf(other, 'start');
  expect(started.shard).toBe(shard);
  expect(started.token).toBeGreaterThan(token);
  first.kill('SIGTERM');
  expect((await first.exit).code).toBe(0);
  await owns(other, 4);
});
