import { expect, it } from 'vitest';
import { Listeners } from './listeners.js';
import { until } from './until.js';

it('resolves to the first value that is found, now or at a change, and listens no longer', async () => {
  const changes = new Listeners<void>();
  let value: number | undefined;
  let asked = 0;
  const waiting = until(
    (listener) => changes.add(listener),
    () => {
      asked += 1;
      return value;
    },
    (found) => found,
  );
  changes.notify();
  expect(changes.size).toBe(1);
  value = 0;
  changes.notify();
  value = 2;
  changes.notify();
  expect([await waiting, asked]).toEqual([0, 3]);
  expect(changes.size).toBe(0);
  const atOnce = until(
    (listener) => changes.add(listener),
    () => value,
    (found) => found,
  );
  expect(await atOnce).toBe(2);
});

it('listens no longer once its bound has ended the wait', async () => {
  const changes = new Listeners<void>();
  const waiting = until(
    (listener) => changes.add(listener),
    () => undefined,
    () => Promise.reject(new Error('late')),
  );
  await expect(waiting).rejects.toThrow('late');
  expect(changes.size).toBe(0);
});
