import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { counter } from '../../../src/recipes/counter.js';
import { queue } from '../../../src/recipes/queue.js';
import type { ZooKeeperClient } from '../../../src/zookeeper/zookeeper-client.js';
import { killAll, type ProcessOptions, runCli, type TestProcess } from '../../support/processes.js';
import { RecipeScene } from '../recipes/recipe-scene.js';

let scene: RecipeScene;
let client: ZooKeeperClient;
let connect: string;

beforeEach(async () => {
  scene = new RecipeScene();
  connect = `${inject('zookeeper').connect}${scene.chroot}`;
  client = await scene.open();
});
afterEach(async () => {
  await killAll();
  await scene.close();
});

const start = (args: readonly string[], options?: ProcessOptions): TestProcess =>
  runCli(['zk', ...args], { ...options, env: { NODELEASE_ZOOKEEPER: connect } });

/** Runs `nodelease zk …` to its end. */
async function zk(args: string, options?: ProcessOptions) {
  const run = start(args.split(' '), options);
  const { code } = await run.exit;
  return { code, answer: run.stdout(), complaints: run.stderr() };
}
const well = (answer: string) => ({ code: 0, answer, complaints: '' });

describe('nodelease zk barrier', () => {
  it('holds up what waits from when it is set until it is removed, whoever set it', async () => {
    expect(await zk('barrier wait /gate')).toEqual(well('open\n'));
    expect(await zk('barrier set /gate')).toEqual(well('set\n'));
    expect(await zk('barrier set /gate --json')).toEqual(well('{"path":"/gate","state":"set"}\n'));
    const waiting = start(['barrier', 'wait', '/gate', '--json']);
    expect(await zk('barrier wait /gate --try')).toMatchObject({ code: 75, answer: '' });
    expect(await zk('barrier wait /gate --timeout 500ms')).toMatchObject({
      code: 75,
      complaints: expect.stringContaining('/gate was not removed within 500 ms'),
    });
    expect(waiting.stdout()).toBe('');
    expect(await zk('barrier remove /gate')).toEqual(well('open\n'));
    expect((await waiting.exit).code).toBe(0);
    expect(waiting.stdout()).toBe('{"path":"/gate","state":"open"}\n');
    expect(await client.read('/gate')).toBeUndefined();
  });
});

describe('nodelease zk counter', () => {
  it('is read and changed from many processes at once, and loses nothing', async () => {
    expect(await zk('counter /jobs')).toEqual(well('0\n'));
    await Promise.all(Array.from({ length: 4 }, () => zk('counter /jobs --add 3')));
    expect(await zk('counter /jobs --add -5')).toEqual(well('7\n'));
    expect(await zk('counter /jobs --json')).toEqual(well('{"path":"/jobs","value":"7"}\n'));
    expect(await counter(client, '/jobs').get()).toBe(7n);
  });

  it('has 64 bits: more are refused', async () => {
    expect(await zk('counter /jobs --add 9223372036854775807')).toEqual(well('9223372036854775807\n'));
    expect(await zk('counter /jobs --add 1')).toMatchObject({ code: 64, complaints: expect.stringContaining('within 64 bits') });
    expect(await zk('counter /jobs --add 9223372036854775808')).toMatchObject({ code: 64, complaints: expect.stringContaining('64 bits') });
    expect(await zk('counter /jobs --add 1.5')).toMatchObject({
      code: 64,
      complaints: 'nodelease: --add: expected a whole number of 64 bits, with or without a sign, got "1.5"\n',
    });
  });

  it('says that another kind of znode stands there', async () => {
    await client.createWithParents('/jobs', 'seven', 'persistent');
    expect(await zk('counter /jobs')).toMatchObject({ code: 69, complaints: expect.stringContaining('holds 5 bytes') });
  });
});

describe('nodelease zk queue', () => {
  it('hands each item to one taker, in order, from an argument or line by line from standard input', async () => {
    expect(await zk('queue put /work first')).toEqual(well('1\n'));
    expect(await zk('queue put /work --json', { stdin: 'second\n\n  tab\there é\nlast' })).toEqual(well('{"path":"/work","items":4}\n'));
    expect(await zk('queue take /work')).toEqual(well('first\n'));
    expect(await zk('queue take /work -n 3')).toEqual(well('second\n\n  tab\there é\n'));
    expect(await zk('queue take /work --json')).toEqual(well('{"item":"last"}\n'));
    expect(await zk('queue take /work --try')).toMatchObject({ code: 75, answer: '' });
  });

  it('waits for items, up to a time, and prints those that came', async () => {
    const taker = start(['queue', 'take', '/work', '-n', '3', '--timeout', '3s']);
    await zk('queue put /work', { stdin: 'a\nb\n' });
    await taker.waitForOutput(/^a\nb\n$/);
    expect((await taker.exit).code).toBe(75);
    expect(taker.stderr()).toContain('/work had no item within 3000 ms');
  });

  it("has the formats of Curator's queues, and takes bytes that are no text", async () => {
    await zk('queue put /simple plain --simple');
    expect(await client.children('/simple')).toEqual(['qn-0000000000']);
    expect((await client.read('/simple/qn-0000000000'))?.data.toString()).toBe('plain');
    expect(await zk('queue take /simple --simple')).toEqual(well('plain\n'));
    await queue(client, '/work', { format: 'distributed' }).put(Buffer.from([0xff, 0xfe]));
    expect(await client.children('/work')).toEqual(['queue-0000000000']);
    expect(await zk('queue take /work --json')).toEqual(well('{"base64":"//4="}\n'));
  });

  it('with a lock path, removes an item only when its reader has it', async () => {
    await zk('queue put /work', { stdin: 'a\nb\nc\n' });
    expect(await zk('queue take /work --lock-path /locks -n 2')).toEqual(well('a\nb\n'));
    expect(await client.children('/locks')).toEqual([]);
    expect(await client.children('/work')).toHaveLength(1);
    const taker = start(['queue', 'take', '/work', '--lock-path', '/locks', '-n', '2']);
    await taker.waitForOutput(/c\n/);
    await expect.poll(() => client.children('/work')).toEqual([]);
  });

  it('refuses an item that is too large, and names the limit', async () => {
    const large = 'x'.repeat(1_048_577);
    const { code, complaints } = await zk('queue put /work', { stdin: large });
    expect(code).toBe(64);
    expect(complaints).toMatch(/at most 10\d{5} bytes as they are stored, the servers' limit/);
    const some = await zk('queue put /work', { stdin: `small\n${large}` });
    expect(some.complaints).toMatch(/^nodelease: 1 of 2 items have been put\nnodelease: item: expected at most/);
    expect(await zk('queue take /work --try')).toEqual(well('small\n'));
  });

  it.each([
    ['a relative path', 'queue put work x', 64, /path: expected an absolute path .* got "work"/],
    ['0 items', 'queue take /work -n 0', 64, /--count: expected a whole number from 1/],
    ['a lock path of a simple queue', 'queue take /work --simple --lock-path /l --try', 64, /lockPath/],
    ['a group without its command', 'queue', 64, /see nodelease zk queue --help/],
    ['a command that is none', 'queue peek /work', 64, /unknown command 'peek'/],
    ['an item too many', 'queue put /work a b', 64, /too many arguments/],
    ['a relative barrier', 'barrier wait gate', 64, /path: expected an absolute path/],
    ['the root as a counter', 'counter /', 64, /it is the root/],
    ['--try with a time-out', 'barrier wait /gate --try --timeout 1s', 64, /no --try beside it/],
    ['a ZooKeeper that is not there', 'queue take /work --zookeeper 127.0.0.1:1', 69, /127\.0\.0\.1:1/],
  ])('refuses %s', async (_, args, code, complaint) => {
    expect(await zk(args)).toEqual({ code, answer: '', complaints: expect.stringMatching(complaint) });
  });
});
