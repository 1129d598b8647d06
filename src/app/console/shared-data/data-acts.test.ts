import { expect, it } from 'vitest';
import { actsOn } from './data-acts.js';

const text = (value: string, isShortened?: true) => ({
  type: 'String',
  value,
  ...(isShortened && { isShortened }),
});
type Head = Parameters<typeof actsOn>[0];
const datum = (kind: Head['kind'], facts: Partial<Head> = {}): Head => ({
  name: 'limits',
  lifespan: 'persistent',
  kind,
  ...facts,
});

it('offers to change scalars and the values of a map, and to remove elements', () => {
  const entry = { key: text('eu'), scalar: text('1') };
  expect([
    actsOn(datum('scalar'), { key: null, scalar: text('1') }),
    actsOn(datum('map'), entry),
    actsOn(datum('set'), { key: null, scalar: text('1') }),
    actsOn(datum('map', { lifespan: 'ephemeral' }), entry),
    actsOn(datum('map', { name: null }), entry),
    actsOn(datum('map'), { key: null, scalar: null }),
  ]).toEqual([
    { mayChange: true, mayRemove: false },
    { mayChange: true, mayRemove: true },
    { mayChange: false, mayRemove: true },
    ...Array(3).fill({ mayChange: false, mayRemove: false }),
  ]);
});

it('never offers to change a text that its field would not hold whole: the rest would be lost', () => {
  const values = [text('the beginning…', true), text('two\nlines'), text('two\r\nlines')];
  for (const scalar of values) {
    expect(actsOn(datum('scalar'), { key: null, scalar }).mayChange).toBe(false);
    expect(actsOn(datum('map'), { key: text('eu'), scalar })).toEqual({ mayChange: false, mayRemove: true });
  }
});

it('offers nothing for an entry whose key or value it does not know whole', () => {
  const nothing = { mayChange: false, mayRemove: false };
  expect(actsOn(datum('map'), { key: text('the beginning…', true), scalar: text('1') })).toEqual(nothing);
  expect(actsOn(datum('set'), { key: null, scalar: text('the beginning…', true) })).toEqual(nothing);
});
