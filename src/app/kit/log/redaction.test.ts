import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { REDACTED, withoutSecrets } from '../../../core/base/redaction.js';
import { loggerFor } from './logger.js';

describe('what is logged', () => {
  it.each([
    ['digest:me:secret', 'digest:me:[redacted]'],
    ['zookeeper with digest:me:sec:ret, tried again', 'zookeeper with digest:me:[redacted] tried again'],
    ['http://me:secret@host/path?a=b@c', 'http://[redacted]@host/path?a=b@c'],
    ["unknown option '--stor=s3://KEY:SEC/RET@bucket'", "unknown option '--stor=s3://[redacted]@bucket'"],
    ['got "me:sec@ret@zk:2181,zk2:2181"', 'got "[redacted]@zk:2181,zk2:2181"'],
    ['NAME=me:secret@host', 'NAME=[redacted]@host'],
    ['authorization: Bearer abcdefghijklmnop==', 'authorization: Bearer [redacted]'],
  ])('holds no credentials: %s', (text, expected) => {
    expect(withoutSecrets(text)).toBe(expected);
  });

  it.each([
    's3://bucket/prefix',
    'http://127.0.0.1:7070/livez',
    'a digest: of something',
    'bearer of news',
    'x@y.z',
    'expected digest:USER:PASSWORD, the digest scheme being the only one',
    'http://127.0.0.1:80/a@b',
    'file:data/a@b',
    'at f (file:///a/node_modules/@b/c.js:1:2)',
    'id 7: 7@19',
  ])('keeps %s', (text) => {
    expect(withoutSecrets(text)).toBe(text);
  });

  it.each(['p"q', 'p\\', 'p\\"q', '\\n', 'ends"'])('stays JSON with the password %s', (password) => {
    const line = JSON.stringify({
      auth: `digest:me:${password}`,
      url: `http://me:${password}@host`,
      query: `password=${password}`,
      next: 1,
    });
    const shown = withoutSecrets(line);
    expect(JSON.parse(shown)).toMatchObject({ auth: `digest:me:${REDACTED}`, next: 1 });
    expect(shown).not.toContain(JSON.stringify(password).slice(1, -1));
  });

  it('is looked through in no time, however long it is', () => {
    const text = `${'a.'.repeat(50_000)}${'digest:'.repeat(10_000)}${'x://'.repeat(10_000)}${'x://y:'.repeat(10_000)}${'(x:'.repeat(10_000)}${'password='.repeat(10_000)}`;
    // In the time of this process: that of other programs is not its own.
    const before = process.cpuUsage();
    withoutSecrets(text);
    expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
  });

  it('holds no field with a secret name, at the top or two levels below', async () => {
    const io = capturedIo();
    const log = await loggerFor({ logLevel: 'info' }, io);
    for (const name of [
      'authorization',
      'token',
      'secret',
      'password',
      'credentials',
      'zookeeper-auth',
      'zookeeperAuth',
      'auth',
    ]) {
      log.info(
        { [name]: 'hidden-1', a: { [name]: 'hidden-2', b: { [name]: 'hidden-3' } }, kept: 'kept' },
        'said',
      );
    }
    const lines = io.complaints().trimEnd().split('\n');
    expect(lines).toHaveLength(8);
    for (const line of lines) {
      expect(line).not.toContain('hidden');
      expect(JSON.parse(line)).toMatchObject({ kept: 'kept', msg: 'said' });
    }
  });
});
