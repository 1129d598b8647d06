import { Readable } from 'node:stream';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { IDEMPOTENT_METHODS, isInstanceFault, isReplayable, isUntouched } from './retry-rules.js';

function failure(code: string): Error {
  return Object.assign(new Error('failed'), { code });
}

it.each([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'ENOTFOUND',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'HPE_INVALID_CONSTANT',
])('takes %s for a fault of the instance', (code) => {
  expect([isInstanceFault(failure(code), false, null), isInstanceFault(failure(code), true, null)]).toEqual([
    true,
    true,
  ]);
});

it.each([
  'UND_ERR_ABORTED',
  'UND_ERR_INVALID_ARG',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'UND_ERR_INFO',
  'EMFILE',
  'EADDRNOTAVAIL',
])('does not take %s for one', (code) => {
  expect([isInstanceFault(failure(code), false, null), isInstanceFault(failure(code), true, null)]).toEqual([
    false,
    false,
  ]);
});

it('counts everything else that prevents a connection, but nothing that happens on a connection', () => {
  const certificate = failure('DEPTH_ZERO_SELF_SIGNED_CERT');
  expect([isInstanceFault(certificate, false, null), isInstanceFault(certificate, true, null)]).toEqual([
    true,
    false,
  ]);
  expect(isInstanceFault(new Error('no code'), false, null)).toBe(false);
  expect(isInstanceFault('no error', false, null)).toBe(false);
});

it('a failure of another realm, as Node’s are in a test of Jest, is judged by its code', () => {
  const refused = runInNewContext("Object.assign(new Error(), { code: 'ECONNREFUSED' })");
  expect(isInstanceFault(refused, true, null)).toBe(true);
});

it('takes an answer that is no HTTP for one, though undici 7 gives the error no code', () => {
  const garbage = Object.assign(new Error('Response does not match the HTTP/1.1 protocol'), {
    name: 'HTTPParserError',
    code: undefined,
  });
  expect(isInstanceFault(garbage, true, null)).toBe(true);
});

it('uses the errors of several addresses', () => {
  expect(
    isInstanceFault(new AggregateError([failure('ECONNREFUSED'), failure('ENETUNREACH')]), false, null),
  ).toBe(true);
});

it('does not blame an instance for the error of a body, whatever its code', async () => {
  const error = failure('ECONNRESET');
  const body = new Readable({ read() {} });
  const closed = new Promise((resolve) => body.once('error', resolve));
  body.destroy(error);
  await closed;
  expect(isInstanceFault(error, true, body)).toBe(false);
  expect(isInstanceFault(failure('ECONNRESET'), true, body)).toBe(true);
});

it('knows the idempotent methods of RFC 9110', () => {
  const methods = [
    'GET',
    'HEAD',
    'OPTIONS',
    'PUT',
    'DELETE',
    'TRACE',
    'POST',
    'PATCH',
    'CONNECT',
    'get',
    'QUERY',
  ];
  expect(methods.filter((method) => IDEMPOTENT_METHODS.has(method))).toEqual([
    'GET',
    'HEAD',
    'OPTIONS',
    'PUT',
    'DELETE',
    'TRACE',
  ]);
});

it('replays a body in memory, and none that is read once', () => {
  const form = new FormData();
  const lying = [
    undefined,
    null,
    '',
    'text',
    Buffer.from('text'),
    new Uint8Array(3).buffer,
    new Blob(['text']),
    form,
  ];
  expect(lying.every(isReplayable)).toBe(true);
  const read = [
    Readable.from(['text']),
    new Blob(['text']).stream(),
    (function* () {})(),
    (async function* () {})(),
    new URLSearchParams(),
  ];
  expect(read.some(isReplayable)).toBe(false);
});

it('hands a stream to another instance only while it has not been read', async () => {
  expect([isUntouched(Readable.from(['text'])), isUntouched('text'), isUntouched(null)]).toEqual([
    true,
    true,
    true,
  ]);
  const read = Readable.from(['text', 'more']);
  for await (const _chunk of read.iterator({ destroyOnReturn: false })) break;
  expect(isUntouched(read)).toBe(false);
  const gone = Readable.from(['text']);
  gone.destroy();
  expect(isUntouched(gone)).toBe(false);
});
