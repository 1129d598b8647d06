import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../support/package-root.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-log-'));
  const output = { file: join(folder, 'logger.mjs'), codeSplitting: false };
  await build({
    input: join(packageRoot, 'src/cli/log/logger.ts'),
    platform: 'node',
    output,
    logLevel: 'silent',
  });
});
afterAll(() => rm(folder, { recursive: true }));

const program = `
  const { loggerFor } = await import(process.argv[2]);
  const log = await loggerFor({ logLevel: 'info', logFormat: process.argv[1] }, { logFormat: 'json', onWarning() {} });
  log.info({ token: 'hidden-1', zookeeper: { auth: 'hidden-2', session: { password: 'hidden-3' } }, kept: 'kept' }, 'connected');
  log.child({ authorization: 'Bearer hidden-token-4' }).warn('refused: digest:me:hidden-5 at http://me:hidden-6@host/');
  log.warn({ given: 'me:hidden-9@zk1:2181,zk2:2181', err: new Error('got "KEY:hid/hidden-10@bucket"') }, 'got s3://KEY:hid/hidden-11@bucket');
  log.error({ err: new Error('no answer from http://me:hidden-7@host', { cause: new Error('Authorization: Bearer hidden-token-8') }) }, 'failed');
`;

// In a process of its own: a log goes to standard error, past everything else.
async function logged(format: string): Promise<string> {
  return (
    await promisify(execFile)(process.execPath, [
      '--input-type=module',
      '-e',
      program,
      format,
      join(folder, 'logger.mjs'),
    ])
  ).stderr;
}

describe('the log of a command', () => {
  it.each(['json', 'pretty'])('has no secrets in it, as fields or within texts (%s)', async (format) => {
    const text = await logged(format);
    expect(text).not.toContain('hidden');
    for (const part of [
      'connected',
      'kept',
      'refused: digest:me:[redacted] at http://[redacted]@host/',
      'no answer from',
      'zk1:2181,zk2:2181',
    ])
      expect(text).toContain(part);
  });

  it('is one JSON object a line', async () => {
    const lines = (await logged('json')).trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      'connected',
      'refused: digest:me:[redacted] at http://[redacted]@host/',
      'got s3://[redacted]@bucket',
      'failed',
    ]);
  });
});
