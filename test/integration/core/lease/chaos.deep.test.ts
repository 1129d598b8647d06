import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { type Act, ActWriter } from '../../../chaos/act.js';
import { ACTING } from '../../../chaos/actor.js';
import { leasesIn, s3ChaosStore } from '../../../chaos/chaos-store.js';
import { Judge } from '../../../chaos/judge.js';
import { startObserver } from '../../../chaos/observer.js';
import { runChaos } from '../../../chaos/run-chaos.js';
import { StoreWatch } from '../../../chaos/store-watch.js';
import { failuresOf, summary } from '../../../chaos/summary.js';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';
import { harnessFile } from '../../../support/package-root.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, runCli, runProcess } from '../../../support/processes.js';

// The chaos run, short; and before it, that what watches it can fail.

afterEach(killAll);

/** An act that was decided on and done at one moment, in microseconds. */
const act = (version: number, at: number, more: Partial<Act> = {}): Act => ({
  nodeId: 0,
  version,
  taskId: `task-${version}`,
  kind: 'library',
  sequence: 0,
  before: at,
  after: at + 1,
  ...more,
});

function judged(...acts: readonly Act[]) {
  const judge = new Judge();
  for (const one of acts) judge.see(one);
  return judge.findings;
}

describe('the judge of acts', () => {
  it('finds nothing wrong with tenures that follow each other, on any number of ids', () => {
    const findings = judged(
      act(1, 100),
      act(1, 200, { sequence: 1 }),
      act(1, 150, { nodeId: 1 }),
      act(2, 300),
      act(4, 400),
    );
    expect(findings).toMatchObject({ acts: 5, violations: [], lost: 0, disordered: 0, late: 0 });
    expect(findings.tenures).toHaveLength(4);
  });

  it.each(['library', 'run'] as const)(
    'reports a %s task that still acts after a newer version did, whichever act arrives first',
    (kind) => {
      const acts = [
        act(1, 100, { kind }),
        act(2, 200),
        act(1, 300, { kind, sequence: 1 }),
        act(2, 400, { sequence: 1 }),
      ];
      const others = [acts[0], acts[2], acts[1], acts[3]] as Act[];
      for (const arrived of [acts, others]) {
        const { violations } = judged(...arrived);
        expect(violations).toMatchObject([
          { type: 'overlap', by: 'clock', earlier: { version: 1 }, later: { version: 2 }, byMicros: 99 },
        ]);
      }
    },
  );

  it('reports versions that come in the wrong order', () => {
    expect(judged(act(2, 100), act(1, 200)).violations).toMatchObject([
      { type: 'overlap', earlier: { version: 1 }, later: { version: 2 } },
    ]);
  });

  it('reports a command that was stopped after it had read its clock, and went on all the same', () => {
    const { violations } = judged(
      act(1, 100, { kind: 'run' }),
      act(2, 200),
      act(1, 150, { kind: 'run', sequence: 1 }),
    );
    expect(violations).toMatchObject([{ type: 'overlap', by: 'arrival' }]);
  });

  it('does not blame a program that was stopped between asking and acting, but counts it', () => {
    const paused = act(1, 150, { sequence: 1, after: 900 });
    expect(judged(act(1, 100), act(2, 200), paused)).toMatchObject({ violations: [], late: 1 });
  });

  it('does not blame the next one for its predecessor’s pause before the question was answered', () => {
    expect(judged(act(1, 100), act(2, 90, { before: 90, after: 200 })).violations).toEqual([]);
  });

  it('reports a version that two tasks use, however far apart', () => {
    const { violations } = judged(act(3, 100), act(3, 900_000, { taskId: 'another' }));
    expect(violations).toMatchObject([
      { type: 'repeated-version', first: { taskId: 'task-3' }, second: { taskId: 'another' } },
    ]);
  });

  it('counts acts that got lost, and acts that came out of order', () => {
    expect(judged(act(1, 100), act(1, 200, { sequence: 4 }))).toMatchObject({ lost: 3, disordered: 0 });
    expect(judged(act(1, 100, { sequence: 0 }), act(1, 200, { sequence: 0 }))).toMatchObject({
      disordered: 1,
    });
  });
});

describe('the observer', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodelease-observer-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('sees every act of every writer in the order in which they were done, and reports two at once', async () => {
    const observer = await startObserver(folder);
    const writers = [new ActWriter(observer.pipe), new ActWriter(observer.pipe)];
    for (let i = 0; i < 500; i += 1) {
      for (const [index, writer] of writers.entries()) writer.act(act(index + 1, i * 10 + index));
    }
    for (const writer of writers) writer.close();
    expect(await observer.finish()).toMatchObject({
      acts: 1_000,
      lost: 0,
      disordered: 0,
      violations: [{ type: 'overlap' }],
    });
  });

  it('catches a program that holds a lease, is stopped for longer than that, and goes on without asking', async () => {
    const observer = await startObserver(folder);
    const s3 = inject('s3');
    const env = awsEnvironment(s3);
    const store = `s3://${(await createBucket(s3)).name}/fleet`;
    const init = runCli(
      [
        'init',
        '--store',
        store,
        '--endpoint',
        s3.endpoint,
        '--nodes',
        '1',
        '--duration',
        '2s',
        '--grace',
        '500ms',
      ],
      {
        env,
      },
    );
    expect((await init.exit).code).toBe(0);
    const start = (program: string) =>
      runProcess(
        process.execPath,
        [harnessFile(`test/chaos/${program}.ts`), observer.pipe, store, s3.endpoint, 'inline'],
        { env },
      );
    const careless = start('careless-actor');
    await careless.waitForOutput(ACTING);
    const handle = new ProcessHandle(careless.pid);
    await handle.pause();
    await start('library-actor').waitForOutput(ACTING);
    expect(observer.latest().violations).toEqual([]);
    handle.signal('SIGCONT');
    await expect.poll(() => observer.latest().violations).not.toEqual([]);
    await killAll();
    const { violations } = await observer.finish();
    expect(violations).toMatchObject([
      { type: 'overlap', by: 'clock', earlier: { version: 1 }, later: { version: 2 } },
    ]);
  });
});

describe('the watch on the store', () => {
  const held = (version: number, taskId: string) => JSON.stringify({ taskId, version });
  const facts = (version: number) => ({ version: String(version) });

  it('notices a version that goes down, one that two tasks hold, an object that is gone, and one that cannot be read', async () => {
    const bucket = await createBucket(inject('s3'));
    const watch = new StoreWatch(leasesIn(bucket), 4);
    for (const id of [0, 1, 2, 3]) await bucket.putRaw(`fleet/${id}.json`, held(5, 'one'), facts(5));
    await watch.lookAtAll();
    expect([...watch.problems]).toEqual([]);
    await bucket.putRaw('fleet/0.json', held(4, 'two'), facts(4));
    await bucket.putRaw('fleet/1.json', held(5, 'two'), facts(5));
    await bucket.deleteRaw('fleet/2.json');
    await bucket.putRaw('fleet/3.json', '{"version":', facts(5));
    await watch.lookAtAll();
    expect([...watch.problems]).toEqual([
      'node id 0: its version went from 5 down to 4',
      'node id 1: version 5 was held by one and by two',
      'node id 2: its lease object is gone',
      expect.stringContaining('node id 3: its lease object is unreadable'),
    ]);
  });

  it('notices a version that was acted under and is not in the store', async () => {
    const bucket = await createBucket(inject('s3'));
    await bucket.putRaw('fleet/0.json', held(2, 'one'), facts(2));
    const watch = new StoreWatch(leasesIn(bucket), 1);
    await watch.finish(judged(act(2, 100, { taskId: 'another' }), act(3, 200)).tenures);
    expect([...watch.problems]).toEqual([
      'node id 0: version 2 was held by one in the store, and another acted under it',
      'node id 0: the store says version 2, and version 3 was acted under',
    ]);
  });
});

describe('a chaos run', () => {
  it('finds no id used by two tasks at a time, and no version twice, under faults of every sort', {
    timeout: 300_000,
  }, async () => {
    const seed = Date.now() % 2 ** 32;
    const result = await runChaos({
      store: await s3ChaosStore(inject('s3')),
      lengthMs: 45_000,
      patienceMs: 180_000,
      seed,
    });
    process.stderr.write(`chaos, seed ${seed}\n${summary(result)}\n`);
    expect(failuresOf(result)).toEqual([]);
    expect(new Set(result.faults.map(({ name }) => name)).size).toBeGreaterThanOrEqual(8);
    // The same run with its tenures left out, with a violation, or with a task that crashed would have
    // failed.
    const { findings } = result;
    const [first, second] = findings.tenures;
    if (!first || !second) throw new Error('a run without tenures must have failed');
    const spoilt = [
      { ...result, findings: { ...findings, tenures: [] } },
      {
        ...result,
        findings: { ...findings, violations: [{ type: 'repeated-version' as const, first, second }] },
      },
      { ...result, findings: { ...findings, lost: findings.acts } },
      { ...result, storeProblems: ['node id 0: its lease object is gone'] },
      { ...result, leftovers: 1 },
      { ...result, ends: result.ends.map((end) => ({ ...end, code: 70, signal: null })) },
      { ...result, ends: result.ends.filter(({ spec }) => spec.clockHours !== 10) },
    ];
    for (const one of spoilt) expect(failuresOf(one).length).toBeGreaterThan(0);
  });

  it('has only leases that follow the model, as the traces of its tasks say', {
    timeout: 300_000,
  }, async () => {
    const traces = await mkdtemp(join(tmpdir(), 'nodelease-traces-'));
    const seed = Date.now() % 2 ** 32;
    const store = await s3ChaosStore(inject('s3'));
    const result = await runChaos({ store, lengthMs: 15_000, patienceMs: 60_000, seed, traces });
    process.stderr.write(`traced chaos, seed ${seed}, ${traces}\n${summary(result)}\n`);
    expect(failuresOf(result)).toEqual([]);
    await rm(traces, { recursive: true });
  });

  it('keeps the traces where it was interrupted, and says where', async () => {
    const command = runProcess(process.execPath, [
      ...[harnessFile('test/chaos/main.ts'), '--minutes', '1', '--tasks', '2', '--traces'],
    ]);
    await command.waitForOutput(/^seed /m);
    command.kill('SIGINT');
    expect(await command.exit).toEqual({ code: 1, signal: null });
    const [, folder = ''] = /^The traces are kept in (.+)$/m.exec(command.stdout()) ?? [];
    expect(await readdir(folder)).toEqual([expect.stringMatching(/^traces-/)]);
    await rm(folder, { recursive: true });
  });

  it.each([
    [[], '--minutes'],
    [['--minutes', 'soon'], 'Expected a number'],
    [['--minutes', '1', '--tasks', '1.5'], 'Expected a whole number'],
    [['--minutes', '1', '--duration', '3'], 'Expected a time'],
    [['--minutes', '1', '--store', 'postgres', '--traces'], '--traces: expected s3 or etcd'],
    [['--minutes', '1', '--shards', '8', '--traces'], '--traces: expected no --shards'],
    [['--minutes', '1', 'extra'], 'too many arguments'],
  ])('with the arguments %j says what is wrong with them, and exits with 64', async (args, says) => {
    const command = runProcess(process.execPath, [harnessFile('test/chaos/main.ts'), ...args]);
    expect(await command.exit).toEqual({ code: 64, signal: null });
    expect(command.stderr()).toContain(says);
  });
});
