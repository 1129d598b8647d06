import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { counter } from '../../../../src/zookeeper/recipes/counter.js';
import { queue } from '../../../../src/zookeeper/recipes/queue/queue.js';
import { type InProcessOptions, runInProcess } from '../../../support/in-process.js';
import { cliFile, killAll, runCli, runProcess, type TestProcess } from '../../../support/processes.js';
import { RecipeScene } from '../../zookeeper/recipes/recipe-scene.js';

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

/** `nodelease zk …` as a process, as a user has it. */
const start = (args: string, stdin?: string): TestProcess =>
  runCli(['zk', ...args.split(' ')], {
    env: { NODELEASE_ZOOKEEPER: connect },
    ...(stdin !== undefined && { stdin }),
  });

/** Runs `nodelease zk …` to its end, in this process. */
const zk = (args: string, options?: InProcessOptions) =>
  runInProcess(['zk', ...args.split(' ')], { ...options, env: { NODELEASE_ZOOKEEPER: connect } });
const well = (answer: string) => ({ code: 0, answer, complaints: '' });

describe('nodelease zk barrier', () => {
  it('holds up what waits from when it is set until it is removed, no matter which client set it', async () => {
    expect(await zk('barrier wait /gate')).toEqual(well('open\n'));
    expect(await zk('barrier set /gate')).toEqual(well('set\n'));
    expect(await zk('barrier set /gate --json')).toEqual(well('{"path":"/gate","state":"set"}\n'));
    const waiting = start('barrier wait /gate --json');
    expect(await zk('barrier wait /gate --try')).toMatchObject({ code: 75, answer: '' });
    expect(await zk('barrier wait /gate --timeout 100ms')).toMatchObject({
      code: 75,
      complaints: expect.stringContaining('/gate was not removed within 100 ms'),
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
    const adding = Array.from({ length: 4 }, () => start('counter /jobs --add 3'));
    expect(await Promise.all(adding.map(async ({ exit }) => (await exit).code))).toEqual([0, 0, 0, 0]);
    expect(adding.map(({ stdout }) => Number(stdout())).sort((a, b) => a - b)).toEqual([3, 6, 9, 12]);
    expect(await zk('counter /jobs --add -5')).toEqual(well('7\n'));
    expect(await zk('counter /jobs --json')).toEqual(well('{"path":"/jobs","value":"7"}\n'));
    expect(await counter(client, '/jobs').get()).toBe(7n);
  });

  it('has 64 bits: more are refused', async () => {
    expect(await zk('counter /jobs --add 9223372036854775807')).toEqual(well('9223372036854775807\n'));
    expect(await zk('counter /jobs --add 1')).toMatchObject({
      code: 64,
      complaints: expect.stringContaining('within 64 bits'),
    });
    expect(await zk('counter /jobs --add 9223372036854775808')).toMatchObject({
      code: 64,
      complaints: expect.stringContaining('64 bits'),
    });
  });

  it('says that another kind of znode is there', async () => {
    await client.createWithParents('/jobs', 'seven', 'persistent');
    expect(await zk('counter /jobs')).toMatchObject({
      code: 69,
      complaints: expect.stringContaining('holds 5 bytes'),
    });
  });
});

describe('nodelease zk queue', () => {
  it('hands each item to one taker, in order, from an argument or line by line from standard input', async () => {
    expect(await zk('queue put /work first')).toEqual(well('1\n'));
    const putting = start('queue put /work --json', 'second\n\n  tab\there é\nlast');
    expect(await putting.exit).toEqual({ code: 0, signal: null });
    expect([putting.stdout(), putting.stderr()]).toEqual(['{"path":"/work","items":4}\n', '']);
    expect(await zk('queue take /work')).toEqual(well('first\n'));
    expect(await zk('queue take /work -n 3')).toEqual(well('second\n\n  tab\there é\n'));
    expect(await zk('queue take /work --json')).toEqual(well('{"item":"last"}\n'));
    expect(await zk('queue take /work --try')).toMatchObject({ code: 75, answer: '' });
  });

  it('waits for items, up to a time, and prints the items that came', async () => {
    const taker = start('queue take /work -n 2');
    await zk('queue put /work a');
    await taker.waitForOutput(/^a\n$/);
    await zk('queue put /work b');
    expect((await taker.exit).code).toBe(0);
    expect(taker.stdout()).toBe('a\nb\n');
    await zk('queue put /work c');
    const none = (ms: number) => expect.stringContaining(`/work had no item within ${ms} ms`);
    expect(await zk('queue take /work -n 2 --try')).toEqual({ code: 75, answer: 'c\n', complaints: none(0) });
    await zk('queue put /work d');
    expect(await zk('queue take /work -n 2 --timeout 1s')).toEqual({
      code: 75,
      answer: 'd\n',
      complaints: none(1_000),
    });
    expect(await zk('queue take /work --timeout 100ms')).toEqual({
      code: 75,
      answer: '',
      complaints: none(100),
    });
  });

  it("has the formats of Curator's queues, and takes bytes that are no text", async () => {
    await zk('queue put /simple plain --simple');
    expect(await client.children('/simple')).toEqual(['qn-0000000000']);
    expect((await client.read('/simple/qn-0000000000'))?.data.toString()).toBe('plain');
    expect(await zk('queue take /simple --simple')).toEqual(well('plain\n'));
    await queue(client, '/work', { format: 'distributed' }).put(Buffer.from([0xff, 0xfe]));
    expect(await client.children('/work')).toEqual(['queue-0000000000']);
    expect(await zk('queue take /work --json')).toEqual(well('{"base64":"//4="}\n'));
    const both = Buffer.from('0001000101000000016101000000016202', 'hex');
    await client.create('/work/queue-', both, 'persistent-sequential');
    expect(await zk('queue take /work')).toEqual(well('a\n'));
    expect(await zk('queue take /work')).toEqual(well('b\n'));
    await queue(client, '/work', { format: 'distributed' }).put(Buffer.from([0xff, 0xfe]));
    const piped = runProcess(
      'sh',
      ['-c', `"$0" "$@" | od -An -tx1`, process.execPath, cliFile, ...'zk queue take /work'.split(' ')],
      {
        env: { NODELEASE_ZOOKEEPER: connect },
      },
    );
    expect(await piped.exit).toEqual({ code: 0, signal: null });
    expect(piped.stdout()).toBe(' ff fe 0a\n');
  });

  it('with a lock path, removes an item only when its reader has it', async () => {
    await zk('queue put /work', { stdin: 'a\nb\nc\n' });
    expect(await zk('queue take /work --lock-path /locks -n 2')).toEqual(well('a\nb\n'));
    expect(await client.children('/locks')).toEqual([]);
    expect(await client.children('/work')).toHaveLength(1);
    const taker = start('queue take /work --lock-path /locks -n 2');
    await taker.waitForOutput(/c\n/);
    await expect.poll(() => client.children('/work')).toEqual([]);
  });

  it('refuses an item that is too large, and names the limit', async () => {
    const large = 'x'.repeat(1_048_577);
    const { code, complaints } = await zk('queue put /work', { stdin: large });
    expect(code).toBe(64);
    expect(complaints).toMatch(/at most 10\d{5} bytes as they are stored, the servers' limit/);
    const some = await zk('queue put /work', { stdin: `small\n${large}` });
    expect(some.complaints).toMatch(
      /^nodelease: 1 of 2 items have been put\nnodelease: item: expected at most/,
    );
    expect(await zk('queue take /work --try')).toEqual(well('small\n'));
  });
});
