import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Diagnosis } from '../../../../src/app/cli/doctor/diagnosis.js';
import { examine, showDiagnosis } from '../../../../src/app/cli/doctor/doctor-command.js';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { StoreSession } from '../../../../src/core/lease/session/store-session.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { capturedIo } from '../../../support/captured-io.js';
import { newStore, removeStores, startTask } from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli } from '../../../support/processes.js';
import { S3StandIn, type StandInFaults } from '../../../support/s3-stand-in.js';

const servers: S3StandIn[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  await killAll();
  await removeStores();
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

describe('nodelease doctor', () => {
  // On servers of all kinds: test/integration/app/cli/commands-on-stores.deep.test.ts.
  it('finds a sound folder sound next to a running task, does not disturb it, and leaves nothing behind', async () => {
    const store = await newStore('file');
    const task = startTask(store, ['--nodes', '2']);
    await task.started();
    await task.waitForOutput(/all lease objects of the cluster exist/);
    const before = await store.keys();
    const doctor = runCli(['doctor', ...store.options], { env: store.env });
    expect(await doctor.exit).toEqual({ code: 0, signal: null });
    expect(doctor.stderr()).toBe('');
    expect(doctor.stdout()).toMatch(/cluster: 2 node ids, 1 of them held; duration 15s, grace 1s\n/);
    expect(doctor.stdout()).toMatch(
      /cost: 2 node ids, .* 15s: 1,036,800 writes .* and 1,036,800 reads \(GET\) a month to renew them\n/,
    );
    expect(doctor.stdout()).toMatch(/\nAll is well\.\n$/);
    expect(await store.keys()).toEqual(before);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
  });
});

describe('nodelease doctor on an S3 server', () => {
  const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' };

  const start = async (faults: Partial<StandInFaults> = {}) => {
    const server = await S3StandIn.start();
    servers.push(server);
    Object.assign(server.faults, faults);
    return server;
  };
  const at = ({ endpoint }: { readonly endpoint: string }) => [
    '--store',
    's3://bucket/fleet',
    '--endpoint',
    endpoint,
  ];
  const doctor = (server: S3StandIn, ...args: string[]) =>
    runInProcess(['doctor', ...at(server), ...args], { env: CREDENTIALS });

  /** What doctor says of a server with these faults, after a probe that is as short as that of a task. */
  const diagnosed = async (faults: Partial<StandInFaults>) => {
    const server = await start(faults);
    for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value);
    const store = await openStore('s3://bucket/fleet', {
      endpoint: server.endpoint,
      clock,
      random,
      requestTimeoutMs: 5_000,
    });
    const diagnosis = await examine(new StoreSession(store, clock, 5_000), { clock, random, watchAgeMs: 0 });
    await store.close();
    const io = capturedIo();
    const code = showDiagnosis(diagnosis, {}, io);
    return { server, code, diagnosis, answer: io.answer(), complaints: io.complaints() };
  };

  it.each([
    ['If-None-Match', { ignoreIfNoneMatch: true }],
    ['If-Match', { ignoreIfMatch: true }],
  ])(
    'that ignores %s is called that, in words and as JSON, and nothing is left behind',
    async (header, faults) => {
      const { code, answer, complaints, diagnosis, server } = await diagnosed(faults);
      expect(code).toBe(69);
      expect(answer).toMatch(new RegExp(`FAULT  .*: ignores ${header}`));
      expect(complaints).toMatch(
        new RegExp(`^nodelease: s3://bucket/fleet: \\d faults?: .*ignores ${header}.*\n$`),
      );
      expect(server.keys).toEqual([]);
      const io = capturedIo();
      expect(showDiagnosis(diagnosis, { json: true }, io)).toBe(69);
      const { ok, findings } = JSON.parse(io.answer()) as Diagnosis;
      expect(ok).toBe(false);
      expect(
        findings.some(({ status, detail }) => status === 'fault' && detail.includes(`ignores ${header}`)),
      ).toBe(true);
    },
  );

  it('that refuses etags in quotes, and takes them without, is reported as such', async () => {
    const { code, answer } = await diagnosed({ unquotedEtags: true });
    expect(code).toBe(69);
    expect(answer).toMatch(
      /FAULT .*the right etag was refused, in quotes as the store itself gave it; without them it is taken \(as by Ceph RGW before version 20/,
    );
    expect(answer).toMatch(/FAULT .*no writer won in any of \d+ races of If-Match$/m);
  });

  it('that refuses to delete is warned of, with the names of what is left, and is no fault', async () => {
    const { code, answer, complaints } = await diagnosed({ refuseDeletes: true });
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' });
    expect(answer).toMatch(/warn {3}removes the scratch objects: .*probe-/);
    expect(answer).toMatch(/No faults, 1 warning\. There is no cluster at s3:\/\/bucket\/fleet yet\.\n$/);
  });

  it('that has failed a probe once is used by no task, until a far longer probe finds no fault and is accepted', async () => {
    const server = await start();
    const run = async () => {
      const task = runCli(['run', ...at(server), '--', 'true'], { env: CREDENTIALS });
      return { code: (await task.exit).code, log: task.stderr() };
    };
    // Longer than it takes to send the requests of two writers, also where the machine is slow: one of 12
    // races is lost for sure.
    server.faults.gapMs = 50;
    expect(await run()).toMatchObject({
      code: 69,
      log: expect.stringMatching(/If-None-Match is not atomic: \d+ of 12 races were lost/),
    });
    server.faults.gapMs = 0;
    expect(await run()).toMatchObject({
      code: 69,
      log: expect.stringContaining('as an earlier probe has found: If-None-Match is not atomic'),
    });
    const accepted = await doctor(server, '--accept');
    expect(accepted).toMatchObject({ code: 0, complaints: '' });
    expect(accepted.answer).toContain(
      'ok     lets exactly one of several concurrent writers win: 200 races, none lost\n',
    );
    expect(await run()).toMatchObject({ code: 0 });
  });

  const region = { 'x-amz-bucket-region': 'eu-west-1' };
  const portal = {
    status: 200,
    body: '<html><body>Please log in</body></html>',
    headers: { 'content-type': 'text/html' },
  };
  it.each([
    [
      'is of another region',
      [{ status: 301, code: 'PermanentRedirect', headers: region }],
      'listing: the bucket is in region eu-west-1 (PermanentRedirect',
    ],
    [
      'sends elsewhere',
      [{ status: 307, code: 'TemporaryRedirect' }],
      'listing: wrong region or endpoint (TemporaryRedirect',
    ],
    [
      'encrypts with a key that is switched off',
      ['as-usual', { status: 400, code: 'KMS.DisabledException' }],
      'refused (KMS.DisabledException',
    ],
    ['is a captive portal', Array(30).fill(portal), 'is this an S3 server?'],
    [
      'is hidden by a cache',
      [{ status: 304 }],
      'answered HTTP 304, not modified, although it was not asked whether it was',
    ],
  ] as const)('that %s is called that, and nothing is to be removed there', async (_, replies, says) => {
    const server = await start();
    server.next(...replies);
    const { code, answer, complaints } = await doctor(server);
    expect(code).toBe(69);
    expect(answer).toContain(says);
    expect(complaints).toContain(says);
    expect(answer).not.toMatch(/If-None-Match|scratch/);
    expect(server.requests.filter(({ method }) => method === 'DELETE')).toEqual([]);
  });

  it('removes its scratch objects when it is interrupted', async () => {
    // Its 200 races take far longer than the test.
    const server = await start({ delayMs: 200 });
    const command = runCli(['doctor', ...at(server)], { env: CREDENTIALS });
    await expect.poll(() => server.keys.some((key) => key.startsWith('fleet/probe-'))).toBe(true);
    command.kill('SIGINT');
    server.faults.delayMs = 0;
    expect((await command.exit).code).toBe(130);
    expect(server.keys).toEqual([]);
  });

  it('that does not run ends it with 69, with the cause in one line', async () => {
    const command = runCli(['doctor', ...at({ endpoint: 'http://127.0.0.1:1' })], { env: CREDENTIALS });
    expect((await command.exit).code).toBe(69);
    expect(command.stderr()).toMatch(/^nodelease: .*ECONNREFUSED.*\n$/);
  });
});
