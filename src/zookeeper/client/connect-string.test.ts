import { describe, expect, it } from 'vitest';
import { authData, formatServer, parseAuth, parseConnectString } from './connect-string.js';

const parse = (text: string) => parseConnectString(text, '--zookeeper');

describe('a connect string', () => {
  it('names one server, its port being 2181 unless it is given', () => {
    expect(parse('zk1')).toEqual({ servers: [{ host: 'zk1', port: 2181 }], chroot: '', text: 'zk1' });
    expect(parse('10.0.0.1:2182').servers).toEqual([{ host: '10.0.0.1', port: 2182 }]);
  });

  it('names several servers and a chroot', () => {
    expect(parse('zk1.example:2181,zk_2:2182,[::1]:2183/prod/nodelease')).toEqual({
      servers: [
        { host: 'zk1.example', port: 2181 },
        { host: 'zk_2', port: 2182 },
        { host: '::1', port: 2183 },
      ],
      chroot: '/prod/nodelease',
      text: 'zk1.example:2181,zk_2:2182,[::1]:2183/prod/nodelease',
    });
    expect(parse('[2001:db8::7]').servers.map(formatServer)).toEqual(['[2001:db8::7]:2181']);
  });

  it('takes the same chroot behind each server for one', () => {
    expect(parse('zk1/ids/a,zk2:2182/ids/a')).toMatchObject({
      servers: [
        { host: 'zk1', port: 2181 },
        { host: 'zk2', port: 2182 },
      ],
      chroot: '/ids/a',
    });
  });

  it.each([
    ['', 'it is empty'],
    ['/chroot', 'no server is named'],
    ['zk1:2181,', 'a server is empty'],
    ['zk1,,zk2', 'a server is empty'],
    [':2181', '"" is no host'],
    ['zk1:', '"" is no port'],
    ['zk1:0', '"0" is no port'],
    ['zk1:65536', '"65536" is no port'],
    ['zk1:21 81', '"21 81" is no port'],
    ['zk1:2181:2182', '"2181:2182" is no port'],
    ['zk 1:2181', '"zk 1" is no host'],
    ['-zk1:2181', '"-zk1" is no host'],
    ['zk1..example:2181', '"zk1..example" is no host'],
    ['300.0.0.1:2181', '"300.0.0.1" is no host'],
    ['::1:2181', 'an IPv6 address stands in brackets'],
    ['2001:db8::7', 'an IPv6 address stands in brackets'],
    ['[::1', 'an IPv6 address stands in brackets'],
    ['[zk1]:2181', '"zk1" is no host'],
    ['2001:db8::7:2181', 'an IPv6 address stands in brackets'],
    ['2001:db8:0:0:0:0:0:1:2181/a', 'an IPv6 address stands in brackets'],
    ['zookeeper://zk1:2181', 'no zookeeper:// in front of the servers'],
    ['zk://zk1:2181,zk2:2181/a', 'no zk:// in front of the servers'],
    ['zk1:2181/', 'a path does not end with "/"'],
    ['zk1:2181/a/', 'a path does not end with "/"'],
    ['zk1:2181//a', 'a name is empty'],
    ['zk1:2181/a//b', 'a name is empty'],
    ['zk1:2181/a/./b', '. is no name'],
    ['zk1:2181/..', '.. is no name'],
    ['zk1:2181/a\u{1f600}', 'a character that the servers refuse'],
    ['zk1:2181/a,zk2:2181/b', 'or is the same behind each'],
    ['zk1:2181/a,zk2:2181', 'or is the same behind each'],
    ['zk1:2181/a,zk2:2181,zk3:2181/a', 'or is the same behind each'],
    ['zk1:2181/a/,zk2:2181/a', 'or is the same behind each'],
    ['zk1:2181/a/,zk2:2181/a/', 'a path does not end with "/"'],
    ['zk1:2181/a,', 'a server is empty'],
    ['zk1:2181,/a', 'a server is empty'],
    ['zk1:2181/a, zk2:2181/a', '" zk2" is no host'],
    ['zk1:2181/a;zk2:2181/a', 'commas separate servers'],
    ['zk1:2181/a zk2:2181/a', 'it has no blanks'],
    ['zk1:2181/zookeeper/config', 'belongs to the servers'],
  ])('%j is refused: %s', (text, why) => {
    expect(() => parse(text)).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        setting: '--zookeeper',
        value: text,
        message: expect.stringContaining(why) as string,
      }),
    );
    expect(() => parse(text)).toThrow(/^--zookeeper: expected HOST:PORT\[,HOST:PORT\]\.\.\.\[\/CHROOT\] \(/);
  });
});

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
    ['digest:app:s3cret'] as never,
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
    expect(refusal?.message).toMatch(
      /^--zookeeper-auth: expected digest:USER:PASSWORD, .*, got "(digest:)?…"$/,
    );
    expect(JSON.stringify({ ...refusal })).not.toContain('s3cret');
  });
});
