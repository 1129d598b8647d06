import { afterEach, expect, it, vi } from 'vitest';
import type { StoreError } from '../lease-store.js';
import { classifyReply } from './classify-reply.js';

afterEach(() => void vi.unstubAllEnvs());

function failure(error: Error, { sent, endpoint }: { sent: boolean; endpoint?: string }): string {
  const request = { operation: 'list', url: 's3://bucket/orders', endpoint } as const;
  const unseen = { status: undefined, headers: {}, signedAt: undefined, signedBy: undefined };
  try {
    return classifyReply(error, request, { ...unseen, sent });
  } catch (failed) {
    return (failed as StoreError).message;
  }
}

it('asks for the region where AWS has no server of that name, and not where the endpoint is given', () => {
  const text = 'getaddrinfo ENOTFOUND bucket.s3.eu-centrall-1.amazonaws.com';
  const error = Object.assign(new Error(text), { code: 'ENOTFOUND', syscall: 'getaddrinfo' });
  expect(failure(error, { sent: true })).toBe(
    `s3://bucket/orders: listing: cannot connect: ${text} (is the region right?)`,
  );
  expect(failure(error, { sent: true, endpoint: 'http://nowhere' })).toBe(
    `s3://bucket/orders: listing: endpoint http://nowhere: cannot connect: ${text}`,
  );
});

it('names the profile of AWS_PROFILE where the chain finds no credentials, and else where they may come from', () => {
  const error = Object.assign(new Error('none'), { name: 'CredentialsProviderError' });
  vi.stubEnv('AWS_PROFILE', 'prod');
  expect(failure(error, { sent: false })).toBe(
    's3://bucket/orders: listing: no AWS credentials found (AWS_PROFILE is prod: is that profile in ~/.aws/config?): none',
  );
  vi.stubEnv('AWS_PROFILE', '');
  expect(failure(error, { sent: false })).toContain('found (give the task a role, or set AWS_PROFILE, or');
});

it('names the source of the credentials where it does not answer, cannot be reached, or answers 5xx', () => {
  vi.stubEnv('AWS_PROFILE', '');
  vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://169.254.170.23/v1/credentials');
  const source = 'the AWS_CONTAINER_CREDENTIALS_FULL_URI at 169.254.170.23';
  const said = `s3://bucket/orders: listing: no usable answer from the source of the credentials (${source}): `;
  const late = new DOMException('no answer within 5000 ms', 'TimeoutError');
  expect(failure(late, { sent: false })).toBe(`${said}no answer within 5000 ms`);
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  expect(failure(refused, { sent: false })).toBe(`${said}connect ECONNREFUSED`);
  const down = Object.assign(new Error('busy'), {
    name: 'InternalFailure',
    $metadata: { httpStatusCode: 503 },
  });
  expect(failure(down, { sent: false })).toBe(`${said}InternalFailure, HTTP 503`);
});

it('says that a proxy is not used where the server cannot be reached, or does not answer', () => {
  vi.stubEnv('HTTPS_PROXY', 'http://user:pass@proxy:3128');
  const hint = '(HTTPS_PROXY is set, and the store uses no proxy)';
  const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND h'), {
    code: 'ENOTFOUND',
    syscall: 'getaddrinfo',
  });
  expect(failure(unknown, { sent: true })).toContain(hint);
  expect(failure(new DOMException('no answer within 5000 ms', 'TimeoutError'), { sent: true })).toBe(
    `s3://bucket/orders: listing: no answer within 5000 ms ${hint}`,
  );
});
