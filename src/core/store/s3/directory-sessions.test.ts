import { expect, it, vi } from 'vitest';
import { S3StandIn } from '../../../../test/support/s3-stand-in.js';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { bucketSessions } from './bucket-sessions.js';
import { openS3Store } from './open-s3-store.js';

// A directory bucket wants a session, of five minutes, before the first request.

it('a session that was not created is asked for again by the next call', async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  const server = await S3StandIn.start();
  const store = await openS3Store({
    ...{ bucket: 'leases--use1-az4--x-s3', prefix: 'p', endpoint: server.endpoint },
    ...{ clock: new VirtualClock(), requestTimeoutMs: 5_000 },
  });
  const session =
    '<SessionToken>t</SessionToken><SecretAccessKey>s</SecretAccessKey><AccessKeyId>SESSION</AccessKeyId>';
  const body = `<CreateSessionResult><Credentials>${session}</Credentials></CreateSessionResult>`;
  server.next({ status: 503, code: 'SlowDown' }, { status: 200, body }, { status: 404, code: 'NoSuchKey' });
  const busy = { fault: 'unavailable', outcome: 'not-applied' };
  await expect(store.read('0.json')).rejects.toMatchObject(busy);
  expect(await store.read('0.json')).toBeUndefined();
  const signers = server.requests.map(
    ({ headers }) => /Credential=(\w+)/.exec(`${headers.authorization}`)?.[1],
  );
  expect(signers).toEqual(['key', 'key', 'SESSION']);
  await store.close();
  await server.stop();
  vi.unstubAllEnvs();
});

it('a session whose answer stops in the middle is asked for again once the time of a request is over', async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  const server = await S3StandIn.start();
  const clock = new VirtualClock();
  const store = await openS3Store({
    ...{ bucket: 'leases--use1-az4--x-s3', prefix: 'p', endpoint: server.endpoint },
    ...{ clock, requestTimeoutMs: 5_000 },
  });
  server.next('stall-body', { status: 503, code: 'SlowDown' });
  const silent = expect(store.read('0.json')).rejects.toThrow('no answer within 5000 ms');
  await expect.poll(() => server.requests).toHaveLength(1);
  await clock.advance(4_000);
  // A call that waits for the same session, and has time left.
  const second = expect(store.read('1.json')).rejects.toMatchObject({
    fault: 'unreachable',
    transient: true,
  });
  await clock.advance(1_000);
  await silent;
  await second;
  await clock.advance(1_000);
  await expect(store.read('0.json')).rejects.toThrow('SlowDown');
  await store.close();
  await server.stop();
  vi.unstubAllEnvs();
});

it('a session is renewed in its last minute: a failure is asked about again, and fails calls at its end', async () => {
  const clock = new VirtualClock();
  const answers: (string | undefined)[] = [];
  const send = async () => {
    const AccessKeyId = answers.shift();
    if (AccessKeyId === undefined) throw new Error('down');
    return { Credentials: { AccessKeyId, SecretAccessKey: 's', SessionToken: 't' } };
  };
  const sessions = bucketSessions({ send } as never, { clock, requestTimeoutMs: 5_000 });
  const use = async (afterMs: number, ...given: (string | undefined)[]) => {
    await clock.advance(afterMs);
    answers.splice(0, answers.length, ...given);
    const identity = { accessKeyId: 'key', secretAccessKey: 's' };
    const session = await sessions.getS3ExpressIdentity(identity, { Bucket: 'b' });
    return session.accessKeyId;
  };
  expect(await use(0, 'FIRST')).toBe('FIRST');
  expect(await use(239_999)).toBe('FIRST');
  expect(await use(1)).toBe('FIRST');
  expect(await use(1, 'SECOND')).toBe('FIRST');
  expect(await use(239_999)).toBe('SECOND');
  expect(await use(50_000)).toBe('SECOND');
  await expect(use(1)).rejects.toThrow('down');
  expect(await use(1, 'THIRD')).toBe('THIRD');
});
