import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Diagnosis } from '../../../../src/app/cli/doctor/diagnosis.js';
import { type FleetStore, loggedAt, startTask, statusOf, storeOn } from '../../../support/fleet.js';
import { EventClient } from '../../../support/network/event-client.js';
import { packageRoot } from '../../../support/package-root.js';
import { killAll, runCli, runProcess } from '../../../support/processes.js';
import { startStoreServer } from '../../../support/stores/start-store-server.js';
import { SERVER_KINDS, type StoreServer } from '../../../support/stores/store-server.js';
import { healthUntil, urlOf } from './ecs-support.js';
import { newFolder, removeFolders } from './run-support.js';

// Each command that works on a lease store, once on a real server of each kind.

const SHORT = ['--duration', '3s', '--grace', '1s'];
/** Of a lease that is to last, however busy the server is. */
const LONG = ['--duration', '15s', '--grace', '1s'];
/**
 * The first task of an empty place tries out the store with hundreds of requests, and servers of tests are
 * slow. Milliseconds.
 */
const STARTED_MS = 120_000;
const SEEN = { timeout: STARTED_MS };

describe.each(SERVER_KINDS)('on %s', (kind) => {
  let server: StoreServer;
  let store: FleetStore;
  beforeAll(async () => {
    server = await startStoreServer(kind, inject('s3'));
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    store = await storeOn(server);
  });
  afterEach(async () => {
    await killAll();
    await store.remove();
    removeFolders();
  });

  const start = (command: string, options: readonly string[] = [], ...rest: string[]) =>
    runCli([command, ...store.options, ...options, ...rest], { env: store.env });

  /** Runs a command to its end. */
  async function answerOf(command: string, options: readonly string[] = [], ...rest: string[]) {
    const run = start(command, options, ...rest);
    const { code } = await run.exit;
    return { code, answer: run.stdout(), complaints: run.stderr() };
  }

  it('init makes a cluster once, and restores a damaged lease object above the given version', async () => {
    const made = await answerOf('init', ['--nodes', '3', ...SHORT]);
    expect(made).toMatchObject({ code: 0, complaints: '' });
    expect(made.answer).toMatch(
      /^created a cluster of 3 node ids at .* \(duration 3s, grace 1s\)\n3 lease objects written\n$/,
    );
    expect(await store.keys()).toEqual(['0.json', '1.json', '2.json', 'cluster.json']);
    expect((await answerOf('init')).answer).toMatch(/: nothing to do\n$/);
    await store.spoil('1.json', 'not json');
    expect(await answerOf('init')).toMatchObject({
      code: 69,
      complaints: expect.stringContaining('node id 1: lease object is not JSON'),
    });
    const repaired = await answerOf('init', ['--repair', '--above-version', '6']);
    expect(repaired).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/^node id 1: .*: restored at version 7\n$/),
    });
    expect((await statusOf(store)).nodes.map(({ version }) => version)).toEqual([0, 7, 0]);
  });

  it('status shows who holds what, and doctor finds nothing wrong next to a running task, and leaves nothing behind', async () => {
    const task = startTask(store, ['--nodes', '2', ...LONG, '--task-id', 'holder']);
    await task.waitForOutput(/all lease objects of the cluster exist/, STARTED_MS);
    const { cluster, nodes } = await statusOf(store);
    expect(cluster).toMatchObject({ size: 2, durationMs: 15_000, bootstrapped: true });
    expect(nodes).toMatchObject([
      { id: 0, state: 'held', version: 1, taskId: 'holder', problem: null },
      { id: 1, state: 'vacant', version: 0, taskId: null, problem: null },
    ]);
    const table = await answerOf('status');
    expect(table).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/^\s*0\s+held\s+1\s+holder\s/m),
      complaints: '',
    });
    expect(table.answer).toMatch(/\nheld 1, free 1, expired 0, damaged 0; duration 15s, grace 1s/);
    const before = await store.keys();
    const doctor = await answerOf('doctor', ['--json']);
    expect(doctor, doctor.answer).toMatchObject({ code: 0, complaints: '' });
    const { ok, findings } = JSON.parse(doctor.answer) as Diagnosis;
    expect([ok, findings.filter(({ status }) => status === 'fault')]).toEqual([true, []]);
    expect(findings.map(({ detail }) => detail)).toContain(
      '2 node ids, 1 of them held; duration 15s, grace 1s',
    );
    expect(await store.keys()).toEqual(before);
    expect(task.stderr()).not.toMatch(/renewal failed|is lost/);
  });

  it('scale makes the cluster larger, and smaller once the holder of an id that goes has given it back', async () => {
    const tasks = ['zero', 'one'].map((name) =>
      startTask(store, ['--nodes', '2', ...SHORT, '--settings-interval', '1s', '--task-id', name]),
    );
    const given = await Promise.all(tasks.map((task) => task.started(STARTED_MS)));
    await Promise.race(
      tasks.map((task) => task.waitForOutput(/all lease objects of the cluster exist/, STARTED_MS)),
    );
    expect(await answerOf('scale', [], '4')).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/has 4 node ids now, and had 2: 2 lease objects written\n$/),
    });
    const leaving = tasks[given.findIndex(({ id }) => id === 1)];
    const smaller = await answerOf('scale', [], '1');
    expect(smaller, smaller.complaints).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/has 1 node id now, and had 4: 3 lease objects retired\n$/),
    });
    expect((await leaving?.exit)?.code).toBe(143);
    expect((await statusOf(store)).nodes).toMatchObject([{ id: 0, state: 'held' }]);
  });

  it('scale takes an id that is to go from a killed holder as soon as its lease has expired', async () => {
    const tasks = ['zero', 'one'].map((name) =>
      startTask(store, ['--nodes', '2', ...SHORT, '--task-id', name]),
    );
    const given = await Promise.all(tasks.map((task) => task.started(STARTED_MS)));
    await Promise.race(
      tasks.map((task) => task.waitForOutput(/all lease objects of the cluster exist/, STARTED_MS)),
    );
    tasks[given.findIndex(({ id }) => id === 1)]?.kill('SIGKILL');
    const scale = await answerOf('scale', ['--drain-timeout', '1m'], '1');
    expect(scale, scale.complaints).toMatchObject({
      code: 0,
      answer: expect.not.stringContaining('by force'),
    });
    expect(scale.answer).toMatch(/1 lease object retired\n$/);
  });

  it('release takes an id away: its holder ends with 76, and another task has it when it can no longer be trusted', async () => {
    const holder = startTask(store, ['--nodes', '1', ...SHORT, '--task-id', 'holder']);
    await holder.started(STARTED_MS);
    const waiting = startTask(store, SHORT);
    await waiting.waitForOutput(/no node id is free/, STARTED_MS);
    const releasedAt = performance.now();
    const release = await answerOf('release', ['0', '--force']);
    expect(release).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/^node id 0 is taken away from task holder: its version is 2 now\n/),
    });
    expect((await holder.exit).code).toBe(76);
    expect(await waiting.started(STARTED_MS)).toEqual({ id: 0, version: 3 });
    expect(performance.now() - releasedAt).toBeGreaterThan(3_000);
  });

  it('id prints unique ids that grow from call to call', async () => {
    const calls = [await answerOf('id', ['-n', '10']), await answerOf('id', ['-n', '10'])];
    expect(calls.map(({ code, complaints }) => [code, complaints])).toEqual([
      [0, expect.stringMatching(/^[^\n]*created a new cluster of [^\n]*\n$/)],
      [0, ''],
    ]);
    const ids = calls.flatMap(({ answer }) => answer.trimEnd().split('\n').map(BigInt));
    expect(ids).toHaveLength(20);
    expect(ids.findIndex((id, i) => i > 0 && id <= (ids[i - 1] as bigint))).toBe(-1);
    // By the store's time; all of them are clocks of this machine.
    expect(Math.abs(Number((ids.at(-1) ?? 0n) >> 16n) - Date.now())).toBeLessThan(60_000);
  });

  it('lock keeps a second command out, and gives each the next token', async () => {
    const work = `trap 'exit 5' TERM; echo token $LOCK_NAME $LOCK_TOKEN; while :; do sleep 0.05; done`;
    const holder = start('lock', ['nightly', '--duration', '3s'], '--', 'sh', '-c', work);
    await holder.waitForOutput(/token nightly 1\n/, STARTED_MS);
    const { answer } = await answerOf('status', ['--locks', '--json']);
    expect(JSON.parse(answer).locks).toMatchObject([
      { name: 'nightly', state: 'held', token: 1, holder: expect.any(String), problem: null },
    ]);
    expect(await answerOf('lock', ['nightly', '--try', '--', 'echo', 'never'])).toMatchObject({
      code: 75,
      answer: '',
    });
    const waiting = start('lock', ['nightly'], '--', 'sh', '-c', 'echo token $LOCK_TOKEN');
    await waiting.waitForOutput(/lock nightly is held by another task: waiting/, STARTED_MS);
    holder.kill('SIGTERM');
    expect((await holder.exit).code).toBe(5);
    expect((await waiting.exit).code).toBe(0);
    expect(waiting.stdout()).toBe('token 2\n');
  });

  it('console shows what happens as it happens: acquired, overdue, taken over, released', async () => {
    const console = start('console', ['--http', '127.0.0.1:0']);
    const [, url = ''] = await console.waitForOutput(/^(http:\/\/\S+)$/m);
    const page = await EventClient.open(url);
    const task = (name: string) => startTask(store, ['--nodes', '1', ...SHORT, '--task-id', name]);
    const first = task('first');
    await expect.poll(() => page.history, SEEN).toEqual(['acquired 0']);
    // Renewals are no events, but are seen.
    const { timestamp } = page.node(0) ?? {};
    await expect.poll(() => page.node(0)?.timestamp, SEEN).not.toBe(timestamp);
    first.kill('SIGKILL');
    await expect.poll(() => page.history, SEEN).toContain('overdue 0');
    const heir = task('heir');
    await expect.poll(() => page.history, SEEN).toContain('taken-over 0');
    await expect.poll(() => page.node(0), SEEN).toMatchObject({ state: 'held', taskId: 'heir', version: 2 });
    heir.kill('SIGTERM');
    await expect.poll(() => page.history.at(-1), SEEN).toBe('released 0');
    await task('next').started(STARTED_MS);
    await expect.poll(() => page.history.at(-1), SEEN).toBe('acquired 0');
    expect(page.store).toMatchObject({ state: 'ok', problem: null });
    page.close();
    console.kill('SIGTERM');
    expect((await console.exit).code).toBe(0);
  });

  it('serve holds an id for a neighbour, answers over HTTP, and gives the id back', async () => {
    const file = join(newFolder(), 'ready.json');
    const sidecar = start('serve', ['--nodes', '1', ...SHORT, '--http', '127.0.0.1:0', '--wait-file', file]);
    const url = await urlOf(sidecar);
    await healthUntil(url, ({ code }) => code === 0, STARTED_MS);
    expect(await (await fetch(`${url}/lease`)).json()).toMatchObject({
      state: 'held',
      nodeId: 0,
      version: 1,
    });
    await expect.poll(() => existsSync(file)).toBe(true);
    sidecar.kill('SIGTERM');
    expect((await sidecar.exit).code).toBe(0);
    expect((await statusOf(store)).nodes).toMatchObject([{ state: 'released', version: 1 }]);
  });

  it('run renews without reading the settings each time, as --settings-interval says', async () => {
    const task = startTask(store, [
      '--nodes',
      '1',
      ...SHORT,
      '--settings-interval',
      '1h',
      '--log-level',
      'debug',
    ]);
    await task.started(STARTED_MS);
    await expect
      .poll(() => task.log().filter(({ msg }) => /lease renewed/.test(msg)).length, SEEN)
      .toBeGreaterThan(2);
    expect(loggedAt(task.log(), /lease renewed/, 'last')).toBeGreaterThan(
      loggedAt(task.log(), /acquired node id/),
    );
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
  });

  it('the worker keeper holds the lease for three durations of a blocked main thread', async () => {
    const file = join(packageRoot, 'test/fixtures/programs/blocked-main-thread.mjs');
    const [, url = '', , endpoint] = store.options;
    const args = [file, url, 'worker', '3000', '9000', ...(endpoint === undefined ? [] : [endpoint])];
    const program = runProcess(process.execPath, args, { env: store.env });
    expect(await program.exit, program.stderr()).toEqual({ code: 0, signal: null });
    expect(program.stdout()).toBe('id 0 version 1\nvalid true\nreleased\n');
  });
});
