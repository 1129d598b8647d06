import { expect, it } from 'vitest';
import { tlsProblem } from './tls.js';

/**
 * The form in which Node reports an alert that breaks a write, as etcd 3.5 sends it over a client
 * certificate.
 */
const broken = (reason: string, alert: number) => {
  const message = `write EPROTO 806C:error:0A0:SSL routines:ssl3_read_bytes:${reason}:../deps/openssl/ssl/rec.c:1601:SSL alert number ${alert}\n`;
  return Object.assign(new Error(message), { code: 'EPROTO', syscall: 'write' });
};

it('a refused client certificate is named in one line, also where the alert breaks a write', () => {
  expect(tlsProblem(broken('sslv3 alert bad certificate', 42), false)).toBe(
    'the server wants a client certificate (sslv3 alert bad certificate)',
  );
  expect(tlsProblem(broken('tlsv1 alert unknown ca', 48), true)).toBe(
    'the server refuses the client certificate (tlsv1 alert unknown ca)',
  );
  expect(tlsProblem(broken('tlsv1 alert protocol version', 70), true)).toBe(
    'the TLS handshake failed (tlsv1 alert protocol version)',
  );
  expect(tlsProblem(Object.assign(new Error('write EPROTO'), { code: 'EPROTO' }), false)).toBeUndefined();
});
