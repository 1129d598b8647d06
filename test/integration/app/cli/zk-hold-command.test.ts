import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { parseLog } from '../../../support/fleet.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { expireSession } from '../../../support/zookeeper.js';
import { RecipeScene } from '../../zookeeper/recipes/recipe-scene.js';
import { untilDead } from './run-support.js';

const PATH = '/locks/report';
let scene: RecipeScene;
let observer: ZooKeeperClient;
let connect: string;

beforeEach(async () => {
  scene = new RecipeScene();
  connect = `${inject('zookeeper').connect}${scene.chroot}`;
  observer = await scene.open();
});
afterEach(async () => {
  await killAll();
  await scene.close();
  await stopProxies();
});

/** A session that does not expire by itself while a test takes place. */
const LONG = '20s';

/** `nodelease zk …`; what follows `--` is a shell script. */
function zk(args: string, script: string, through = connect, session = LONG): TestProcess {
  return runCli([
    'zk',
    ...args.split(' '),
    '--zookeeper',
    through,
    '--zookeeper-session-timeout',
    session,
    '--',
    'sh',
    '-c',
    script,
  ]);
}
const codeOf = async (run: TestProcess) => (await run.exit).code;
const standing = async (path = PATH) => [...((await observer.children(path)) ?? [])].sort();
const untilStanding = (count: number, path = PATH) => expect.poll(() => standing(path)).toHaveLength(count);
/** A command that runs until it is ended, and has begun. */
async function holder(
  args: string,
  script = 'echo held; exec sleep 600',
  through = connect,
  session = LONG,
): Promise<TestProcess> {
  const run = zk(args, script, through, session);
  await run.waitForOutput(/^held/m);
  return run;
}
/** Ends the session of the first in the queue, as if its host had been away for too long. */
async function expire(path = PATH): Promise<void> {
  const sequence = (name: string) => Number(name.slice(-10));
  const [name] = (await standing(path)).sort((a, b) => sequence(a) - sequence(b));
  const { owner } = (await observer.read(`${path}/${name}`))?.stat ?? {};
  await expireSession({ connect: inject('zookeeper').connect, sessionId: owner ?? '' });
}

describe('nodelease zk lock', () => {
  it('runs the command while it holds the lock, passes it the path and the token, and keeps its exit code', async () => {
    const run = zk(`lock ${PATH} --task-id me`, 'echo "$LOCK_PATH $LOCK_TOKEN"; read x; exit 5');
    await run.waitForOutput(/\n/);
    expect(await codeOf(run)).toBe(5);
    const [, token = ''] = run.stdout().trim().split(' ');
    expect(run.stdout()).toBe(`${PATH} ${token}\n`);
    // It names a tenure and opens nothing: logs that leave it out are of no use.
    expect(
      parseLog(run.stderr()).find(({ msg }) => msg === `acquired ${PATH} with token ${token}`)?.fields
        .fencingToken,
    ).toBe(token);
    const again = zk(`lock ${PATH}`, 'echo $LOCK_TOKEN');
    expect(await codeOf(again)).toBe(0);
    expect(BigInt(again.stdout())).toBeGreaterThan(BigInt(token));
    expect(await standing()).toEqual([]);
  });

  it("belongs to one holder: others wait for it in their order, by Curator's znodes that name the task", async () => {
    const first = await holder(`lock ${PATH} --task-id one`, 'echo held $LOCK_TOKEN; exec sleep 600');
    const second = zk(`lock ${PATH}`, 'echo "second $LOCK_TOKEN"');
    await untilStanding(2);
    const names = (await standing()).map((each) => each.replace(/^_c_[0-9a-f-]{36}-/, '')).sort();
    expect(names).toEqual(['lock-0000000000', 'lock-0000000001']);
    const znodes = await Promise.all((await standing()).map((each) => observer.read(`${PATH}/${each}`)));
    const own = znodes.find((znode) => znode?.data.toString() === 'one');
    expect(first.stdout()).toBe(`held ${own?.stat.createdZxid}\n`);
    expect(second.stdout()).toBe('');
    first.kill('SIGTERM');
    expect(await codeOf(first)).toBe(143);
    expect(await codeOf(second)).toBe(0);
    expect(second.stdout()).toMatch(/^second \d+\n$/);
  });

  it('exits with 75 where it is held: at once with --try, after the time-out with --timeout; nothing is left of the attempt', async () => {
    await holder(`lock ${PATH}`);
    const tried = zk(`lock ${PATH} --try`, 'echo never');
    const late = zk(`lock ${PATH} --timeout 2s`, 'echo never');
    expect(await Promise.all([codeOf(tried), codeOf(late)])).toEqual([75, 75]);
    expect(tried.stdout() + late.stdout()).toBe('');
    expect(tried.stderr()).toContain(`${PATH} could not be acquired within 0 ms`);
    expect(late.stderr()).toContain(`${PATH} could not be acquired within 2000 ms`);
    await untilStanding(1);
  });

  it('is interrupted while it waits, with 128 plus the number of the signal', async () => {
    await holder(`lock ${PATH}`);
    const waiting = zk(`lock ${PATH}`, 'echo never');
    await untilStanding(2);
    waiting.kill('SIGTERM');
    expect(await codeOf(waiting)).toBe(143);
    await untilStanding(1);
  });

  it('kills the command at once and exits with 76 when its session has expired', async () => {
    const run = await holder(`lock ${PATH}`, 'trap "" TERM; echo held; while :; do sleep 0.05; done');
    await expire();
    expect(await codeOf(run)).toBe(76);
    expect(run.stderr()).toMatch(/lock \/locks\/report \(token \d+\) is lost/);
  });

  it('ends the command before its session can have expired, where ZooKeeper cannot be reached', async () => {
    const { proxy, through } = await throughProxy(connect);
    const run = await holder(
      `lock ${PATH}`,
      'trap "" TERM; echo held $$; while :; do sleep 0.05; done',
      through,
      '6s',
    );
    const pid = Number(run.stdout().split(' ')[1]);
    proxy.stall('both');
    // The command, which does not heed SIGTERM, is gone when the servers end the session and another one may
    // have the lock.
    await untilStanding(0);
    await untilDead([pid], 0);
    expect(await codeOf(run)).toBe(76);
    expect(run.stderr()).toContain('ending the command before its lease runs out');
  });

  it('does not outlive nodelease: where that is killed, its guard kills the command, and the next holder comes after the session', async () => {
    const run = await holder(`lock ${PATH}`, 'echo held $$; exec sleep 600');
    const next = zk(`lock ${PATH}`, 'echo next');
    await untilStanding(2);
    run.kill('SIGKILL');
    await untilDead([Number(run.stdout().split(' ')[1])]);
    expect([await standing(), next.stdout()]).toEqual([expect.objectContaining({ length: 2 }), '']);
    await expire();
    expect(await codeOf(next)).toBe(0);
    expect(next.stdout()).toBe('next\n');
  });

  it('leaves the lock to expire where processes of the command are left, for others must not have it before', async () => {
    // Ignored from before it begins, so that there is no moment in which SIGTERM ends it.
    const leaving = 'trap "" TERM; (echo held; while :; do sleep 0.05; done) & exit 0';
    const run = await holder(`lock ${PATH}`, leaving);
    await run.waitForOutput(/left processes behind/);
    run.kill('SIGTERM');
    await run.waitForOutput(/left to expire/);
    await run.exit;
    expect(await standing()).toHaveLength(1);
    await expire();
    await untilStanding(0);
  });

  it('is interrupted while there is no connection yet', async () => {
    const run = zk(`lock ${PATH}`, 'echo never', '127.0.0.1:1');
    await run.waitForOutput(/standing for/);
    run.kill('SIGTERM');
    expect(await codeOf(run)).toBe(143);
  });

  it('rejoins the queue after a loss with --restart, and starts the command again with a greater token', async () => {
    const run = await holder(`lock ${PATH} --restart`, 'echo held $LOCK_TOKEN; exec sleep 600');
    await expire();
    await run.waitForOutput(/held \d+\nheld \d+\n/);
    const [first = 0n, second = 0n] = [...run.stdout().matchAll(/\d+/g)].map(([digits]) => BigInt(digits));
    expect(second).toBeGreaterThan(first);
    run.kill('SIGTERM');
    expect(await codeOf(run)).toBe(143);
    await untilStanding(0);
  });

  it('reports once that kazoo contends at its path under its own names, while it holds', async () => {
    const run = await holder(`lock ${PATH}`);
    await observer.create(`${PATH}/0a1b__lock__0000000001`, '', 'ephemeral');
    await run.waitForOutput(/kazoo contends for \/locks\/report under names of its own/);
    await observer.create(`${PATH}/2c3d__lock__0000000002`, '', 'ephemeral');
    run.kill('SIGTERM');
    expect(await codeOf(run)).toBe(143);
    expect(run.stderr().match(/kazoo contends/g)).toHaveLength(1);
  });

  it('says that znodes of another recipe stand there', async () => {
    await observer.createWithParents(`${PATH}/qn-0000000000`, '', 'persistent');
    const run = zk(`lock ${PATH}`, 'echo never');
    expect(await codeOf(run)).toBe(69);
    expect(run.stderr()).toContain('which is not of this recipe');
  });
});

describe('nodelease zk elect', () => {
  it('has one leader, and with --restart another term after the others when leadership was lost', async () => {
    const first = await holder(
      'elect /leader --task-id a --restart',
      'echo held $LOCK_TOKEN; exec sleep 600',
    );
    const second = zk('elect /leader --task-id b', 'echo held $LOCK_TOKEN; exec sleep 600');
    await untilStanding(2, '/leader');
    expect((await standing('/leader')).every((name) => /-latch-\d{10}$/.test(name))).toBe(true);
    expect(second.stdout()).toBe('');
    const leader = (await standing('/leader')).find((name) => name.endsWith('0'));
    await observer.remove(`/leader/${leader}`);
    await second.waitForOutput(/held \d+/);
    await untilStanding(2, '/leader');
    second.kill('SIGTERM');
    await first.waitForOutput(/held \d+\nheld \d+/);
  });
});

describe('nodelease zk rwlock', () => {
  it('lets readers in together, and a writer alone', async () => {
    const readers = [await holder(`rwlock --read ${PATH}`), await holder(`rwlock --read ${PATH}`)];
    const writer = zk(`rwlock --write ${PATH}`, 'echo held; exec sleep 600');
    await untilStanding(3);
    expect(await codeOf(zk(`rwlock --read ${PATH} --try`, 'echo never'))).toBe(75);
    expect(writer.stdout()).toBe('');
    for (const reader of readers) reader.kill('SIGTERM');
    await writer.waitForOutput(/held/);
    expect(await codeOf(zk(`rwlock --read ${PATH} --try`, 'echo never'))).toBe(75);
  });
});

describe('nodelease zk semaphore', () => {
  it('lets as many in as it has leases', async () => {
    const holders = [
      await holder(`semaphore ${PATH} --leases 2`),
      await holder(`semaphore ${PATH} --leases 2`),
    ];
    expect(await codeOf(zk(`semaphore ${PATH} --leases 2 --try`, 'echo never'))).toBe(75);
    const third = zk(`semaphore ${PATH} --leases 2`, 'echo third');
    await untilStanding(3, `${PATH}/leases`);
    holders[0]?.kill('SIGTERM');
    expect(await codeOf(third)).toBe(0);
  });
});
