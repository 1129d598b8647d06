import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeCluster, newCluster } from '../../../../src/core/lease/model/cluster-config.js';
import { packageRoot } from '../../../support/package-root.js';
import { killAll, runCli, runProcess } from '../../../support/processes.js';
import { S3StandIn } from '../../../support/s3-stand-in.js';

const SEEN = { timeout: 60_000 };
/**
 * The writes of `0.json` before the first renewal that is watched: the acquiring one, one that has to be
 * refused, the first renewal.
 */
const BEGUN = 3;
const RENEWALS = 1;

const cloud = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' };

describe('a holder on S3', () => {
  let server: S3StandIn;
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodelease-settings-'));
    server = await S3StandIn.start();
  });
  afterEach(async () => {
    await killAll();
    await Promise.all([server.stop(), rm(folder, { recursive: true })]);
  });

  const given = (prefix: string) => ({
    ...cloud,
    NODELEASE_STORE: `s3://bucket/${prefix}`,
    NODELEASE_ENDPOINT: server.endpoint,
    NODELEASE_HTTP: '127.0.0.1:0',
  });

  async function library(keeper: string): Promise<void> {
    const index = JSON.stringify(pathToFileURL(join(packageRoot, 'dist/index.js')).href);
    const options = {
      store: `s3://bucket/${keeper}`,
      endpoint: server.endpoint,
      keeper,
      settingsIntervalMs: 3_600_000,
    };
    const program = join(folder, `${keeper}.mjs`);
    await writeFile(program, `import { acquire } from ${index}; await acquire(${JSON.stringify(options)});`);
    runProcess(process.execPath, [program], { env: cloud });
  }

  async function provide(prefix: string): Promise<void> {
    const settings = encodeCluster({ ...newCluster({ nodes: 1, durationMs: 5_000 }), bootstrapped: true });
    for (const [key, body] of Object.entries({ 'cluster.json': settings, '0.json': '' })) {
      await fetch(`${server.endpoint}/bucket/${prefix}/${key}`, { method: 'PUT', body });
    }
  }

  /** Whether the settings were read together with a renewal. */
  async function looked(prefix: string): Promise<boolean> {
    const of = (method: string, key: string) =>
      server.requests.flatMap((request, at) =>
        request.method === method && request.key === `${prefix}/${key}` ? [at] : [],
      );
    await expect.poll(() => of('PUT', '0.json').length, SEEN).toBeGreaterThan(BEGUN + RENEWALS);
    const writes = of('PUT', '0.json');
    const [from = 0, to = 0] = [writes[BEGUN], writes[BEGUN + RENEWALS]];
    return of('GET', 'cluster.json').some((at) => at > from && at < to);
  }

  it('makes no request but its renewals where --settings-interval makes the other one rare, however it is started', async () => {
    const prefixes = ['often', 'run', 'serve', 'inline', 'worker'];
    await Promise.all(prefixes.map(provide));
    server.requests.length = 0;
    runCli(['run', '--', 'sleep', '60'], { env: given('often') });
    runCli(['run', '--settings-interval', '1h', '--', 'sleep', '60'], { env: given('run') });
    runCli(['serve'], { env: { ...given('serve'), NODELEASE_SETTINGS_INTERVAL: '1h' } });
    await Promise.all([library('inline'), library('worker')]);
    const read = await Promise.all(prefixes.map(async (prefix) => [prefix, await looked(prefix)]));
    expect(Object.fromEntries(read)).toEqual({
      often: true,
      run: false,
      serve: false,
      inline: false,
      worker: false,
    });
  });
});
