import { createServer } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { complaintOf, startTask, storeOn } from '../../../support/fleet.js';
import { type Listening, listening } from '../../../support/network/listening.js';
import { killAll, runCli } from '../../../support/processes.js';
import { faketimeEnvironment, removeTraces } from '../../../support/programs/faketime.js';
import { startStoreServer } from '../../../support/stores/start-store-server.js';
import { SERVER_KINDS, type StoreAccess, type StoreServer } from '../../../support/stores/store-server.js';

// What unusable-stores.test.ts shows of S3, of every kind of server, and hosts whose clocks are wrong.

/**
 * A store is given eight seconds to answer; the rest is for the start of a process on a machine that has much
 * else to do.
 */
const LIMIT_MS = 60_000;

describe.each(SERVER_KINDS)('on %s', (kind) => {
  let server: StoreServer;
  const others: Listening[] = [];
  beforeAll(async () => {
    server = await startStoreServer(kind, inject('s3'));
  });
  afterAll(() => server.stop());
  afterEach(async () => {
    await killAll();
    for (const other of others.splice(0)) other.close();
  });

  /** Runs a task and the doctor, which cannot get anywhere; the one line that the task says. */
  async function complaint({ url, endpoint, env }: StoreAccess): Promise<string> {
    const options = ['--store', url, ...(endpoint === undefined ? [] : ['--endpoint', endpoint])];
    const begun = performance.now();
    const task = runCli(['run', '--nodes', '2', ...options, '--', 'true'], { env });
    const doctor = runCli(['doctor', ...options], { env });
    expect([(await task.exit).code, (await doctor.exit).code], task.stderr()).toEqual([69, 69]);
    expect(performance.now() - begun).toBeLessThan(LIMIT_MS);
    expect(task.stdout()).toBe('');
    expect(doctor.stderr()).toMatch(/^nodelease: [^\n]+\n$/);
    for (const { stderr } of [task, doctor]) expect(stderr()).not.toMatch(/stack|\n\s+at /);
    return complaintOf(task.stderr(), url);
  }

  it('no server', async () => {
    const access = await server.newPlace();
    expect(await complaint(access('http://127.0.0.1:1'))).toMatch(/ECONNREFUSED/);
  });

  it('a server that never answers', async () => {
    const access = await server.newPlace();
    const silent = await listening(createSocketServer(() => undefined));
    others.push(silent);
    expect(await complaint(access(silent.url))).toMatch(/no answer/);
  });

  it('a server of another kind', async () => {
    const access = await server.newPlace();
    const web = await listening(
      createServer((_, response) =>
        response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>'),
      ),
    );
    others.push(web);
    expect(await complaint(access(web.url))).toContain(access(web.url).url);
  });

  it.each([10, -10])(
    'a host whose clock is %i hours off gets an id, keeps it, and gives it back',
    async (hours) => {
      const store = await storeOn(server);
      const clock = await faketimeEnvironment(`${hours > 0 ? '+' : '-'}${Math.abs(hours)}h`);
      const settings = ['--nodes', '1', '--duration', '6s', '--grace', '1s', '--log-level', 'debug'];
      const task = startTask({ ...store, env: { ...store.env, ...clock } }, settings, 'exec sleep 300');
      expect(await task.started()).toEqual({ id: 0, version: 1 });
      expect(Math.abs((task.log()[0]?.at ?? 0) - Date.now() - hours * 3_600_000)).toBeLessThan(60_000);
      await task.waitForOutput(/(lease renewed[\s\S]*){2}/);
      const { timestamp } = JSON.parse((await store.read('0.json')) ?? '') as { timestamp: number };
      // What it writes is the store's time, for all to read.
      expect(Math.abs(timestamp - Date.now())).toBeLessThan(7_500);
      task.kill('SIGTERM');
      expect(await task.exit).toEqual({ code: 143, signal: null });
      await removeTraces(task.pid);
      expect(task.log().filter(({ msg }) => /renewal failed|lost/.test(msg))).toEqual([]);
      expect(JSON.parse((await store.read('0.json')) ?? '')).toMatchObject({ released: true, version: 1 });
      await store.remove();
    },
  );
});
