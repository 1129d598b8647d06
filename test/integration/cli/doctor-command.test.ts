import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Diagnosis } from '../../../src/cli/doctor/diagnosis.js';
import { fleetStore, startTask } from '../../support/fleet.js';
import { killAll, runCli } from '../../support/processes.js';
import { S3StandIn } from '../../support/s3-stand-in.js';

afterEach(killAll);

describe.each(['file', 's3'] as const)('nodelease doctor on %s', (kind) => {
  it('finds a sound store sound beside a running task, does not disturb it, and leaves nothing behind', async () => {
    const store = await fleetStore(kind, inject('s3'));
    const task = startTask(store, ['--nodes', '2', '--duration', '3s']);
    await task.started();
    await task.waitForOutput(/all lease objects of the cluster exist/, 20_000);
    const before = await store.keys();
    const doctor = runCli(['doctor', ...store.options], { env: store.env });
    expect(await doctor.exit).toEqual({ code: 0, signal: null });
    expect(doctor.stderr()).toBe('');
    expect(doctor.stdout()).toMatch(/cluster: 2 node ids, 1 of them held; duration 3s, grace 1s\n/);
    expect(doctor.stdout()).toMatch(/cost: 2 node ids, .* 3s: 5,184,000 writes .* and 5,184,000 reads .*, on S3 \$27.99/);
    expect(doctor.stdout()).toMatch(/\nAll is well\.\n$/);
    expect(await store.keys()).toEqual(before);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
    await store.remove();
  });

  it('removes its scratch objects when it is interrupted', async () => {
    const store = await fleetStore(kind, inject('s3'));
    const doctor = runCli(['doctor', ...store.options], { env: store.env });
    const until = performance.now() + 10_000;
    for (let found = false; !found && performance.now() < until; await sleep(5)) {
      found = (await store.keys().catch(() => [])).some((key) => key.startsWith('probe-'));
    }
    doctor.kill('SIGINT');
    expect((await doctor.exit).code).toBe(130);
    expect(await store.keys()).toEqual([]);
    await store.remove();
  });
});

describe('nodelease doctor on an S3 server', () => {
  let server: S3StandIn;
  beforeEach(async () => {
    server = await S3StandIn.start();
  });
  afterEach(() => server.stop());

  const doctor = async (...args: string[]) => {
    const env = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' };
    const command = runCli(['doctor', '--store', 's3://bucket/fleet', '--endpoint', server.endpoint, ...args], { env });
    const { code } = await command.exit;
    return { code, answer: command.stdout(), complaints: command.stderr() };
  };

  it.each([
    ['If-None-Match', { ignoreIfNoneMatch: true }],
    ['If-Match', { ignoreIfMatch: true }],
  ])('that ignores %s ends with 69 and says so', async (header, faults) => {
    Object.assign(server.faults, faults);
    const { code, answer, complaints } = await doctor();
    expect(code).toBe(69);
    expect(answer).toMatch(new RegExp(`FAULT  .*: ignores ${header}`));
    expect(complaints).toMatch(new RegExp(`^nodelease: s3://bucket/fleet: \\d faults?: .*ignores ${header}.*\n$`));
    expect(server.keys).toEqual([]);
    const { code: jsonCode, answer: json } = await doctor('--json');
    expect(jsonCode).toBe(69);
    const { ok, findings } = JSON.parse(json) as Diagnosis;
    expect(ok).toBe(false);
    expect(findings.some(({ status, detail }) => status === 'fault' && detail.includes(`ignores ${header}`))).toBe(true);
  });

  it('that has failed a probe once is used by no task, until a far longer probe finds no fault and is accepted', async () => {
    const env = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' };
    const run = async () => {
      const task = runCli(['run', '--store', 's3://bucket/fleet', '--endpoint', server.endpoint, '--', 'true'], { env });
      return { code: (await task.exit).code, log: task.stderr() };
    };
    server.faults.gapMs = 5;
    expect(await run()).toMatchObject({ code: 69, log: expect.stringMatching(/If-None-Match is not atomic: \d+ of 12 races were lost/) });
    server.faults.gapMs = 0;
    expect(await run()).toMatchObject({
      code: 69,
      log: expect.stringContaining('as an earlier probe has found: If-None-Match is not atomic'),
    });
    const refused = await doctor();
    expect(refused.code).toBe(69);
    expect(refused.answer).toContain('ok     lets exactly one of several concurrent writers win: 200 races, none lost\n');
    expect(refused.answer).toMatch(/FAULT {2}earlier probe: found that If-None-Match is not atomic: .*nodelease doctor --accept/);
    expect(await doctor('--accept')).toMatchObject({ code: 0, complaints: '' });
    expect(await run()).toMatchObject({ code: 0 });
  });

  const region = { 'x-amz-bucket-region': 'eu-west-1' };
  const portal = { status: 200, body: '<html><body>Please log in</body></html>', headers: { 'content-type': 'text/html' } };
  it.each([
    [
      'is of another region',
      [{ status: 301, code: 'PermanentRedirect', headers: region }],
      'listing: the bucket is in region eu-west-1 (PermanentRedirect',
    ],
    ['sends elsewhere', [{ status: 307, code: 'TemporaryRedirect' }], 'listing: wrong region or endpoint (TemporaryRedirect'],
    [
      'encrypts with a key that is switched off',
      ['as-usual', { status: 400, code: 'KMS.DisabledException' }],
      'refused (KMS.DisabledException',
    ],
    ['is a captive portal', Array(30).fill(portal), 'is this an S3 server?'],
    ['is hidden by a cache', [{ status: 304 }], 'answered HTTP 304, not modified, although it was not asked whether it was'],
  ] as const)('that %s is called that, and nothing is to be removed there', async (_, replies, says) => {
    server.next(...replies);
    const { code, answer, complaints } = await doctor();
    expect(code).toBe(69);
    expect(answer).toContain(says);
    expect(complaints).toContain(says);
    expect(answer).not.toMatch(/If-None-Match|scratch/);
    expect(server.requests.filter(({ method }) => method === 'DELETE')).toEqual([]);
  });

  it('that refuses etags in quotes, and takes them without, is told so', async () => {
    server.faults.unquotedEtags = true;
    const { code, answer } = await doctor();
    expect(code).toBe(69);
    expect(answer).toMatch(
      /FAULT .*the right etag was refused, in quotes as the store itself gave it; without them it is taken \(as by Ceph RGW before version 20/,
    );
    expect(answer).toMatch(/FAULT .*no writer won in any of \d+ races of If-Match$/m);
  });

  it('that refuses to delete is warned of, with the names of what is left, and is no fault', async () => {
    server.faults.refuseDeletes = true;
    const { code, answer, complaints } = await doctor();
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' });
    expect(answer).toMatch(/warn {3}removes the scratch objects: .*probe-/);
    expect(answer).toMatch(/No faults, 1 warning\.\n$/);
  });

  it('that does not run ends with 69 within 15 seconds, with the cause in one line', async () => {
    const begun = performance.now();
    await server.stop();
    server = await S3StandIn.start();
    const command = runCli(['doctor', '--store', 's3://bucket/fleet', '--endpoint', 'http://127.0.0.1:1'], {
      env: { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' },
    });
    expect((await command.exit).code).toBe(69);
    expect(performance.now() - begun).toBeLessThan(15_000);
    expect(command.stderr()).toMatch(/^nodelease: .*ECONNREFUSED.*\n$/);
  });
});
