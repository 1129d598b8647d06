import { expect, it } from 'vitest';
import { unanswered, unusedProxy } from './failures.js';
import { ReplyObserver } from './observed-reply.js';

it('a proxy that is set and not used is named', () => {
  expect(unusedProxy({})).toBe('');
  expect(unusedProxy({ https_proxy: 'http://proxy:3128' })).toBe(
    ' (https_proxy is set, and the store uses no proxy)',
  );
});

it('an answer that is no JSON, before anything was sent, is that of the source of the credentials, and may pass', () => {
  const request = { operation: 'read', url: 's3://bucket/p', key: '0.json' } as const;
  const error = new SyntaxError('Unexpected end of JSON input');
  const { signal } = new AbortController();
  expect(unanswered(error, request, new ReplyObserver(signal))).toMatchObject({
    fault: 'unreachable',
    outcome: 'not-applied',
    message: expect.stringMatching(
      /no usable answer from the source of the credentials \(.*\): Unexpected end/,
    ),
  });
});
