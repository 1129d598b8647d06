import { expect, it } from 'vitest';
import { aheadOf } from './page-clock.js';

const at = (time: string) => Date.parse(`2026-11-30T${time}Z`);
const DATE = 'Mon, 30 Nov 2026 12:00:00 GMT';

it.each([
  ['12:10:00', -600_000],
  ['11:50:00', 600_000],
])('a browser that says %s when it is noon at the server shows the server’s times', (time, ahead) => {
  expect(Math.abs(aheadOf(DATE, at(time)) - ahead)).toBeLessThanOrEqual(500);
});

it.each(['11:59:59.000', '12:00:00.999', '12:00:02.400'])(
  'a clock that a second or two explains is not corrected: %s',
  (time) => {
    expect(aheadOf(DATE, at(time))).toBe(0);
  },
);

it.each([null, 'soon'])('an answer without a time corrects nothing: %s', (date) => {
  expect(aheadOf(date, at('12:00:00'))).toBe(0);
});
