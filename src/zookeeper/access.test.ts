import { describe, expect, it } from 'vitest';
import { authData, parseAuth } from './access.js';

describe('credentials', () => {
  it('are a scheme, a user and a password, which may contain colons', () => {
    const auth = parseAuth('digest:app:s3:cr:et', '--zookeeper-auth');
    expect(auth).toEqual({ scheme: 'digest', user: 'app', password: 's3:cr:et' });
    expect(authData(auth).toString()).toBe('app:s3:cr:et');
  });

  it.each([
    '',
    'digest',
    'digest:',
    'digest:app',
    'digest:app:',
    'digest::s3cret',
    'app:s3cret',
    's3cret',
    'sasl:app:s3cret',
    'DIGEST:app:s3cret',
    'digest:app:s3cret\n',
  ])('are refused as %j, without showing any of it but the scheme', (text) => {
    const refusal = (() => {
      try {
        parseAuth(text, '--zookeeper-auth');
        return undefined;
      } catch (error) {
        return error as Error;
      }
    })();
    expect(refusal).toMatchObject({ code: 'CONFIG_INVALID', setting: '--zookeeper-auth' });
    expect(refusal?.message).toMatch(/^--zookeeper-auth: expected digest:USER:PASSWORD, .*, got "(digest:)?…"$/);
    expect(JSON.stringify({ ...refusal })).not.toContain('s3cret');
  });
});
