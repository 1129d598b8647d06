import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import type { Diagnosis } from '../../../../src/app/cli/doctor/diagnosis.js';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { evictHolder } from '../../../../src/core/lease/operate/evict.js';
import { repairCluster } from '../../../../src/core/lease/operate/initialize.js';
import { scaleCluster } from '../../../../src/core/lease/operate/scale.js';
import { tuneCluster } from '../../../../src/core/lease/operate/tune.js';
import { StoreSession } from '../../../../src/core/lease/session/store-session.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { acquireLock } from '../../../../src/node/locks/store-lock.js';
import { acquire } from '../../../../src/node/runtime/acquire.js';
import type { StatusReport } from '../../../../src/node/wire/status-report.js';
import { type CamundaBucket, camundaBucket } from '../../../support/camunda-bucket.js';
import {
  CAMUNDA_MARKER,
  camundaFree,
  camundaHeld,
  camundaReleased,
  camundaRestore,
} from '../../../support/camunda-objects.js';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli } from '../../../support/processes.js';
import { restrictedEnvironment } from '../../../support/restricted-access.js';

let bucket: CamundaBucket;

beforeEach(async () => {
  bucket = await camundaBucket(inject('s3'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await killAll();
});

/** Of leases that no holder renews, and that last to the end of the test, in milliseconds. */
const LONG_MS = 600_000;

/** Two holders, one of whose clocks is 40 s ahead, an id that was released, one given up, and the marker. */
async function fleet(): Promise<void> {
  await bucket.put(CAMUNDA_MARKER);
  await bucket.put(camundaRestore('r1', [0, 2]));
  await bucket.put(camundaReleased(3, 9));
  await bucket.put(camundaReleased(4, 2, false));
  // The clocks are compared by when each was written: no time may go by between a timestamp and its write.
  await bucket.put(
    camundaHeld({
      id: 0,
      taskId: 'task-A',
      version: 4,
      timestamp: Date.now() + LONG_MS,
      known: { 0: 4, 1: 7 },
    }),
  );
  await bucket.put(
    camundaHeld({ id: 1, taskId: 'task-B', version: 7, timestamp: Date.now() + LONG_MS + 40_000, known: {} }),
  );
  await bucket.put(camundaHeld({ id: 2, taskId: 'task-C', version: 1, timestamp: Date.now() + LONG_MS }));
}

function answer(args: readonly string[], env: Readonly<Record<string, string>> = bucket.env) {
  return runInProcess([...args, ...bucket.options], { env });
}

describe('a bucket of Camunda 8', () => {
  it('is shown by status, as text and as JSON, by what may only be read, and stays as it is', async () => {
    await fleet();
    const before = await bucket.state();
    const env = await restrictedEnvironment(inject('s3'), {
      's3:ListBucket': bucket.name,
      's3:GetObject': `${bucket.name}/*`,
    });
    const { code, answer: text, complaints } = await answer(['status'], env);
    expect([code, complaints]).toEqual([0, '']);
    const lines = text.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^ID {2}STATE +VERSION +TASK +AGE +EXPIRES IN +AS WRITTEN +PROBLEM$/);
    expect(lines[1]).toMatch(/^ 0 {2}held +4 +task-A +~?\d+\.\ds +\d+m\d\ds {3}\d\d:\d\d:\d\dZ/);
    expect(lines[2]).toMatch(
      /^ 1 {2}held +7 +task-B +~?\d+\.\ds +\d+m\d\ds {3}\d\d:\d\d:\d\dZ +its holder’s clock is (3[5-9]|4[0-5]) s ahead of the other/,
    );
    expect(lines[4]).toMatch(/^ 3 {2}released +9 /);
    expect(lines[5]).toMatch(/^ 4 {2}retired +2 /);
    expect(lines[6]).toMatch(
      /^Camunda 8: held 3, free 1, expired 0, damaged 0, retired 1; leases of about (10m|59\ds|60\ds)$/,
    );
    expect(lines[7]).toBe('restore r1: node ids restored: 0, 2');

    const asked = Date.now();
    const json = JSON.parse((await answer(['status', '--json'], env)).answer) as StatusReport;
    expect(json).toMatchObject({
      ...{ format: 'camunda', store: `s3://${bucket.name}`, totals: { hints: false, held: 3, retired: 1 } },
      cluster: { size: 5, graceMs: 0, idWidth: null, bootstrapped: true },
      restores: [{ restoreId: 'r1', restoredNodes: [0, 2], problem: null }],
    });
    // What a slow machine takes between a timestamp and its write is missing.
    expect(json.cluster?.durationMs).toBeGreaterThan(LONG_MS - 10_000);
    expect(json.cluster?.durationMs).toBeLessThanOrEqual(LONG_MS + 1_000);
    expect(json.nodes[0]).toMatchObject({
      state: 'held',
      version: 4,
      knownNodes: { 0: 4, 1: 7 },
      camunda: { acquirable: true, warning: null },
    });
    // It expires by the clock of the store, which reports whole seconds, after the command was asked.
    const readAt = (json.nodes[1]?.timestamp ?? 0) - (json.nodes[1]?.expiresInMs ?? 0);
    expect(readAt).toBeGreaterThan(asked - 5_000);
    expect(readAt).toBeLessThan(Date.now() + 5_000);
    expect(json.nodes[4]).toMatchObject({ state: 'retired', camunda: { acquirable: false } });
    expect(await bucket.state()).toEqual(before);
  });

  it('is examined by doctor without a write, and each fault in it is named', async () => {
    await fleet();
    const env = await restrictedEnvironment(inject('s3'), {
      's3:ListBucket': bucket.name,
      's3:GetObject': `${bucket.name}/*`,
    });
    const sound = await answer(['doctor'], env);
    expect([sound.code, sound.complaints]).toEqual([0, '']);
    expect(sound.answer).toContain('  warn   holders: node id 1 (task-B): its holder’s clock is ');
    expect(sound.answer).toMatch(/No faults, 1 warning\.\n$/);

    await bucket.put({
      ...camundaFree(5),
      body: '{"taskId":"old","version":1,"timestamp":5,"durationMs":15000}',
    });
    await bucket.put(camundaFree(7));
    const before = await bucket.state();
    const { code, answer: report } = await answer(['doctor', '--json'], env);
    expect(code).toBe(69);
    const { findings, damaged } = JSON.parse(report) as Diagnosis;
    expect(findings.filter(({ status }) => status === 'fault').map(({ id }) => id)).toEqual([
      'gaps',
      'lease-objects',
    ]);
    expect(damaged).toEqual(
      expect.arrayContaining([
        { id: 5, problem: 'lease object has the field "version" in its body, which Camunda refuses' },
      ]),
    );
    expect(await bucket.state()).toEqual(before);
  });

  it.each([
    ['run', 'run', '--', 'true'],
    ['serve', 'serve', '--http', '127.0.0.1:0'],
    ['id', 'id'],
    ['lock', 'lock', 'nightly', '--', 'true'],
  ])('is not written by %s, which ends with 69 and says why', async (_name, ...args) => {
    await fleet();
    const before = await bucket.state();
    const dashes = args.indexOf('--');
    const [own, command] = dashes < 0 ? [args, []] : [args.slice(0, dashes), args.slice(dashes)];
    const refused = runCli([...own, ...bucket.options, ...command], { env: bucket.env });
    expect((await refused.exit).code).toBe(69);
    expect(refused.stderr()).toMatch(/this is a Camunda cluster/);
    expect(await bucket.state()).toEqual(before);
  });

  it.each([
    ['init', 'init', '--nodes', '5'],
    ['init --repair', 'init', '--repair', '--above-version', '9'],
    ['scale up', 'scale', '9'],
    ['scale down', 'scale', '2'],
    ['tune', 'tune', '--duration', '5s'],
    ['release of a held id', 'release', '0', '--force'],
    ['release of a free id', 'release', '3', '--force'],
  ])('is not written by %s, which ends with 69 and says why', async (_name, ...args) => {
    await fleet();
    const before = await bucket.state();
    expect(await answer(args)).toMatchObject({
      code: 69,
      complaints: expect.stringContaining('this is a Camunda cluster'),
    });
    expect(await bucket.state()).toEqual(before);
  });

  it('is not written by lock where its marker is gone, not into a folder either', async () => {
    await fleet();
    await bucket.deleteRaw(CAMUNDA_MARKER.key);
    const before = await bucket.state();
    const refused = runCli(['lock', 'nightly', ...bucket.options, '--', 'true'], { env: bucket.env });
    expect((await refused.exit).code).toBe(69);
    expect(refused.stderr()).toMatch(/\d\.json is a lease of Camunda 8/);
    expect(await bucket.state()).toEqual(before);
  });

  it('is not written through the library', async () => {
    await fleet();
    const before = await bucket.state();
    for (const [name, value] of Object.entries(bucket.env)) vi.stubEnv(name, value);
    const { endpoint } = inject('s3');
    const store = `s3://${bucket.name}`;
    const opened = await openStore(store, { endpoint, clock, random, requestTimeoutMs: 5_000 });
    const session = new StoreSession(opened, clock, 5_000);
    const refused = expect.objectContaining({
      message: expect.stringContaining('this is a Camunda cluster'),
    });
    await expect(acquire({ store, endpoint, nodes: 3, acquireTimeoutMs: 0 })).rejects.toThrow(
      /this is a Camunda cluster of 5 node ids/,
    );
    await expect(acquireLock('nightly', { store, endpoint, timeoutMs: 0 })).rejects.toMatchObject({
      cause: refused,
    });
    await expect(repairCluster({ session, clock, aboveVersion: 9 })).rejects.toEqual(refused);
    await expect(scaleCluster({ session, clock, random, size: 3 })).rejects.toEqual(refused);
    await expect(tuneCluster({ session, clock, random, durationMs: 5_000 })).rejects.toEqual(refused);
    await expect(evictHolder(session, 0)).rejects.toThrow(/is a lease of Camunda 8/);
    await opened.close();
    expect(await bucket.state()).toEqual(before);
  });
});

it('a lock needs no more rights than those on its folder, where it looks for Camunda’s marker above', async () => {
  const own = `${bucket.name}/locks/*`;
  const rights = {
    's3:ListBucket': bucket.name,
    's3:GetObject': own,
    's3:PutObject': own,
    's3:DeleteObject': own,
  };
  const env = await restrictedEnvironment(inject('s3'), rights);
  const lock = runCli(['lock', 'nightly', ...bucket.options, '--', 'sh', '-c', 'echo "token $LOCK_TOKEN"'], {
    env,
  });
  expect([await lock.exit, lock.stdout()]).toEqual([{ code: 0, signal: null }, 'token 1\n']);
});
