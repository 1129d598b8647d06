import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { isIdempotent, isReplayable, isUntouched } from './repeatable.js';

it('knows the idempotent methods of RFC 9110', () => {
  const methods = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE', 'POST', 'PATCH', 'CONNECT', 'get', 'QUERY'];
  expect(methods.filter(isIdempotent)).toEqual(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);
});

it('replays what lies in memory, and nothing that is read once', () => {
  const form = new FormData();
  const lying = [undefined, null, '', 'text', Buffer.from('text'), new Uint8Array(3).buffer, new Blob(['text']), form];
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

it('hands a stream to another instance only while nobody has read it', async () => {
  expect([isUntouched(Readable.from(['text'])), isUntouched('text'), isUntouched(null)]).toEqual([true, true, true]);
  const read = Readable.from(['text', 'more']);
  for await (const _chunk of read.iterator({ destroyOnReturn: false })) break;
  expect(isUntouched(read)).toBe(false);
  const gone = Readable.from(['text']);
  gone.destroy();
  expect(isUntouched(gone)).toBe(false);
});
