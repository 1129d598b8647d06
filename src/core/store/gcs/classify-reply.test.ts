import { describe, expect, it } from 'vitest';
import { StoreError } from '../lease-store.js';
import type { StoreRequest } from '../store-request.js';
import { classifyNoToken, classifyReply } from './classify-reply.js';

const url = 'gs://leases';
const noon = Date.UTC(2026, 10, 21, 12, 0, 0);

const body = (code: number, reason: string) =>
  JSON.stringify({ error: { code, message: 'Why not.', errors: [{ reason }] } });

function judged(operation: StoreRequest['operation'], status: number, text: string): string {
  try {
    return classifyReply({ status, headers: {}, body: text }, { operation, url, key: '0.json' });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return `${error.fault}, ${error.outcome}: ${error.message}`;
  }
}

describe('a refusal of Cloud Storage', () => {
  it.each([
    ['create', 412, 'conditionNotMet', 'conflict'],
    ['replace', 412, 'conditionNotMet', 'conflict'],
    ['replace', 409, 'conflict', 'unavailable, unknown'],
    ['read', 404, 'notFound', 'absent'],
    ['discard', 404, 'notFound', 'absent'],
    [
      'list',
      404,
      'notFound',
      'missing, not-applied: gs://leases: bucket does not exist (HTTP 404, notFound: Why not.)',
    ],
    ['create', 404, 'notFound', 'missing, not-applied'],
    [
      'replace',
      429,
      'rateLimitExceeded',
      'unavailable, unknown: gs://leases: replacing 0.json: answered HTTP 429, rateLimitExceeded: Why not.',
    ],
    ['replace', 403, 'userRateLimitExceeded', 'unavailable, unknown'],
    ['create', 503, 'backendError', 'unavailable, unknown'],
    [
      'create',
      403,
      'forbidden',
      'denied, not-applied: gs://leases: creating 0.json: access denied (HTTP 403, forbidden: Why not.; it needs storage.objects.create)',
    ],
    ['read', 401, 'authError', 'denied, not-applied'],
    ['create', 400, 'invalid', 'rejected, not-applied'],
    ['create', 501, 'notImplemented', 'unsupported, not-applied'],
  ] as const)('to %s by %i %s means: %s', (operation, status, reason, expected) => {
    expect(judged(operation, status, body(status, reason))).toContain(expected);
  });

  it('by something else in front of it is no missing bucket', () => {
    expect(judged('list', 404, '<html>not here')).toContain('rejected, unknown');
    expect(judged('create', 302, '')).toContain('rejected, not-applied');
  });
});

describe('a request without a token', () => {
  const failed = (fields: object) => {
    const { fault, outcome, message } = classifyNoToken(
      Object.assign(new Error('Why not.'), fields),
      { operation: 'read', url },
      noon,
    );
    return `${fault}, ${outcome}: ${message}`;
  };
  const response = (status: number, date: number) => ({
    response: { status, headers: new Headers({ date: new Date(date).toUTCString() }) },
  });

  it.each([
    [{}, 'denied, not-applied: gs://leases: reading: no Google credentials found: Why not.'],
    [
      { code: 'ENOTFOUND' },
      'unreachable, not-applied: gs://leases: reading: not sent, no Google credentials found: Why not.',
    ],
    [
      { cause: { name: 'AbortError' } },
      'unreachable, not-applied: gs://leases: reading: not sent, no Google credentials found: Why not.',
    ],
    [{ code: 'ENOENT', path: '/key.json' }, 'denied, not-applied: gs://leases: reading: no Google'],
    [
      { code: 'ERR_OSSL_UNSUPPORTED' },
      'denied, not-applied: gs://leases: reading: no Google credentials found: the private key cannot be used: Why not.',
    ],
    [response(503, noon), 'unavailable, not-applied'],
    [
      response(400, noon),
      'denied, not-applied: gs://leases: reading: no Google credentials found: Why not. (HTTP 400)',
    ],
    [response(400, noon + 3 * 3_600_000), 'Why not. (HTTP 400): the clock of this host is wrong'],
  ])('for %o means %s', (fields, expected) => {
    expect(failed(fields)).toContain(expected);
  });
});
