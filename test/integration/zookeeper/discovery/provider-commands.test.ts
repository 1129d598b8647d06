import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Diagnosis } from '../../../../src/app/cli/doctor/diagnosis.js';
import { checkRights } from '../../../../src/app/cli/doctor/zookeeper-rights-check.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { Lease } from '../../../../src/core/lease/model/lease.js';
import type { StatusReport } from '../../../../src/node/wire/status-report.js';
import { type ZnodeStat, ZooKeeperError } from '../../../../src/zookeeper/client/zookeeper.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { acquireFromZooKeeper } from '../../../../src/zookeeper/discovery/allocation/acquire-from-zookeeper.js';
import { evictAllocated } from '../../../../src/zookeeper/discovery/allocation/evict-allocated.js';
import { decodeAssignment } from '../../../../src/zookeeper/discovery/layout.js';
import { runInProcess } from '../../../support/in-process.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, type TestProcess } from '../../../support/processes.js';
import { expireSession } from '../../../support/zookeeper.js';
import { isAlive, removeFolders } from '../../app/cli/run-support.js';
import { client, closeClients, data, RIGHTS, restrict } from './discovery-support.js';
import { idPath, ProviderScene } from './provider-support.js';

// The commands that look at a store, where ZooKeeper gives out the node ids.

let scene: ProviderScene;
let connect: string;
let tree: ZooKeeperClient;
let folder: string;

beforeEach(() => {
  scene = new ProviderScene();
  ({ connect, tree, folder } = scene);
});

afterEach(async () => {
  await killAll();
  await scene.end();
  await stopProxies();
  await closeClients();
  removeFolders();
});

async function answer(command: TestProcess) {
  const { code } = await command.exit;
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

const run = (...args: string[]) => answer(scene.start([...args, ...scene.provider]));

/** The same in this process: for what a command says, once another test has shown that it is one. */
async function call(...args: string[]) {
  const { code, answer: stdout, complaints: stderr } = await runInProcess([...args, ...scene.provider]);
  return { code, stdout, stderr };
}

const versionOf = async (nodeId: number) => Number((await tree.read(idPath(nodeId)))?.stat.createdZxid);

/** Resolves when a znode has been made, also one that is gone again at once. */
async function untilThere(at: string): Promise<void> {
  await new Promise<void>((resolve) => {
    const watch = tree.watchData(at, (znode) => znode !== undefined && resolve());
    scene.ends.push(async () => watch.close());
  });
}

describe('nodelease status --provider zookeeper', () => {
  it('says that there are no node ids yet, which is no failure', async () => {
    expect(await call('status')).toEqual({
      code: 0,
      stdout: `No node id has been given out at ${connect} yet: the first nodelease run --provider zookeeper takes one.\n`,
      stderr: '',
    });
    const { stdout } = await call('status', '--json');
    expect(JSON.parse(stdout)).toEqual({
      store: null,
      cluster: null,
      nodes: [],
      discovery: null,
      allocation: { zookeeper: connect, groups: [], idWidth: 8 },
      ...{ draining: [], page: null, totals: null },
    });
  });

  it('shows who holds what as it does for a store, with nothing where ZooKeeper shows nothing, and opens no store', async () => {
    await scene.hold('one');
    await scene.hold('two');
    const [first, second] = [await versionOf(0), await versionOf(1)];
    const { code, stdout, stderr } = await answer(
      scene.start(['status'], { NODELEASE_PROVIDER: 'zookeeper', NODELEASE_ZOOKEEPER: connect }),
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.split('\n');
    expect(lines[0]?.replace(/ +/g, ' ')).toBe('ID STATE VERSION TASK AGE EXPIRES IN PROBLEM');
    expect(lines.slice(1).map((line) => line.replace(/ +/g, ' '))).toEqual([
      ` 0 held ${first} one`,
      ` 1 held ${second} two`,
      'held 2, damaged 0; 1 group (00), node ids 8 bits wide',
      '',
    ]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('gives JSON of the same shape, with null for what only a store knows', async () => {
    await scene.hold('one');
    await tree.ensurePath('/discovery/nodes/01');
    const report = JSON.parse((await call('status', '--json')).stdout) as StatusReport;
    const version = await versionOf(0);
    const unknown = {
      ageMs: null,
      expiresInMs: null,
      timestamp: null,
      knownNodes: {},
      idWidth: expect.any(Number),
      problem: null,
    };
    expect(report).toEqual({
      store: null,
      cluster: null,
      nodes: [{ id: 0, state: 'held', version, taskId: 'one', ...unknown }],
      discovery: null,
      allocation: { zookeeper: connect, groups: [0, 1], idWidth: 9 },
      ...{ draining: [], page: null, totals: null },
    });
    // Wider ids than the groups need were made here before.
    await tree.createWithParents('/discovery/stamps', '{"idWidth":10}', 'persistent');
    const wider = JSON.parse((await call('status', '--json')).stdout) as StatusReport;
    expect(wider.allocation).toEqual({ zookeeper: connect, groups: [0, 1], idWidth: 10 });
  });

  it('names what takes an id and is no holder', async () => {
    await tree.createWithParents(idPath(0), '{"taskId":"claims","nodeId":0,"nonce":"n"}', 'ephemeral');
    await tree.create(idPath(1), 'gar\x1bbage', 'ephemeral');
    await tree.create(idPath(2), data(2, 1), 'persistent');
    await tree.create(idPath(3), data(7, 1), 'ephemeral');
    const { code, stdout } = await call('status');
    expect(code).toBe(0);
    expect(stdout).not.toContain('\x1b');
    // One that has claimed its id this very instant has written no version yet: it is that of its znode.
    expect(stdout).toMatch(new RegExp(`\n 0 {2}held +${await versionOf(0)} {2}claims\n`));
    expect(stdout).toMatch(/\n 1 {2}unreadable +- +unreadable: gar.bage\n/);
    expect(stdout).toMatch(
      /\n 2 {2}unreadable +1 {2}task-2 +persistent: goes with no session, remove \/discovery\/nodes\/00\/0A by hand\n/,
    );
    expect(stdout).toMatch(/\n 3 {2}held +1 {2}task-7 +its data names node id 7\n/);
    expect(stdout).toMatch(/\nheld 1, damaged 3; 1 group \(00\), node ids 8 bits wide\n$/);
  });

  it('goes on with --watch until it is interrupted, and ends with 0', async () => {
    const watch = scene.start(['status', '--watch', ...scene.provider]);
    await watch.waitForOutput(/(No node id has been given out.*\n\n){2}/);
    await tree.createWithParents(idPath(0), data(0, 1), 'ephemeral');
    await watch.waitForOutput(/ 0 {2}held .*task-0\nheld 1,/);
    watch.kill('SIGINT');
    expect(await watch.exit).toEqual({ code: 0, signal: null });
  });
});

describe('nodelease doctor --provider zookeeper', () => {
  it('examines only ZooKeeper, and opens no store', async () => {
    const { code, stdout, stderr } = await run('doctor');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`^ZooKeeper at ${connect}\n {2}ok {5}server `));
    expect(stdout).toMatch(/\nAll is well\.\n$/);
    const diagnosis = JSON.parse((await call('doctor', '--json')).stdout) as Diagnosis;
    const { zookeeper, ...rest } = diagnosis;
    const unknown = { latencyMs: null, clockOffsetMs: null, cluster: null, cost: null };
    expect(rest).toEqual({ store: null, ok: true, findings: [], damaged: [], ...unknown });
    expect(zookeeper).toMatchObject({ zookeeper: connect, ok: true });
    expect(readdirSync(folder)).toEqual([]);
    expect(await tree.children('/')).toBeUndefined();
  });

  it('names what an earlier user made and left, which ids and their stamps need, and changes nothing of what there is', async () => {
    const server = inject('zookeeper').connect;
    const below = connect.slice(server.length);
    const stamp = '{"timestamp":1700000000000,"nonce":"n"}';
    for (const id of ['08', '09', '0A'])
      await tree.createWithParents(`/discovery/stamps/00/${id}`, stamp, 'persistent');
    for (const path of ['nodes/01', 'nodes/02', 'nodes/03']) await tree.ensurePath(`/discovery/${path}`);
    expect(await call('doctor')).toMatchObject({ code: 0, stderr: '' });
    const cases: [folder: string, right: keyof typeof RIGHTS, text: string][] = [
      ['/stamps', 'write', '/stamps may not be changed'],
      ['/stamps', 'create', '/stamps/probe-\\w+ may not be made and removed'],
      ['/stamps/00', 'create', '/stamps/00/probe-\\w+ may not be made and removed'],
      ['/stamps/00', 'read', '/stamps/00 may not be listed'],
      // One of them is enough to be reported.
      ['/stamps/00/09', 'write', '/stamps/00/09 may not be changed'],
      ['/nodes/02', 'write', '/nodes/02 may not be changed'],
    ];
    const all = Object.keys(RIGHTS) as (keyof typeof RIGHTS)[];
    const examined = {
      zookeeper: client(server),
      chroot: below,
      allocates: true,
      clock: systemClock,
      random: systemRandom,
    };
    for (const [index, [folder, right, text]] of cases.entries()) {
      const path = `${below}/discovery${folder}`;
      const others = all.filter((each) => each !== right);
      await restrict(server, path, others);
      const { denied, failed } = await checkRights(examined);
      expect({ denied, failed }).toEqual({
        denied: [expect.stringMatching(new RegExp(`^${below}/discovery${text}: no-auth$`))],
        failed: [],
      });
      if (index === 0) {
        const { code, stderr } = await call('doctor');
        expect({ code, stderr }).toEqual({
          code: 69,
          stderr: expect.stringMatching(new RegExp(`: 1 fault: ${below}/discovery${text}: no-auth .*\n$`)),
        });
      }
      await restrict(server, path, all);
    }
    const after = await tree.read('/discovery/stamps/00/08');
    expect([after?.data.toString(), after?.stat.version]).toEqual([stamp, 0]);
    expect((await tree.read('/discovery/nodes/02'))?.stat.version).toBe(0);
    // Where ids are leased from a store, none of that is needed.
    await restrict(server, `${below}/discovery/stamps/00/09`, ['read', 'admin']);
    expect(await checkRights({ ...examined, allocates: false })).toMatchObject({ denied: [], failed: [] });
    const nextTo = await runInProcess(['doctor', '--store', 'memory:', '--zookeeper', connect]);
    expect(nextTo).toMatchObject({
      code: 0,
      complaints: '',
      answer: expect.stringContaining(`ZooKeeper at ${connect}`),
    });
  });

  it('ends with 69 and names the fault', async () => {
    const env = { NODELEASE_PROVIDER: 'zookeeper', NODELEASE_ZOOKEEPER: '127.0.0.1:1' };
    const { code, stderr } = await answer(scene.start(['doctor'], env));
    expect(code).toBe(69);
    expect(stderr).toMatch(
      /^nodelease: ZooKeeper at 127\.0\.0\.1:1: 1 fault: server 127\.0\.0\.1:1: no server listens there .*\n$/,
    );
  });

  it('ends with 130 where it is interrupted, and leaves nothing behind', async () => {
    const { proxy, through } = await throughProxy(connect);
    // Slow enough that there is time to interrupt it: some twenty requests are still to come.
    proxy.delay(100);
    const isAtWork = untilThere('/discovery');
    const slow = scene.start(['doctor', '--provider', 'zookeeper', '--zookeeper', through]);
    await isAtWork;
    slow.kill('SIGINT');
    expect(await answer(slow)).toEqual({ code: 130, stdout: '', stderr: '' });
    expect(await tree.children('/')).toBeUndefined();
  });
});

describe('nodelease release ID --force --provider zookeeper', () => {
  it('ends a holder that works with 76, and no task has the id before its command is dead', async () => {
    await scene.takeAllBut(0);
    const holder = await scene.hold('holder', '--zookeeper-session-timeout', '40s');
    const version = await versionOf(0);
    // The very instant in which the id is free: a real waiting task takes a little longer.
    let busyWhenFree: boolean | undefined;
    const watch = tree.watchData(idPath(0), (znode) => {
      if (Number(znode?.stat.createdZxid) !== version) busyWhenFree ??= isAlive(holder.work);
    });
    await watch.first;
    const next = scene.nextHolder(holder.work);
    const released = await run('release', '0', '--force');
    const releasedAt = performance.now();
    expect({ ...released, stdout: released.stdout.split('\n')[0] }).toEqual({
      code: 0,
      stdout: `node id 0 is taken away from task holder (version ${version})`,
      stderr: '',
    });
    expect(released.stdout).toMatch(
      /\nthe task stops at its next heartbeat, others may take the id when its session has ended: .* 10s after its last sign of life .*\n$/,
    );
    const { lease, busy } = await next;
    expect({ id: lease.id, busy }).toEqual({ id: 0, busy: false });
    await expect.poll(() => busyWhenFree).toBe(false);
    watch.close();
    expect(lease.version).toBeGreaterThan(version);
    expect((await holder.exit).code).toBe(76);
    // Its session, of 40 s, was ended, not left to run out.
    expect(performance.now() - releasedAt).toBeLessThan(25_000);
  });

  it('keeps the id of a holder that does not answer from the others until its session has ended, and shows it as evicted meanwhile', async () => {
    await scene.takeAllBut(0);
    const holder = await scene.hold('holder', '--zookeeper-session-timeout', '40s');
    const { createdZxid, owner } = (await tree.read(idPath(0)))?.stat ?? {};
    await new ProcessHandle(holder.pid).pause();
    let given: Lease | undefined;
    const next = scene.nextHolder(holder.work).then(({ lease }) => {
      given = lease;
      return lease;
    });
    expect((await call('release', '0', '--force')).code).toBe(0);
    expect(isAlive(holder.work)).toBe(true);
    const status = await call('status');
    expect(status.stdout).toMatch(new RegExp(`\n +0 {2}evicted +${createdZxid} {2}holder\n`));
    expect(status.stdout).toMatch(/\nheld 0, damaged 247, evicted 1; /);
    const again = await call('release', '0', '--force');
    expect(again.code).toBe(0);
    expect(again.stdout).toMatch(
      /^node id 0 was taken away before from task holder .*, whose session has not ended yet: nothing was changed\n/,
    );
    expect(given).toBeUndefined();
    await expireSession({ connect: inject('zookeeper').connect, sessionId: owner ?? '' });
    expect((await next).id).toBe(0);
    process.kill(holder.pid, 'SIGCONT');
    expect((await holder.exit).code).toBe(76);
    expect(given?.isValid()).toBe(true);
  });

  it('leaves what the holder announced in place of its claim readable, but for the mark of the tenure', async () => {
    const zookeeper = client(connect);
    const announced = { address: '10.0.0.1', port: 8080 };
    const options = {
      zookeeper,
      clock: systemClock,
      random: systemRandom,
      taskId: 'holder',
      data: announced,
    };
    const lease = await acquireFromZooKeeper(options);
    scene.ends.push(() => lease.release());
    const begun = systemClock.now();
    expect((await call('release', '0', '--force')).code).toBe(0);
    await expect.poll(() => lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toMatchObject({ reason: 'taken' });
    const left = decodeAssignment((await tree.read(idPath(0)))?.data as Buffer);
    expect(left).toEqual({
      taskId: 'holder',
      nodeId: 0,
      version: lease.version,
      idWidth: 8,
      ...announced,
      evictedAt: expect.any(Number),
    });
    expect(left?.evictedAt).toBeGreaterThanOrEqual(begun);
    // The session goes on, so no other task gets the id: that is up to the one that ends the work.
    const other = await acquireFromZooKeeper({ ...options, zookeeper: client(connect) });
    scene.ends.push(() => other.release());
    expect(other.id).toBe(1);
  });

  it('says that an id is free, which is no failure, and changes nothing', async () => {
    const free = { code: 0, stdout: 'node id 5 is not held: it is free, nothing was changed\n', stderr: '' };
    expect(await call('release', '5', '--force')).toEqual(free);
    expect(await tree.children('/')).toBeUndefined();
    await tree.createWithParents(idPath(4), data(4, 1), 'ephemeral');
    expect(await call('release', '5', '--force')).toEqual(free);
  });

  it('leaves alone what is no claim of an id, and fails', async () => {
    await tree.createWithParents(idPath(0), data(0, 1), 'ephemeral');
    await tree.create(idPath(1), data(1, 1, { nonce: 'n' }), 'persistent');
    await tree.create(idPath(2), 'garbage', 'ephemeral');
    const foreign =
      /^nodelease: node id \d: \/discovery\/nodes\/00\/0\w is not of a task that has its node id from ZooKeeper .*\n$/;
    const persistent =
      /^nodelease: node id 1: \/discovery\/nodes\/00\/09 is persistent, .*: left as it is \[ZOOKEEPER_FAILED\]\n$/;
    for (const [id, complaint] of [foreign, persistent, foreign].entries()) {
      const before = await tree.read(idPath(id));
      const { code, stdout, stderr } = await call('release', String(id), '--force');
      expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
      expect(stderr).toMatch(complaint);
      expect(await tree.read(idPath(id))).toEqual(before);
    }
  });

  it('names the znode that may not be changed, and fails', async () => {
    const owner = client(connect, { auth: 'digest:owner:secret' });
    await owner.createWithParents(idPath(0), data(0, 1, { nonce: 'n' }), 'ephemeral');
    const { code, stderr } = await call('release', '0', '--force');
    expect(code).toBe(69);
    expect(stderr).toMatch(/^nodelease: .*\/discovery\/nodes\/00\/08.*no-auth.*\n$/);
    expect((await call('release', '0', '--force', '--zookeeper-auth', 'digest:owner:secret')).code).toBe(0);
  });
});

describe('an eviction', () => {
  const claim = (taskId: string, idWidth = 8) => data(0, 1, { taskId, nonce: `of ${taskId}`, idWidth });
  const left = async () => decodeAssignment((await tree.read(idPath(0)))?.data as Buffer);

  /** Evicts over a client of its own, whose first change of a znode goes as `fault` says. */
  function evict(fault: (write: () => Promise<ZnodeStat>) => Promise<ZnodeStat>) {
    const zookeeper = client(connect);
    const write = zookeeper.setData.bind(zookeeper);
    let writes = 0;
    zookeeper.setData = (...args) => {
      writes += 1;
      return writes === 1 ? fault(() => write(...args)) : write(...args);
    };
    return evictAllocated({ zookeeper, clock: systemClock }, 0).then((eviction) => ({ eviction, writes }));
  }

  const lost = () => new ZooKeeperError('connection lost', 'connection-loss', 'unknown');

  it('whose answer is lost is found to have been carried out', async () => {
    await tree.createWithParents(idPath(0), claim('holder'), 'ephemeral');
    const { eviction, writes } = await evict(async (write) => {
      await write();
      throw lost();
    });
    expect(eviction).toEqual({
      kind: 'evicted',
      taskId: 'holder',
      version: await versionOf(0),
      earlier: false,
    });
    expect(writes).toBe(1);
  });

  it('that is lost on its way is made again', async () => {
    await tree.createWithParents(idPath(0), claim('holder'), 'ephemeral');
    const { eviction } = await evict(() => Promise.reject(lost()));
    expect(eviction).toEqual({
      kind: 'evicted',
      taskId: 'holder',
      version: await versionOf(0),
      earlier: false,
    });
    expect(await left()).not.toHaveProperty('nonce');
  });

  it('is made again where the holder has changed its znode meanwhile, and keeps the change', async () => {
    await tree.createWithParents(idPath(0), claim('holder'), 'ephemeral');
    const { eviction, writes } = await evict(async (write) => {
      await tree.setData(idPath(0), claim('holder', 9));
      return write();
    });
    expect([eviction.kind, writes]).toEqual(['evicted', 2]);
    expect(await left()).toMatchObject({ idWidth: 9, evictedAt: expect.any(Number) });
  });

  it('does not pass to the next holder where the one that was seen has gone', async () => {
    await tree.createWithParents(idPath(0), claim('holder'), 'ephemeral');
    await tree.setData(idPath(0), claim('holder'));
    const version = await versionOf(0);
    const { eviction } = await evict(async (write) => {
      await tree.remove(idPath(0));
      await tree.create(idPath(0), claim('next'), 'ephemeral');
      return write();
    });
    expect(eviction).toEqual({ kind: 'ended', taskId: 'holder', version });
    expect(await left()).toMatchObject({ taskId: 'next', nonce: 'of next' });
    const gone = await evict(async (write) => {
      await tree.remove(idPath(0));
      return write();
    });
    expect(gone.eviction).toMatchObject({ kind: 'ended', taskId: 'next' });
  });

  it('says so where it hit the next holder in the same instant, for the servers compare numbers of changes', async () => {
    await tree.createWithParents(idPath(0), claim('holder'), 'ephemeral');
    const { eviction } = await evict(async (write) => {
      await tree.remove(idPath(0));
      await tree.create(idPath(0), claim('next'), 'ephemeral');
      return write();
    });
    expect(eviction).toEqual({
      kind: 'evicted',
      taskId: undefined,
      version: await versionOf(0),
      earlier: false,
    });
  });
});

describe('nodelease init --provider zookeeper', () => {
  it('makes the first group and the chroot, and the next time says that there is nothing to do', async () => {
    expect(await run('init')).toEqual({
      code: 0,
      stdout: `made /discovery/nodes/00 at ${connect}: the first group of node ids\n`,
      stderr: '',
    });
    expect(await tree.children('/discovery/nodes')).toEqual(['00']);
    expect((await tree.read('/discovery/nodes/00'))?.stat.owner).toBeUndefined();
    expect(await call('init')).toEqual({
      code: 0,
      stdout: `/discovery/nodes/00 is there already at ${connect}: nothing to do\n`,
      stderr: '',
    });
    expect(readdirSync(folder)).toEqual([]);
    await scene.hold('one');
  });
});
