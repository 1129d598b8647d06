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
    `s3://bucket/orders: listing: \`endpoint\` http://nowhere: cannot connect: ${text}`,
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
