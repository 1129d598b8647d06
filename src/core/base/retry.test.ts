import { expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { backoffMs, type RetryPolicy, retrying } from './retry.js';

const random = { next: () => 0.5, hex: () => '' };
const away = () => Promise.reject(new Error('away'));

/** A policy that retries everything, and the times and numbers of the attempts, all of which fail. */
function failing(policy: Partial<RetryPolicy> = {}) {
  const clock = new VirtualClock();
  const retry = retrying({ clock, random, mayPass: () => true, ...policy });
  const times: number[] = [];
  const attempt = () => {
    times.push(clock.monotonic());
    return away();
  };
  return { clock, retry, times, attempt };
}

it('makes no attempt at or after the end, and the last ones close to it', async () => {
  const { clock, retry, times, attempt } = failing({ until: 1_000 });
  const failure = expect(retry(attempt)).rejects.toThrow('away');
  await clock.advance(5_000);
  await failure;
  expect(times.at(-1)).toBeLessThan(1_000);
  expect(times.at(-1)).toBeGreaterThan(900);
  expect(times.length).toBeGreaterThan(4);
});

it('makes no further attempt when the process was paused past the end', async () => {
  const { clock, retry, times, attempt } = failing({ until: 1_000 });
  const failure = expect(retry(attempt)).rejects.toThrow('away');
  await clock.advance(0);
  clock.freeze(1_000);
  await clock.advance(1_000);
  await failure;
  expect(times).toEqual([0]);
});

it('doubles its pauses, makes some further attempts at once, and reports what is followed by another', async () => {
  const pauses: number[] = [];
  const onFailure = (_: Error, attempt: number, pauseMs: number) => void pauses.push(attempt, pauseMs);
  const { clock, retry, attempt } = failing({
    ...{ onFailure, backoff: { first: 100, max: 300, atOnce: 1 } },
    mayPass: () => pauses.length < 8,
  });
  const failure = expect(retry(attempt)).rejects.toThrow('away');
  await clock.advance(5_000);
  await failure;
  expect(pauses).toEqual([1, 0, 2, 75, 3, 150, 4, 225]);
});

it('takes a TypeError for a mistake in the code, and does not retry it', async () => {
  const { clock, retry } = failing();
  const attempt = () => Promise.reject(new TypeError('fetch failed'));
  await expect(retry(attempt)).rejects.toThrow('fetch failed');
  expect(clock.sleepers).toBe(0);
});

it('throws a failure that does not pass at once', async () => {
  const { clock, retry, times, attempt } = failing({ mayPass: () => false });
  await expect(retry(attempt)).rejects.toThrow('away');
  expect(times).toEqual([0]);
  expect(clock.sleepers).toBe(0);
});

it('counts its time from each call on, and the attempts of each call from 1 on', async () => {
  const { clock, retry } = failing({ timeoutMs: 1_000 });
  for (const begun of [0, 10_000]) {
    await clock.advance(begun - clock.monotonic());
    const numbers: number[] = [];
    const value = retry(async (_, number) => {
      numbers.push(number);
      return number < 3 ? away() : 'done';
    });
    await clock.advance(900);
    expect(await value).toBe('done');
    expect(numbers).toEqual([1, 2, 3]);
  }
});

it('gives out the value of an attempt that succeeds while its signal aborts', async () => {
  const over = new AbortController();
  const { retry } = failing({ signal: over.signal });
  const value = retry(async ({ signal }) => {
    over.abort('over');
    return signal?.reason;
  });
  expect(await value).toBe('over');
});

it('rejects with the reason of its signal, whatever that is: before, in an attempt and in a pause', async () => {
  const before = failing({ signal: AbortSignal.abort('before') });
  await expect(before.retry(before.attempt)).rejects.toBe('before');
  expect(before.times).toEqual([]);

  const during = new AbortController();
  const { retry } = failing({ signal: during.signal });
  const given = retry(() => {
    during.abort('during');
    return Promise.reject(new Error('given up'));
  });
  await expect(given).rejects.toBe('during');

  const pause = new AbortController();
  const { clock, ...rest } = failing({ signal: pause.signal });
  const interrupted = expect(rest.retry(rest.attempt)).rejects.toBe('pause');
  await clock.advance(10);
  expect(clock.sleepers).toBe(1);
  pause.abort('pause');
  await interrupted;
  expect(clock.sleepers).toBe(0);
  expect(rest.times).toEqual([0]);
});

it('doubles the pause with each failure up to the longest, and jitter shortens it by up to half', () => {
  const pauses = (chance: number) =>
    [1, 2, 3, 4, 5_000].map((failures) =>
      backoffMs({ first: 100, max: 500 }, failures, { next: () => chance }),
    );
  expect(pauses(0)).toEqual([50, 100, 200, 250, 250]);
  expect(pauses(0.999999).map(Math.round)).toEqual([100, 200, 400, 500, 500]);
});

it('makes no pause before any failure, nor after those that are followed by an attempt at once', () => {
  const pauses = [0, 1, 2, 3].map((failures) =>
    backoffMs({ first: 100, max: 500, atOnce: 1 }, failures, { next: () => 0 }),
  );
  expect(pauses).toEqual([0, 0, 50, 100]);
});
