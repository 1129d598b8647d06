import { createServer, type Server } from 'node:net';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { awsEnvironment } from '../../../support/bucket.js';
import { complaintOf, fleetStore } from '../../../support/fleet.js';
import { killAll, type ProcessEnd, runCli } from '../../../support/processes.js';

/**
 * A store is given eight seconds to answer; the rest is for the start of a process on a machine that has much
 * else to do.
 */
const LIMIT_MS = 60_000;

/** Runs a task that cannot get anywhere; the one line that it says after the one that names its store. */
async function complaint(
  options: readonly string[],
  env: Record<string, string>,
): Promise<{ end: ProcessEnd; tookMs: number; line: string }> {
  const begun = Date.now();
  const task = runCli(['run', '--nodes', '2', ...options, '--', 'true'], { env });
  const end = await task.exit;
  expect(task.stdout()).toBe('');
  expect(task.stderr()).not.toMatch(/stack|\\n\s+at /);
  return { end, tookMs: Date.now() - begun, line: complaintOf(task.stderr(), options[1] ?? '') };
}

// Side by side: two of them take the whole time that a store is given.
describe.concurrent('a store that cannot be used ends a task with 69, soon, and says why in one line', () => {
  let silent: Server | undefined;
  afterAll(async () => {
    await killAll();
    silent?.close();
  });

  it('bucket missing', async () => {
    const s3 = inject('s3');
    const options = ['--store', 's3://nodelease-no-such-bucket/x', '--endpoint', s3.endpoint];
    const { end, tookMs, line } = await complaint(options, awsEnvironment(s3));
    expect(end.code).toBe(69);
    expect(tookMs).toBeLessThan(LIMIT_MS);
    expect(line).toMatch(/nodelease-no-such-bucket.*bucket does not exist/);
  });

  it('credentials wrong', async () => {
    const s3 = inject('s3');
    const store = await fleetStore('s3', s3);
    const { end, tookMs, line } = await complaint(store.options, {
      ...store.env,
      AWS_SECRET_ACCESS_KEY: 'wrong-wrong-wrong',
    });
    expect(end.code).toBe(69);
    expect(tookMs).toBeLessThan(LIMIT_MS);
    expect(line).toMatch(/access denied/);
  });

  it('credentials missing', async () => {
    const store = await fleetStore('s3', inject('s3'));
    const { end, tookMs, line } = await complaint(store.options, {
      AWS_REGION: 'us-east-1',
      AWS_EC2_METADATA_DISABLED: 'true',
      HOME: '/nonexistent',
    });
    expect(end.code).toBe(69);
    expect(tookMs).toBeLessThan(LIMIT_MS);
    expect(line).toMatch(/no AWS credentials found \(give the task a role, or set AWS_PROFILE, /);
  });

  it('no server there', async () => {
    const options = ['--store', 's3://some-bucket/x', '--endpoint', 'http://127.0.0.1:1'];
    const { end, tookMs, line } = await complaint(options, awsEnvironment(inject('s3')));
    expect(end.code).toBe(69);
    expect(tookMs).toBeLessThan(LIMIT_MS);
    expect(line).toMatch(/: endpoint http:\/\/127\.0\.0\.1:1: cannot connect: connect ECONNREFUSED/);
  });

  it('a server that speaks no TLS', async () => {
    const { endpoint, ...s3 } = inject('s3');
    const options = ['--store', 's3://some-bucket/x', '--endpoint', endpoint.replace('http:', 'https:')];
    const { end, line } = await complaint(options, awsEnvironment({ endpoint, ...s3 }));
    expect(end.code).toBe(69);
    expect(line).toMatch(
      /: endpoint https:\/\/.* does not speak the protocol of the URL \(is it http:\/\/\?\): /,
    );
  });

  it('a server there that never answers', async () => {
    const server = createServer(() => undefined);
    silent = server;
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
    );
    const options = ['--store', 's3://some-bucket/x', '--endpoint', `http://127.0.0.1:${port}`];
    const { end, tookMs, line } = await complaint(options, awsEnvironment(inject('s3')));
    expect(end.code).toBe(69);
    expect(tookMs).toBeLessThan(LIMIT_MS);
    expect(line).toMatch(/no answer/);
  });

  it('a file in place of the folder', async () => {
    const { end, line } = await complaint(['--store', 'file:package.json'], {});
    expect(end.code).toBe(69);
    expect(line).toContain('package.json');
  });

  it('shows the stack trace to who asks for it', async () => {
    const task = runCli(['run', '--store', 'file:package.json', '--log-level', 'debug', '--', 'true']);
    expect((await task.exit).code).toBe(69);
    expect(task.stderr()).toMatch(/"stack":/);
  });
});
