import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { probeStore } from '../../../../src/core/store/probe/probe.js';
import type { ProbeReport } from '../../../../src/core/store/probe/probe-report.js';
import { openS3Store } from '../../../../src/core/store/s3/open-s3-store.js';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';
import { killAll, runCli } from '../../../support/processes.js';
import type { S3Server } from '../../../support/servers/minio.js';
import { startS3Server } from '../../../support/servers/s3-servers.js';

// Servers that keep conditions one after the other, and not at the same time.

const PROBES = 10;

let server: S3Server;

async function probed(prefix: string, bucket: string, rounds?: number): Promise<ProbeReport> {
  const { endpoint, region } = server;
  const store = await openS3Store({
    bucket,
    prefix,
    endpoint,
    region,
    clock: systemClock,
    requestTimeoutMs: 5_000,
  });
  try {
    return await probeStore(store, {
      clock: systemClock,
      random: systemRandom,
      watchAgeMs: 0,
      ...(rounds && { rounds }),
    });
  } finally {
    await store.close();
  }
}

const isFoundOut = ({ checks }: ProbeReport) => checks.some(({ detail }) => detail.includes('is not atomic'));

function start(name: 's3mock' | 'moto'): void {
  beforeAll(async () => {
    server = await startS3Server(name);
    vi.stubEnv('AWS_ACCESS_KEY_ID', server.accessKeyId);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', server.secretAccessKey);
  });
  afterAll(async () => {
    await server?.stop();
    vi.unstubAllEnvs();
  });
  afterEach(killAll);
}

describe('S3Mock, which looks and then writes', () => {
  start('s3mock');

  it('is found out by at least nine of ten probes of a first start', async () => {
    const { name } = await createBucket(server);
    let found = 0;
    let probes = 0;
    // Two of ten may get through by chance: then more of them decide.
    for (; probes < PROBES || (found < 0.9 * probes && probes < 4 * PROBES); probes += 1)
      if (isFoundOut(await probed(`p${probes}`, name))) found += 1;
    console.info(`S3Mock: found out by ${found} of ${probes} probes of 24 races`);
    expect(found / probes).toBeGreaterThanOrEqual(0.9);
  });

  it('stays refused: every later start of a fleet ends with 69, and says what was found', async () => {
    const { name } = await createBucket(server);
    let fleet = 'a';
    const task = async () => {
      const options = [
        '--store',
        `s3://${name}/${fleet}`,
        '--endpoint',
        server.endpoint,
        '--nodes',
        '8',
        '--acquire-timeout',
        '60s',
      ];
      const run = runCli(['run', ...options, '--', 'true'], { env: awsEnvironment(server) });
      return { code: (await run.exit).code, log: run.stderr() };
    };
    let first = await task();
    // One in a hundred may get through.
    for (const another of ['b', 'c']) {
      if (first.code !== 0) break;
      fleet = another;
      first = await task();
    }
    expect(first).toMatchObject({ code: 69, log: expect.stringContaining('is not atomic') });
    const later = await Promise.all(Array.from({ length: 6 }, task));
    for (const { code, log } of later) {
      expect(code).toBe(69);
      expect(log).toContain('as an earlier probe has found: If-');
    }
  });
});

describe('moto, whose gap between looking and writing is narrow', () => {
  start('moto');

  it('is not always found out, and never for another reason', async () => {
    const { name } = await createBucket(server);
    let found = 0;
    for (let probe = 0; probe < PROBES; probe += 1) {
      const report = await probed(`p${probe}`, name);
      if (isFoundOut(report)) found += 1;
      expect(report.ok).toBe(!isFoundOut(report));
    }
    console.info(`moto: found out by ${found} of ${PROBES} probes of 24 races`);
  });
});
