import { describe, expect, it } from 'vitest';
import { StoreError } from '../lease-store.js';
import type { StoreRequest } from '../store-request.js';
import { classifyReply } from './classify-reply.js';

const url = 'azblob://acct1/leases';

/** An error as the SDK makes it of a reply. */
function reply(
  statusCode: number,
  code?: string,
  { date = 'Sat, 21 Nov 2026 12:00:00 GMT', message = 'Why not.\nRequestId:1\nTime:2' } = {},
) {
  const headers = { ...(code !== undefined && { 'x-ms-error-code': code }), date };
  const get = (from: Record<string, string>) => ({ headers: { get: (name: string) => from[name] } });
  const request = get({ 'x-ms-date': 'Sat, 21 Nov 2026 12:00:01 GMT' });
  return Object.assign(new Error(message), {
    name: 'RestError',
    statusCode,
    response: get(headers),
    request,
  });
}

function judged(operation: StoreRequest['operation'], error: unknown): string {
  try {
    return classifyReply(error, { operation, url, key: '0.json' });
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown;
    return `${thrown.fault}, ${thrown.outcome}: ${thrown.message}`;
  }
}

describe('a refusal of Blob Storage', () => {
  it.each([
    ['create', 409, 'BlobAlreadyExists', 'conflict'],
    ['replace', 412, 'ConditionNotMet', 'conflict'],
    ['replace', 404, 'BlobNotFound', 'conflict'],
    ['read', 404, 'BlobNotFound', 'absent'],
    ['discard', 404, 'BlobNotFound', 'absent'],
    [
      'read',
      404,
      undefined,
      'rejected, unknown: azblob://acct1/leases: reading 0.json: answered HTTP 404, which does not say what is missing',
    ],
    [
      'list',
      404,
      'ContainerNotFound',
      'missing, not-applied: azblob://acct1/leases: container does not exist (ContainerNotFound: Why not.)',
    ],
    ['create', 409, 'ContainerBeingDeleted', 'missing, not-applied'],
    [
      'replace',
      412,
      'LeaseIdMissing',
      'rejected, not-applied: azblob://acct1/leases: replacing 0.json: refused (LeaseIdMissing: Why not.)',
    ],
    ['create', 409, 'BlobImmutableDueToPolicy', 'rejected, not-applied'],
    [
      'create',
      403,
      'AuthorizationPermissionMismatch',
      'access denied (AuthorizationPermissionMismatch, needs blobs/write): Why not.',
    ],
    [
      'read',
      403,
      'AuthenticationFailed',
      'denied, not-applied: azblob://acct1/leases: reading 0.json: access denied (AuthenticationFailed): Why not.',
    ],
    ['read', 401, 'InvalidAuthenticationInfo', 'denied, not-applied'],
    [
      'create',
      503,
      'ServerBusy',
      'unavailable, unknown: azblob://acct1/leases: creating 0.json: answered HTTP 503 (ServerBusy: Why not.)',
    ],
    ['create', 500, 'OperationTimedOut', 'unavailable, unknown'],
    ['create', 501, 'NotImplemented', 'unsupported, not-applied'],
    ['create', 400, 'InvalidHeaderValue', 'rejected, not-applied'],
    ['list', 200, undefined, 'rejected, unknown'],
  ] as const)('to %s by %i %s means: %s', (operation, status, code, expected) => {
    expect(judged(operation, reply(status, code))).toContain(expected);
  });

  it('names the clock of this host where that is hours off', () => {
    const error = reply(403, 'AuthenticationFailed', { date: 'Sat, 21 Nov 2026 15:00:00 GMT' });
    expect(judged('read', error)).toMatch(
      /access denied \(AuthenticationFailed\): the clock of this host is wrong$/,
    );
  });

  it.each([
    ['AggregateAuthenticationError', undefined, 'denied, not-applied', 'AZURE_STORAGE_CONNECTION_STRING'],
    ['CredentialUnavailableError', undefined, 'denied, not-applied', 'Why not.'],
    ['AuthenticationError', 400, 'denied, not-applied', 'Why not.'],
    ['AuthenticationError', 503, 'unavailable, not-applied', 'Why not.'],
  ])('is none where there is no token: %s %s', (name, statusCode, expected, said) => {
    const error = Object.assign(new Error('Why not.\nMore.'), { name, ...(statusCode && { statusCode }) });
    expect(judged('create', error)).toContain(expected);
    expect(judged('create', error)).toContain(said);
  });

  it.each([
    ['ECONNREFUSED', 'unreachable, not-applied'],
    ['ENOTFOUND', 'unreachable, not-applied'],
    ['ECONNRESET', 'unreachable, unknown'],
    ['ETIMEDOUT', 'unreachable, unknown'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'rejected, not-applied'],
  ])('is none where the connection failed: %s', (code, expected) => {
    const error = Object.assign(new Error(''), { name: 'RestError', code });
    expect(judged('create', error)).toContain(expected);
    expect(judged('create', error)).toContain(code);
  });

  it('is none where another server answers a read: the SDK misses a header', () => {
    const error = new RangeError("File download response doesn't contain valid etag header");
    expect(judged('read', error)).toBe(
      `rejected, unknown: azblob://acct1/leases: reading 0.json: answered, but not as Blob Storage does: ${error.message}`,
    );
  });
});
