import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { monotonicMicros } from '../../../chaos/act.js';
import { ACTING, type Acting, readActing } from '../../../chaos/actor.js';
import { type Observer, startObserver } from '../../../chaos/observer.js';
import { type FleetStore, fleetStore, loggedAt, startTask, type Task } from '../../../support/fleet.js';
import { harnessFile } from '../../../support/package-root.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, runCli, runProcess } from '../../../support/processes.js';
import { faketimeEnvironment, removeTraces } from '../../../support/programs/faketime.js';

// Pauses that outlast the lease, and hosts whose clocks are hours off: what they must not lead to. The tests
// of the guard cover a supervisor that is the only paused process.

const DURATION_MS = 3_000;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-pauses-'));
});
afterEach(async () => {
  await killAll();
  await rm(folder, { recursive: true, force: true });
});

describe.each(['inline', 'worker'])(
  'a program that is stopped for longer than its lease (%s keeper)',
  (keeper) => {
    const start = () =>
      runProcess(process.execPath, [
        harnessFile('test/chaos/asking-program.ts'),
        `file:${folder}/store`,
        keeper,
        String(DURATION_MS),
      ]);
    const answers = (text: string) =>
      [...text.matchAll(/^(\d+) (valid|invalid) \d+$/gm)].map(([, at, answer]) => ({
        at: Number(at),
        answer,
      }));

    it.each([
      ['although no task has taken the id meanwhile', false],
      ['while another holds the id', true],
    ])('learns it from isValid() at the first call after it goes on, %s', async (_, taken) => {
      const program = start();
      await program.waitForOutput(/ valid 1\n/);
      const stopped = new ProcessHandle(program.pid);
      await stopped.pause();
      const stoppedAt = monotonicMicros();
      if (taken) await start().waitForOutput(/ valid 2\n/);
      else await sleep(DURATION_MS + 100);
      const continuedAt = monotonicMicros();
      stopped.signal('SIGCONT');
      await program.waitForOutput(/( invalid 1\n.*){2}/s);
      const asked = answers(program.stdout()).filter(({ at }) => at > stoppedAt);
      expect(asked.filter(({ at }) => at < continuedAt)).toEqual([]);
      expect(asked.filter(({ answer }) => answer === 'valid')).toEqual([]);
    });
  },
);

describe('the command of `nodelease run`', () => {
  let observer: Observer;
  beforeEach(async () => {
    observer = await startObserver(folder);
  });
  afterEach(() => observer.kill());

  const start = () => {
    const command = [process.execPath, harnessFile('test/chaos/run-actor.ts'), observer.pipe];
    return runCli([
      'run',
      '--store',
      `file:${folder}/store`,
      '--nodes',
      '1',
      '--duration',
      `${DURATION_MS}ms`,
      '--',
      ...command,
    ]);
  };
  const acting = async (task: ReturnType<typeof start>): Promise<Acting> =>
    readActing(await task.waitForOutput(ACTING));

  it('never runs on after a stop of it and its supervisor that outlasts the lease: it is killed while it is stopped', async () => {
    const first = start();
    const { pid, taskId } = await acting(first);
    const second = start();
    // It says that it acts before it does.
    await expect.poll(() => observer.latest().acts).toBeGreaterThan(0);
    const [supervisor, child] = [new ProcessHandle(first.pid), new ProcessHandle(pid)];
    supervisor.signal('SIGSTOP');
    child.signal('SIGSTOP');
    await expect.poll(() => supervisor.isStopped() && (child.isStopped() || !child.isAlive())).toBe(true);
    const stoppedAt = monotonicMicros();
    await expect.poll(() => child.isAlive()).toBe(false);
    expect(supervisor.isStopped()).toBe(true);
    expect(await acting(second)).toMatchObject({ nodeId: 0, version: 2 });
    child.signal('SIGCONT');
    supervisor.signal('SIGCONT');
    expect(await first.exit).toEqual({ code: 76, signal: null });
    await expect.poll(() => observer.latest().tenures).toBe(2);
    second.kill('SIGTERM');
    await second.exit;
    const { tenures, violations } = await observer.finish();
    expect(violations).toEqual([]);
    expect(tenures.map(({ version }) => version)).toEqual([1, 2]);
    const old = tenures.find((tenure) => tenure.taskId === taskId);
    expect(old?.acts).toBeGreaterThan(0);
    expect(old?.believedUntil).toBeLessThan(stoppedAt);
  });

  it('keeps its id when only its command is stopped, for its supervisor goes on, and runs on under it', async () => {
    const first = start();
    const { pid, taskId } = await acting(first);
    const second = start();
    const child = new ProcessHandle(pid);
    await child.pause();
    await sleep(2 * DURATION_MS);
    expect(child.isStopped()).toBe(true);
    const continuedAt = monotonicMicros();
    const { acts } = observer.latest();
    child.signal('SIGCONT');
    await expect.poll(() => observer.latest().acts).toBeGreaterThan(acts);
    for (const task of [second, first]) {
      task.kill('SIGTERM');
      await task.exit;
    }
    const { tenures, violations } = await observer.finish();
    expect(violations).toEqual([]);
    expect(tenures).toMatchObject([{ version: 1, taskId }]);
    expect(tenures[0]?.believedUntil).toBeGreaterThan(continuedAt);
  });
});

describe('on S3, a task whose host', () => {
  const SETTINGS = [
    '--nodes',
    '1',
    '--duration',
    `${DURATION_MS}ms`,
    '--grace',
    '1s',
    '--log-level',
    'debug',
  ];
  let store: FleetStore;
  beforeEach(async () => {
    store = await fleetStore('s3', inject('s3'));
  });

  const started: number[] = [];
  afterEach(async () => {
    await killAll();
    for (const pid of started.splice(0)) await removeTraces(pid);
  });

  type Hours = 0 | 10 | -10;
  async function startOn(hours: Hours): Promise<Task> {
    const clock = hours === 0 ? {} : await faketimeEnvironment(`${hours > 0 ? '+' : '-'}${Math.abs(hours)}h`);
    const task = startTask({ ...store, env: { ...store.env, ...clock } }, SETTINGS, 'exec sleep 300');
    started.push(task.pid);
    return task;
  }
  const held = async () =>
    JSON.parse((await store.read('0.json')) ?? '') as { version: number; taskId?: string; timestamp: number };

  it.each([10, -10] as const)(
    'has a clock that is %i hours off gets an id, keeps it, and gives it back',
    async (hours) => {
      const task = await startOn(hours);
      expect(await task.started()).toEqual({ id: 0, version: 1 });
      const log = () => task.log().map(({ msg }) => msg);
      expect(Math.abs((task.log()[0]?.at ?? 0) - Date.now() - hours * 3_600_000)).toBeLessThan(60_000);
      await sleep(2 * DURATION_MS);
      expect(await held()).toMatchObject({ version: 1, taskId: expect.any(String) });
      // What it writes is the store's time, for all to read.
      expect(Math.abs((await held()).timestamp - Date.now())).toBeLessThan(DURATION_MS + 1_500);
      expect(log().filter((msg) => /renewal failed|lost/.test(msg))).toEqual([]);
      task.kill('SIGTERM');
      expect(await task.exit).toEqual({ code: 143, signal: null });
      expect(log()).toContain('lease released');
      expect(await held()).toMatchObject({ released: true, version: 1 });
    },
  );

  it.each([
    [0, 10],
    [-10, 0],
    [-10, 10],
  ] as const)(
    'has a clock %i hours off keeps its id before one at %i hours, who gets it in time when the first is killed',
    async (holds, waits) => {
      const holder = await startOn(holds);
      expect(await holder.started()).toEqual({ id: 0, version: 1 });
      const contender = await startOn(waits);
      await contender.waitForOutput(/no node id is free/);
      await sleep(2 * DURATION_MS);
      expect(contender.stdout()).toBe('');
      expect(await held()).toMatchObject({ version: 1 });
      holder.kill('SIGKILL');
      await holder.exit;
      expect(await contender.started()).toEqual({ id: 0, version: 2 });
      const renewedAt = loggedAt(holder.log(), /lease renewed/, 'last') - holds * 3_600_000;
      const takenAt = loggedAt(contender.log(), /acquired node id 0/) - waits * 3_600_000;
      expect(takenAt - renewedAt).toBeGreaterThan(DURATION_MS);
      expect(takenAt - renewedAt).toBeLessThan(DURATION_MS + 1_000 + 3_000);
    },
  );
});
