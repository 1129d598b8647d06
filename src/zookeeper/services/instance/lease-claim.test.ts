import { expect, it } from 'vitest';
import { claimIn } from './lease-claim.js';

it.each([
  ['its own fields', { nodeId: 1, version: 7 }, { nodeId: 1, version: 7 }],
  ['its own fields, without a version', { nodeId: 1 }, { nodeId: 1, version: null }],
  [
    'the texts in the metadata of Spring’s',
    { metadata: { nodeId: '1', version: '7' } },
    { nodeId: 1, version: 7 },
  ],
])('a payload names a node id in %s', (_, payload, claim) => {
  expect(claimIn(payload)).toEqual(claim);
});

it.each([
  [undefined],
  [null],
  ['text'],
  [7],
  [[1]],
  [{ nodeId: -1 }],
  [{ nodeId: 1.5 }],
  [{ nodeId: 'one' }],
  [{ nodeId: null }],
  [{ metadata: 'text' }],
  [{ nodeId: {} }],
])('a payload %j names none', (payload) => {
  expect(claimIn(payload)).toBeNull();
});
