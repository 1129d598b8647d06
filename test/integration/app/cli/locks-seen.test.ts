import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { elect } from '../../../../src/zookeeper/recipes/elect.js';
import { lock } from '../../../../src/zookeeper/recipes/lock.js';
import { readLock, writeLock } from '../../../../src/zookeeper/recipes/read-write-lock.js';
import { semaphore } from '../../../../src/zookeeper/recipes/semaphore.js';
import { runInProcess } from '../../../support/in-process.js';
import { restrict } from '../../zookeeper/discovery/discovery-support.js';
import { RecipeScene } from '../../zookeeper/recipes/recipe-scene.js';
import { newFolder, removeFolders } from './run-support.js';

let scene: RecipeScene;
let client: ZooKeeperClient;
let connect: string;

beforeEach(async () => {
  scene = new RecipeScene();
  connect = `${inject('zookeeper').connect}${scene.chroot}`;
  client = await scene.open();
});
afterEach(async () => {
  await scene.close();
  removeFolders();
});

const standing = (path: string, count: number) =>
  expect.poll(async () => (await client.children(path))?.length, { message: path }).toBe(count);
/** Waits for its turn until the client is closed. */
const wait = (contender: { acquire(): Promise<unknown> }) => void contender.acquire().catch(() => undefined);

const ls = (...args: string[]) => runInProcess(['discovery', 'ls', '--zookeeper', connect, ...args]);

describe('nodelease discovery ls --locks', () => {
  it('shows holders and waiting tasks of every kind of lock, and distinguishes those of a semaphore', async () => {
    const held = await lock(client, '/app/a', { data: 'one' }).acquire();
    wait(lock(client, '/app/a', { data: 'two' }));
    await standing('/app/a', 2);
    wait(lock(client, '/app/a', { data: 'three' }));
    await elect(client, '/app/deep/leader', { id: 'me' }).acquire();
    await readLock(client, '/app/rw', { data: 'r1' }).acquire();
    await readLock(client, '/app/rw', { data: 'r2' }).acquire();
    wait(writeLock(client, '/app/rw', { data: 'w' }));
    await standing('/app/rw', 3);
    wait(readLock(client, '/app/rw', { data: 'r3' }));
    await standing('/app/rw', 4);
    for (const data of ['s1', 's2']) await semaphore(client, '/app/semaphore', { leases: 2, data }).acquire();
    wait(semaphore(client, '/app/semaphore', { leases: 2, data: 's3' }));
    await standing('/app/semaphore/leases', 3);
    wait(semaphore(client, '/app/semaphore', { leases: 2, data: 's4' }));
    await standing('/app/semaphore/locks', 2);
    await client.createWithParents('/app/queue/qn-0000000000', 'x', 'persistent');
    await client.createWithParents('/app/settings/locks', 'x', 'persistent');

    const { code, answer, complaints } = await ls('--locks', '/app', '--json');
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' });
    const { locks, ...head } = JSON.parse(answer);
    expect(head).toEqual({ zookeeper: connect, paths: ['/app'] });
    const names = (of: { data: string }[]) => of.map(({ data }) => data).join(' ');
    expect(
      // biome-ignore lint/suspicious/noExplicitAny: what a program reads
      locks.map(({ path, kind, holders, waiting }: any) => [path, kind, names(holders), names(waiting)]),
    ).toEqual([
      ['/app/a', 'lock', 'one', 'two three'],
      ['/app/deep/leader', 'election', 'me', ''],
      ['/app/rw', 'read-write lock', 'r1 r2', 'w r3'],
      ['/app/semaphore', 'semaphore', 's1 s2', 's3 s4'],
    ]);
    const { state } = client;
    const [holder] = locks[0].holders;
    expect(holder).toMatchObject({
      token: String(held.token),
      sessionId: 'sessionId' in state ? state.sessionId : '',
    });
    expect(holder.ageMs).toBeGreaterThan(0);
    expect(holder.ageMs).toBeLessThan(60_000);

    const table = (await ls('--locks', '/app/a,/app/rw')).answer;
    expect(table).toMatch(/^PATH +KIND +HOLDER +SESSION +TOKEN +AGE +WAITING\n/);
    expect(table).toMatch(/\n\/app\/a +lock +one +[0-9a-f]{16} +\d+ +\d+\.\ds +2: two, three\n/);
    expect(table).toMatch(
      /\n\/app\/rw +read-write lock +r1 .* 2: w, r3\n\/app\/rw +read-write lock +r2 +[0-9a-f]{16} +\d+ +\d+\.\ds\n$/,
    );
  });

  it('says that nothing is held, what is no path, and that it shows either locks or announcements', async () => {
    expect(await ls('--locks', '/')).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/^No lock is held at \/ of .*, or below\.\n$/),
    });
    expect(await ls('--locks', 'locks')).toMatchObject({
      code: 64,
      complaints: expect.stringMatching(/--locks: expected absolute paths .* got "locks"/),
    });
    expect(await ls('/discovery', '--locks', '/')).toMatchObject({
      code: 64,
      complaints: 'nodelease: expected either --locks or the path /discovery [USAGE]\n',
    });
  });

  it('fails where something may not be read', async () => {
    await client.createWithParents('/mine/report', '', 'persistent');
    await restrict(connect, '/mine/report', ['create']);
    expect(await ls('--locks', '/mine')).toMatchObject({
      code: 69,
      answer: '',
      complaints: expect.stringContaining('no-auth'),
    });
  });
});

describe('the console with --console-locks', () => {
  it('wants paths, and ZooKeeper with them', async () => {
    const run = (...args: string[]) => runInProcess(['console', '--store', `file:${newFolder()}`, ...args]);
    expect(await run('--zookeeper', connect, '--console-locks', 'locks')).toMatchObject({
      code: 64,
      complaints: expect.stringContaining('--console-locks: expected absolute paths'),
    });
    expect(await run('--console-locks', '/locks')).toMatchObject({
      code: 64,
      complaints: expect.stringContaining('--zookeeper with it'),
    });
  });
});
