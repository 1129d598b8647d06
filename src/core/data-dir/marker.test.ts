import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { newRoot, removeRoot } from '../../../test/support/data-dirs.js';
import { decodeMarker, writeMarker } from './marker.js';

let root: string;
beforeEach(() => {
  root = newRoot();
});
afterEach(() => removeRoot(root));

// As Camunda's own module wrote them.
const GOLDEN = [
  [
    '{"initializedAt":1795351126653,"version":5,"initializedFrom":3}',
    { initializedAt: 1795351126653, version: 5, initializedFrom: 3 },
  ],
  [
    '{"initializedAt":1795351126653,"version":1,"initializedFrom":null}',
    { initializedAt: 1795351126653, version: 1, initializedFrom: null },
  ],
] as const;

it.each(GOLDEN)('is byte for byte that of Camunda 8.9, and is read: %s', async (text, marker) => {
  await writeMarker(root, marker);
  expect(readFileSync(join(root, 'directory-initialized.json'), 'utf8')).toBe(text);
  expect(readdirSync(root)).toEqual(['directory-initialized.json']);
  expect(decodeMarker(text, marker.version)).toEqual(marker);
});

it('is read with further fields, in another order, and without where it came from', () => {
  const text = '{ "version": 2, "by": "me", "initializedAt": 0 }';
  expect(decodeMarker(text, 2)).toEqual({ initializedAt: 0, version: 2, initializedFrom: null });
});

it.each([
  ['{"initializedAt":1', 'is not JSON'],
  ['null', 'is of version undefined'],
  ['7', 'is of version undefined'],
  ['{"initializedAt":1,"version":9,"initializedFrom":3}', 'is of version 9'],
  ['{"initializedAt":1,"version":"5","initializedFrom":3}', 'is of version "5"'],
  ['{"version":5}', 'has no usable "initializedAt"'],
  ['{"initializedAt":1e300,"version":5}', 'has no usable "initializedAt"'],
  ['{"initializedAt":-1,"version":5}', 'has no usable "initializedAt"'],
])('is invalid when it is %s', (text, problem) => {
  expect(decodeMarker(text, 5)).toBe(problem);
});
