import { expect, it } from 'vitest';
import { settled } from '../../../../test/support/virtual-clock.js';
import { TenureWidth } from './tenure-time.js';

it('a wider width reaches every listener once, and is adopted once all are done', async () => {
  const adopted: number[] = [];
  const heard: number[] = [];
  const width = new TenureWidth(8, (idWidth) => adopted.push(idWidth));
  const done: (() => void)[] = [];
  width.onWidth((idWidth) => void heard.push(idWidth));
  const forget = width.onWidth(() => new Promise<void>((resolve) => void done.push(resolve)));
  for (const idWidth of [7, 8, 9, 9, 10]) width.widen(idWidth);
  expect([width.value, heard, adopted]).toEqual([10, [9, 10], []]);
  // A listener that is done with a wider one makes none that are narrower.
  for (const finish of done.reverse()) {
    finish();
    await settled();
  }
  expect(adopted).toEqual([10]);
  forget();
  width.widen(11);
  expect([heard, adopted]).toEqual([
    [9, 10, 11],
    [10, 11],
  ]);
});
