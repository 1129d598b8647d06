import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../src/core/base/system.js';
import {
  acquireLease,
  evictHolder,
  initializeCluster,
  inspectCluster,
  StoreSession,
  scaleCluster,
} from '../../src/core/lease/index.js';
import { probeStore } from '../../src/core/store/probe/probe.js';
import { openS3Store } from '../../src/core/store/s3/open-s3-store.js';
import type { S3LeaseStore } from '../../src/core/store/s3/s3-lease-store.js';
import { type RecordedRequest, S3StandIn } from '../../test/support/s3-stand-in.js';
import { LeaseBucket } from '../lib/lease-bucket.js';
import { grantLeases, type LeaseRights } from '../lib/lease-policy.js';
import { type Ask, asksOf, isAllowed } from './policy-judge.js';
import { type Statement, statementsOf } from './stacks.js';

// The requests that nodelease really makes, before the policies that are really synthesised.

const BUCKET = '<LeasesBucket>';
const PREFIX = 'prod';

function policies(rights: LeaseRights): {
  readonly role: readonly Statement[];
  readonly bucket: readonly Statement[];
} {
  const stack = new Stack(new App(), 'Stack');
  const leases = new LeaseBucket(stack, 'Leases', { prefix: PREFIX });
  grantLeases(new Role(stack, 'Role', { assumedBy: new ServicePrincipal('ecs-tasks.amazonaws.com') }), {
    ...leases,
    rights,
  });
  const template = Template.fromStack(stack);
  return {
    role: statementsOf(template, 'AWS::IAM::Policy'),
    bucket: statementsOf(template, 'AWS::S3::BucketPolicy'),
  };
}

/** The requests that holders of leases sent to S3, and the requests of readers. */
let holding: readonly Ask[];
let looking: readonly Ask[];

beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  const server = await S3StandIn.start();
  const options = {
    bucket: server.bucket,
    prefix: PREFIX,
    endpoint: server.endpoint,
    clock,
    requestTimeoutMs: 5_000,
  };
  const store = await openS3Store(options);
  try {
    await everythingWithLeases(store);
    holding = asked(server.requests);
    server.requests.length = 0;
    await inspectCluster(new StoreSession(store, clock, 5_000));
    looking = asked(server.requests);
  } finally {
    await store.close();
    await server.stop();
    vi.unstubAllEnvs();
  }
});

afterAll(() => vi.unstubAllEnvs());

const asked = (requests: readonly RecordedRequest[]) =>
  requests.flatMap((request) => asksOf(request, BUCKET));

/** Acquires where nothing exists yet, renews, releases; creates the rest, scales, evicts, probes. */
async function everythingWithLeases(store: S3LeaseStore): Promise<void> {
  let onRenewed = () => {};
  const renewed = new Promise<void>((resolve) => {
    onRenewed = resolve;
  });
  const onEvent = ({ type }: { readonly type: string }) => void (type === 'renewed' && onRenewed());
  const lease = await acquireLease({
    store,
    clock,
    random,
    taskId: 'a',
    nodes: 3,
    durationMs: 6_000,
    graceMs: 100,
    onEvent,
  });
  await renewed;
  await lease.release();
  const session = new StoreSession(store, clock, 5_000);
  await initializeCluster({ session, clock, random, wanted: { nodes: 3 } });
  await scaleCluster({ session, clock, random, size: 5 });
  const other = await acquireLease({ store, clock, random, taskId: 'b' });
  await evictHolder(session, other.id);
  await new Promise<void>((resolve) =>
    other.signal.aborted ? resolve() : other.signal.addEventListener('abort', () => resolve()),
  );
  await probeStore(store, { clock, random, watchAgeMs: 0 });
}

const refused = (asks: readonly Ask[], statements: readonly Statement[]) =>
  asks.filter((ask) => !isAllowed(ask, statements)).map(({ action, resource }) => `${action} ${resource}`);

describe('what nodelease asks of S3', () => {
  it('is allowed to holders of leases, to the last request', () => {
    const { role, bucket } = policies('hold');
    expect(new Set(holding.map(({ action }) => action)).size).toBe(4);
    expect(refused(holding, [...role, ...bucket])).toEqual([]);
  });

  it('would not be without any one of the statements: none is there in vain', () => {
    const { role, bucket } = policies('hold');
    for (const { Sid } of role) {
      const rest = role.filter((statement) => statement.Sid !== Sid);
      expect(refused(holding, [...rest, ...bucket]), Sid).not.toEqual([]);
    }
  });

  it('is allowed to readers as far as they only read, and no writing', () => {
    const { role, bucket } = policies('read');
    expect(looking.length).toBeGreaterThan(5);
    expect(refused(looking, [...role, ...bucket])).toEqual([]);
    const writing = holding.filter(({ action }) => action === 's3:PutObject' || action === 's3:DeleteObject');
    expect(refused(writing, [...role, ...bucket])).toHaveLength(writing.length);
  });

  it('would read as denied what does not exist yet, if listing were allowed only for the bare prefix', () => {
    const { role, bucket } = policies('hold');
    const bare = role.map((statement) =>
      statement.Sid === 'ListLeases'
        ? { ...statement, Condition: { StringEquals: { 's3:prefix': `${PREFIX}/` } } }
        : statement,
    );
    expect(refused(holding, [...bare, ...bucket])).toContain(`s3:ListBucket ${BUCKET}`);
  });
});

describe('the bucket', () => {
  const { role, bucket } = policies('hold');
  const everything: Statement = { Effect: 'Allow', Action: '*', Resource: '*' };
  const transport = { 'aws:SecureTransport': 'true', 's3:TlsVersion': '1.3' };
  const put = {
    action: 's3:PutObject',
    resource: `${BUCKET}/${PREFIX}/0.json`,
    context: { ...transport, 's3:ObjectCreationOperation': 'true' },
  };

  it('lets no user write a lease without a condition, an administrator included', () => {
    expect(isAllowed(put, [everything, ...bucket])).toBe(false);
    for (const condition of ['s3:if-match', 's3:if-none-match']) {
      expect(
        isAllowed({ ...put, context: { ...put.context, [condition]: '*' } }, [everything, ...bucket]),
      ).toBe(true);
    }
  });

  it('lets no user delete a lease, an administrator included, and lets those with the right delete scratch objects', () => {
    for (const key of ['0.json', '17.json', 'cluster.json', 'locks/nightly/0.json']) {
      const remove = {
        action: 's3:DeleteObject',
        resource: `${BUCKET}/${PREFIX}/${key}`,
        context: transport,
      };
      expect(isAllowed(remove, [everything, ...bucket]), key).toBe(false);
    }
    expect(
      isAllowed(
        { action: 's3:DeleteObject', resource: `${BUCKET}/${PREFIX}/probe-1.json`, context: transport },
        [...role, ...bucket],
      ),
    ).toBe(true);
  });

  it('lets no user in without TLS 1.2', () => {
    for (const weak of [{ 'aws:SecureTransport': 'false' }, { ...transport, 's3:TlsVersion': '1.1' }]) {
      expect(
        isAllowed({ action: 's3:GetObject', resource: `${BUCKET}/${PREFIX}/0.json`, context: weak }, [
          everything,
          ...bucket,
        ]),
      ).toBe(false);
    }
  });

  it('shows a task nothing but its leases', () => {
    const elsewhere = { action: 's3:GetObject', resource: `${BUCKET}/secrets/0.json`, context: transport };
    expect(isAllowed(elsewhere, [...role, ...bucket])).toBe(false);
    expect(
      isAllowed({ action: 's3:ListBucket', resource: BUCKET, context: { ...transport, 's3:prefix': '' } }, [
        ...role,
        ...bucket,
      ]),
    ).toBe(false);
    expect(
      isAllowed({ action: 's3:ListBucket', resource: BUCKET, context: transport }, [...role, ...bucket]),
    ).toBe(false);
  });
});
