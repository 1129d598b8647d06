import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateMode, createClient } from 'node-zookeeper-client';
import { afterEach, describe, expect, inject, test, vi } from 'vitest';
import { packageRoot } from '../package-root.js';
import { ProcessHandle } from '../process-handle.js';
import { runProcess } from '../processes.js';
import { expireSession, startZooKeeper, uniqueChroot } from '../zookeeper.js';
import { freePort } from './free-ports.js';
import { startEnsemble } from './zookeeper-ensemble.js';
import { fourLetter, isOk, startZooKeeperProcess, zkCli } from './zookeeper-process.js';

const cleanUp: (() => unknown)[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

/** A session, closed at the end, and what became of it. */
async function openClient(connect: string) {
  const client = createClient(connect, { sessionTimeout: 30_000, spinDelay: 50 });
  cleanUp.push(() => client.close());
  const expired = new Promise<void>((resolve) => client.once('expired', resolve));
  const connected = new Promise<void>((resolve) => client.once('connected', resolve));
  client.connect();
  await connected;
  return {
    sessionId: client.getSessionId(),
    expired,
    create: (path: string, data: string, mode: number = CreateMode.PERSISTENT) =>
      new Promise<string>((resolve, reject) => {
        client.create(path, Buffer.from(data), mode, (error, made) =>
          error ? reject(error) : resolve(made),
        );
      }),
  };
}

/** Makes the temporary folder one of this test alone, and answers what lies in it. */
async function ownTemporaryFolder(): Promise<() => Promise<string[]>> {
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-test-'));
  cleanUp.push(() => rm(folder, { recursive: true }));
  vi.stubEnv('TMPDIR', folder);
  return () => readdir(folder);
}

describe('the ZooKeeper server of this run', () => {
  test('keeps what a client wrote, for the command line client of ZooKeeper to read', async () => {
    const { connect } = inject('zookeeper');
    const chroot = uniqueChroot('cli');
    expect(uniqueChroot('cli')).not.toBe(chroot);
    await (await openClient(connect)).create(chroot, 'root');
    const client = await openClient(connect + chroot);
    await client.create('/a', 'one');
    await client.create('/b', '{"ü":\n"two words"}', CreateMode.EPHEMERAL);
    expect(await zkCli(connect + chroot, ['ls', '/'])).toBe('[a, b]');
    expect(await zkCli(connect, ['get', chroot])).toBe('root');
    expect(await zkCli(connect, ['get', `${chroot}/b`])).toBe('{"ü":\n"two words"}');
    await expect(zkCli(connect + chroot, ['get', '/c'])).rejects.toThrow('Node does not exist: /c');
  });

  test('lets a test end a session: its ephemeral znodes are gone and its client learns it', async () => {
    const { connect } = inject('zookeeper');
    const chroot = uniqueChroot();
    const client = await openClient(connect);
    await client.create(chroot, '');
    await client.create(`${chroot}/ephemeral`, '', CreateMode.EPHEMERAL);
    await client.create(`${chroot}/persistent`, '');
    const { sessionId, expired } = client;
    await expireSession({ connect, sessionId: sessionId.toString('hex') });
    expect(await zkCli(connect, ['ls', chroot])).toBe('[persistent]');
    await expired;
    await expect(expireSession({ connect, sessionId })).rejects.toThrow(
      `there is no session ${sessionId.toString('hex')}`,
    );
  });
});

describe('which server the tests take', () => {
  test('a connect string that is none, or has a chroot, is refused by name', async () => {
    for (const wrong of ['localhost', 'localhost:port', 'localhost:2181/chroot', 'a:1,,b:2']) {
      vi.stubEnv('NODELEASE_TEST_ZOOKEEPER', wrong);
      await expect(startZooKeeper()).rejects.toThrow(
        `NODELEASE_TEST_ZOOKEEPER: expected HOST:PORT[,HOST:PORT…] without a chroot, got ${wrong}`,
      );
    }
  });

  test('a kind of server that there is not is refused', async () => {
    vi.stubEnv('NODELEASE_TEST_ZOOKEEPER', '');
    vi.stubEnv('NODELEASE_TEST_ZOOKEEPER_SERVER', 'cloud');
    await expect(startZooKeeper()).rejects.toThrow(
      'NODELEASE_TEST_ZOOKEEPER_SERVER: expected container or process, got cloud',
    );
  });

  test("one's own server is refused when nothing answers there", async () => {
    const port = await freePort();
    vi.stubEnv('NODELEASE_TEST_ZOOKEEPER', `127.0.0.1:${port}`);
    await expect(startZooKeeper()).rejects.toThrow(
      `127.0.0.1:${port} (NODELEASE_TEST_ZOOKEEPER) cannot be used: Error: no session`,
    );
  });

  test("one's own server is refused when it grants no short sessions, and is left as it was found", async () => {
    const slow = await startZooKeeperProcess({ minSessionTimeoutMs: 4_000 });
    cleanUp.push(() => slow.dispose());
    vi.stubEnv('NODELEASE_TEST_ZOOKEEPER', slow.connect);
    await expect(startZooKeeper()).rejects.toThrow(
      'it grants no session shorter than 4000 ms, and the tests need one of 1000 ms',
    );
    expect(await isOk(slow.port)).toBe(true);
    expect(await zkCli(slow.connect, ['ls', '/'])).toBe('[zookeeper]');
  });

  test("one's own server is used and kept; only the chroots of the run go", async () => {
    const own = await startZooKeeperProcess();
    cleanUp.push(() => own.dispose());
    vi.stubEnv('NODELEASE_TEST_ZOOKEEPER', own.connect);
    vi.stubEnv('NODELEASE_TEST_ZOOKEEPER_MARK', undefined);
    const server = await startZooKeeper();
    expect(server).toMatchObject({
      connect: own.connect,
      description: `${own.connect} (NODELEASE_TEST_ZOOKEEPER)`,
    });
    const client = await openClient(own.connect);
    const chroot = uniqueChroot('mine');
    for (const path of [
      chroot,
      `${chroot}/a`,
      `${chroot}/a/b`,
      '/somebody-else',
      '/nodelease-test-of-another-run',
    ])
      await client.create(path, '');
    const another = await startZooKeeper();
    await another.stop();
    expect(await zkCli(own.connect, ['ls', chroot])).toBe('[a]');
    await server.stop();
    expect(await zkCli(own.connect, ['ls', '/'])).toBe(
      '[nodelease-test-of-another-run, somebody-else, zookeeper]',
    );
  });

  test('a local process starts, answers, stops, and leaves neither process nor folder', async () => {
    vi.stubEnv('NODELEASE_TEST_ZOOKEEPER', '');
    vi.stubEnv('NODELEASE_TEST_ZOOKEEPER_SERVER', 'process');
    const folders = await ownTemporaryFolder();
    const server = await startZooKeeper();
    cleanUp.push(() => server.stop());
    const [port = 0, pid = 0] = [...server.description.matchAll(/\d{4,}/g)].map(Number);
    expect(server.connect).toBe(`127.0.0.1:${port}`);
    expect(await fourLetter(port, 'ruok')).toBe('imok');
    const handle = new ProcessHandle(pid);
    expect(handle.isAlive()).toBe(true);
    expect(await folders()).toHaveLength(1);
    await server.stop();
    await server.stop();
    expect(handle.isAlive()).toBe(false);
    expect(await folders()).toEqual([]);
  });
});

describe('a server under the control of a test', () => {
  test('keeps its data and its port through a stop and through a crash', async () => {
    const server = await startZooKeeperProcess();
    cleanUp.push(() => server.dispose());
    // A client of its own each time: the bare library may wait for ever for a server that accepts it and then
    // does not serve yet.
    await (await openClient(server.connect)).create('/stopped', '');
    await server.stop();
    expect(server.pid).toBeUndefined();
    await expect(fourLetter(server.port, 'ruok')).rejects.toThrow('ECONNREFUSED');
    await server.start();
    await (await openClient(server.connect)).create('/killed', '');
    await server.kill();
    expect(await server.mode()).toBeUndefined();
    await server.start();
    expect(await server.mode()).toBe('standalone');
    expect(await zkCli(server.connect, ['ls', '/'])).toBe('[killed, stopped, zookeeper]');
  });

  test('is silent while it is paused, and goes on afterwards; a paused one can be stopped', async () => {
    const server = await startZooKeeperProcess();
    cleanUp.push(() => server.dispose());
    await new ProcessHandle(server.pid ?? 0).pause();
    await expect(fourLetter(server.port, 'ruok', { timeoutMs: 300 })).rejects.toThrow(
      'did not answer ruok within 300 ms',
    );
    server.resume();
    await expect.poll(() => fourLetter(server.port, 'ruok').catch(String)).toBe('imok');
    const handle = new ProcessHandle(server.pid ?? 0);
    server.pause();
    await server.stop();
    expect(handle.isAlive()).toBe(false);
  });

  test('takes the port and the folder that it is given, and leaves the folder', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'nodelease-data-'));
    cleanUp.push(() => rm(dataDir, { recursive: true }));
    const port = await freePort();
    for (const expected of ['[zookeeper]', '[kept, zookeeper]']) {
      const server = await startZooKeeperProcess({ port, dataDir });
      cleanUp.push(() => server.dispose());
      expect(server.connect).toBe(`127.0.0.1:${port}`);
      expect(await zkCli(server.connect, ['ls', '/'])).toBe(expected);
      if (expected === '[zookeeper]') await (await openClient(server.connect)).create('/kept', '');
      await server.dispose();
    }
  });

  test('fails with its own words when it cannot start', async () => {
    const folders = await ownTemporaryFolder();
    await expect(startZooKeeperProcess({ settings: { tickTime: 'soon' } })).rejects.toThrow(
      /ZooKeeper did not get ready: Error: it ended[\s\S]*NumberFormatException/,
    );
    expect(await folders()).toEqual([]);
  });

  test('ends with the process that started it, also when that is killed, and its folder goes', async () => {
    const entry = join(packageRoot, '.harness/test/support/servers/zookeeper-process.js');
    const script = `
      const { startZooKeeperProcess } = await import(${JSON.stringify(entry)});
      const server = await startZooKeeperProcess();
      await server.kill();
      await server.start();
      console.log('started', server.pid, 'next to', process.pid);
      setInterval(() => {}, 1000);`;
    const folders = await ownTemporaryFolder();
    const run = runProcess(process.execPath, ['--input-type=module', '-e', script]);
    cleanUp.push(() => run.kill('SIGKILL'));
    const [, pid] = await run.waitForOutput(/started (\d+) next to/, 30_000);
    const server = new ProcessHandle(Number(pid));
    expect(server.isAlive()).toBe(true);
    expect(await folders()).toHaveLength(1);
    run.kill('SIGKILL');
    await expect.poll(() => server.isAlive()).toBe(false);
    await expect.poll(folders).toEqual([]);
  });
});

describe('an ensemble', () => {
  test('elects a leader, survives its crash with another one, and takes it back', async () => {
    const folders = await ownTemporaryFolder();
    const ensemble = await startEnsemble(3);
    cleanUp.push(() => ensemble.stop());
    const client = await openClient(ensemble.connect);
    await client.create('/before', '');
    const first = await ensemble.leader();
    await first.kill();
    const second = await ensemble.leader();
    expect(second).not.toBe(first);
    await ensemble.whenServing();
    expect(await Promise.all(ensemble.servers.map((server) => server.mode()))).toEqual(
      ensemble.servers.map((server) =>
        server === first ? undefined : server === second ? 'leader' : 'follower',
      ),
    );
    await (await openClient(ensemble.connect)).create('/after', '');
    await first.start();
    await ensemble.whenServing();
    expect(await first.mode()).toBe('follower');
    expect(await zkCli(first.connect, ['ls', '/'])).toBe('[after, before, zookeeper]');
    const handles = ensemble.servers.map(({ pid = 0 }) => new ProcessHandle(pid));
    await ensemble.stop();
    await ensemble.stop();
    expect(handles.some((handle) => handle.isAlive())).toBe(false);
    expect(await folders()).toEqual([]);
  });

  test('serves no client without a quorum, and again with one', async () => {
    const ensemble = await startEnsemble(3);
    cleanUp.push(() => ensemble.stop());
    const [a, b, c] = ensemble.servers;
    await Promise.all([a?.kill(), b?.kill()]);
    await expect.poll(() => c?.mode()).toBeUndefined();
    await b?.start();
    await ensemble.whenServing();
    expect(await (await openClient(ensemble.connect)).create('/again', '')).toBe('/again');
  });

  test('lets a test end a session, whichever server its client is connected to', async () => {
    const ensemble = await startEnsemble(3);
    cleanUp.push(() => ensemble.stop());
    for (const { connect } of ensemble.servers) {
      const client = await openClient(connect);
      await client.create('/ephemeral', '', CreateMode.EPHEMERAL);
      await expireSession({ connect: ensemble.connect, sessionId: client.sessionId });
      await client.expired;
      expect(await zkCli(connect, ['ls', '/'])).toBe('[zookeeper]');
    }
  });
});
