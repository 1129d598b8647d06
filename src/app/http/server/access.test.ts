import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../core/base/errors.js';
import { checkHost, checkWrite, pageAccess, writeAccess } from './access.js';

const token = { admits: async (given: string) => given === 'the-right-token' };
const request = (headers: Record<string, string> = {}, url = 'http://127.0.0.1:7070/v1/service/a/b') =>
  new Request(url, { method: 'DELETE', headers });

describe('who may change anything', () => {
  it('is anybody on this machine, where only this machine can reach the server', () => {
    for (const host of ['127.0.0.1', '::1', 'localhost'])
      expect(writeAccess({ host, port: 0 }, {}, '--http').kind).toBe('anybody');
  });

  it('excludes other machines without a token: such a server is refused, with the reason', () => {
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'example.com']) {
      expect(() => writeAccess({ host, port: 80 }, {}, '--http')).toThrow(ConfigError);
      expect(() => writeAccess({ host, port: 80 }, {}, '--http')).toThrow(
        /^--http: expected a loopback address .* could register/,
      );
      expect(writeAccess({ host, port: 80 }, { readOnly: true }, '--http').kind).toBe('nobody');
      expect(writeAccess({ host, port: 80 }, { token }, '--http').kind).toBe('token');
    }
  });

  it('is each client that has the token where there is one, on this machine too', async () => {
    const access = writeAccess({ host: '127.0.0.1', port: 80 }, { token }, '--http');
    await checkWrite(access, request({ authorization: 'Bearer the-right-token' }));
    await checkWrite(access, request({ authorization: 'bearer the-right-token' }));
    for (const authorization of [
      undefined,
      '',
      'Bearer',
      'Bearer x',
      'Basic the-right-token',
      'Bearer the-right-token x',
      'the-right-token',
    ]) {
      const refused = checkWrite(access, request(authorization === undefined ? {} : { authorization }));
      await expect(refused).rejects.toMatchObject({
        error: 'unauthorized',
        headers: { 'www-authenticate': expect.stringMatching(/^Bearer/) },
      });
    }
  });

  it('is no client where the server is read-only, whatever it sends', async () => {
    const access = writeAccess({ host: '127.0.0.1', port: 80 }, { readOnly: true, token }, '--http');
    await expect(
      checkWrite(access, request({ authorization: 'Bearer the-right-token' })),
    ).rejects.toMatchObject({ error: 'forbidden' });
  });

  it('is no page of another origin in a browser on this machine', async () => {
    const access = { kind: 'anybody' } as const;
    await checkWrite(access, request());
    await checkWrite(access, request({ origin: 'http://127.0.0.1:7070' }));
    for (const origin of [
      'null',
      'http://evil.example',
      'http://127.0.0.1:7071',
      'http://127.0.0.1',
      'file://',
      'x',
    ]) {
      await expect(checkWrite(access, request({ origin }))).rejects.toMatchObject({ error: 'forbidden' });
    }
  });
});

it('a page changes nothing unless that was asked for, and then only with a token', () => {
  expect([
    pageAccess(undefined, token, 'x').kind,
    pageAccess(false, undefined, 'x').kind,
    pageAccess(true, token, 'x').kind,
  ]).toEqual(['nobody', 'nobody', 'token']);
  expect(() => pageAccess(true, undefined, '--allow-writes')).toThrow(
    /^--allow-writes: expected a bearer token file with it/,
  );
});

describe('the host that a request names', () => {
  const names = new Set(['127.0.0.1']);

  it('may be any name of loopback, with any port', () => {
    for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1:7070', '127.1.2.3', '[::1]:80'])
      checkHost(request({ host }), names);
    checkHost(request({}, 'http://[::1]:80/'), names);
  });

  it('is refused when it is another one: a page could have its own name resolved to this machine', () => {
    for (const host of [
      'evil.example',
      'evil.example:7070',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '10.0.0.1',
      'localhost@evil.example',
      '',
    ]) {
      expect(() => checkHost(request({ host }), names)).toThrow(
        expect.objectContaining({ error: 'forbidden' }),
      );
    }
    expect(() => checkHost(request({}, 'http://evil.example/'), names)).toThrow(
      expect.objectContaining({ error: 'forbidden' }),
    );
    expect(() => checkHost(request({ host: 'localhost' }, 'http://evil.example/'), names)).toThrow(
      expect.objectContaining({ error: 'forbidden' }),
    );
  });

  it('may be the name that the server listens under', () => {
    checkHost(request({ host: 'box.internal:80' }, 'http://box.internal/'), new Set(['box.internal']));
  });
});
