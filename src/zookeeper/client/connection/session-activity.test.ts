import { expect, it } from 'vitest';
import { SessionActivity } from './session-activity.js';

const T = 12_000;

function openedAt(askedAt: number): SessionActivity {
  const activity = new SessionActivity();
  activity.begin(askedAt, T);
  return activity;
}

it('counts the request to connect at once, and others when their answers are there', () => {
  const activity = openedAt(1_000);
  activity.answered(2_000, 2_700);
  expect([0, 2_699, 2_700].map((at) => activity.heardBy(at))).toEqual([1_000, 1_000, 2_000]);
});

it('knows nothing before there is a connection', () => {
  expect(new SessionActivity().heardBy(Number.POSITIVE_INFINITY)).toBe(Number.NEGATIVE_INFINITY);
});

it('forgets requests to another server when a new connection begins', () => {
  const activity = openedAt(0);
  activity.answered(5_000, 5_010);
  activity.begin(4_000, T);
  expect(activity.heardBy(Number.POSITIVE_INFINITY)).toBe(4_000);
});

it('covers a whole time-out for any number of requests, and is at most a 48th of it behind', () => {
  const activity = openedAt(0);
  for (let sentAt = 1; sentAt <= 5 * T; sentAt += 1) activity.answered(sentAt, sentAt);
  for (const at of [4 * T, 4.5 * T, 5 * T]) {
    expect(activity.heardBy(at)).toBeLessThanOrEqual(at);
    expect(activity.heardBy(at)).toBeGreaterThanOrEqual(at - T / 48);
  }
});
