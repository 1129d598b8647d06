import { afterEach, beforeEach, expect, it } from 'vitest';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { urlOf } from '../../app/cli/ecs-support.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';

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
  store = ['--store', `file:${newFolder()}`, '--duration', '12s', '--shards', '4'];
});
afterEach(async () => {
  await killAll();
  removeFolders();
});

const shards = async (url: string) => (await (await fetch(`${url}/shards`)).json()) as ShardsAnswer;
const owns = (url: string, number: number) =>
  expect.poll(async () => (await shards(url)).owned.length).toBe(number);

/** Follows the events: what has been read, and the first one of a kind. */
async function follow(url: string) {
  const { body } = await fetch(`${url}/shards/events`);
  let text = '';
  const ended = (async () => {
    for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) text += chunk;
    return text;
  })();
  // Some end with their server.
  ended.catch(() => undefined);
  const firstOf = async (kind: string) => {
    const event = () => new RegExp(`^event: ${kind}\ndata: (.*)\n\n`, 'm').exec(text)?.[1];
    await expect.poll(event, { timeout: 30_000 }).toBeDefined();
    return JSON.parse(event() ?? '') as Held;
  };
  return { firstOf, ended };
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

it('run: a command that cannot begin gives back the node id, whose shards no program has asked for', async () => {
  const needs = ['--config', 'orders', '--config-required', '--zookeeper', '127.0.0.1:1'];
  const task = runCli(['run', ...store, ...needs, '--', 'true']);
  expect((await task.exit).code, task.stderr()).toBe(69);
  expect(task.stderr()).toContain('lease released');
});

it('serve: a shard moves once a program has answered, and at SIGTERM all others do, of which it is notified', async () => {
  const serve = (): TestProcess => runCli(['serve', ...store, '--http', '127.0.0.1:0']);
  const first = serve();
  const url = await urlOf(first);
  await owns(url, 4);
  const second = serve();
  const other = await urlOf(second);
  const program = await follow(url);
  const { shard, token } = await program.firstOf('stop');
  expect((await shards(url)).stopping).toContainEqual({ shard, token });
  const answer = async (held: Held) =>
    (await fetch(`${url}/shards/${held.shard}/stopped?token=${held.token}`, { method: 'POST' })).status;
  expect(await answer({ shard, token })).toBe(204);
  const started = await (await follow(other)).firstOf('start');
  expect(started.shard).toBe(shard);
  expect(started.token).toBeGreaterThan(token);
  first.kill('SIGTERM');
  await expect.poll(async () => (await shards(url)).owned.length).toBe(0);
  const { stopping } = await shards(url);
  // It stays like this until there are answers.
  expect(stopping.length).toBeGreaterThan(0);
  for (const held of stopping) expect(await answer(held)).toBe(204);
  expect((await first.exit).code).toBe(0);
  expect(await program.ended).toMatch(/^event: end\ndata: {"reason":"released"}\n\n$/m);
  expect(first.stderr()).toContain('lease released');
  await owns(other, 4);
});

it('serve: a second SIGTERM ends it without an answer, and the node id is left to expire', async () => {
  const task = runCli(['serve', ...store, '--http', '127.0.0.1:0']);
  const url = await urlOf(task);
  await owns(url, 4);
  const program = await follow(url);
  await program.firstOf('start');
  task.kill('SIGTERM');
  await program.firstOf('stop');
  task.kill('SIGTERM');
  expect((await task.exit).code).toBe(0);
  expect(await program.ended).toMatch(/^event: end\ndata: {"reason":"expires"}\n\n$/m);
  expect(task.stderr()).toMatch(
    /the node id is not given back, and expires: no program has said that its work on 4/,
  );
  expect(task.stderr()).not.toContain('lease released');
});
