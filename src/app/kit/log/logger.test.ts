import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { loggerFor } from './logger.js';

async function logged(logFormat: 'json' | 'pretty'): Promise<string> {
  const io = capturedIo();
  const log = await loggerFor({ logLevel: 'info', logFormat }, io);
  log.info(
    {
      token: 'hidden-1',
      zookeeper: { auth: 'hidden-2', session: { password: 'hidden-3' } },
      kept: 'kept',
    },
    'connected',
  );
  log
    .child({ authorization: 'Bearer hidden-token-4' })
    .warn('refused: digest:me:hidden-5 at http://me:hidden-6@host/');
  log.warn(
    { given: 'me:hidden-9@zk1:2181,zk2:2181', err: new Error('got "KEY:hid/hidden-10@bucket"') },
    'got s3://KEY:hid/hidden-11@bucket',
  );
  const cause = new Error('Authorization: Bearer hidden-token-8');
  log.error({ err: new Error('no answer from http://me:hidden-7@host', { cause }) }, 'failed');
  return io.complaints();
}

describe('the log of a command', () => {
  it.each(['json', 'pretty'] as const)(
    'has no secrets in it, as fields or within texts (%s)',
    async (format) => {
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
    },
  );

  it('is one JSON object a line', async () => {
    const lines = (await logged('json')).trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      'connected',
      'refused: digest:me:[redacted] at http://[redacted]@host/',
      'got s3://[redacted]@bucket',
      'failed',
    ]);
  });

  it('gives a terminal no commands that are in others’ texts', async () => {
    const io = capturedIo();
    const log = await loggerFor({ logLevel: 'info', logFormat: 'pretty' }, io);
    const bad = 'a\u001b[2J\r\b\u007f\u009b1mb';
    log.warn({ bad, err: new Error(bad) }, `${bad} C:\\u001b\\b \\\u001b[2J`);
    expect(io.complaints()).not.toMatch(/[^\P{Cc}\n\t]/u);
    expect(io.complaints()).toContain('a\ufffd[2J\ufffd\ufffd\ufffd\ufffd1mb C:\\u001b\\b \\\ufffd[2J');
  });
});
