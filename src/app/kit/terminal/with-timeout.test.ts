import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { callWithTimeout } from '../../../core/base/abort.js';
import { withTimeout } from './with-timeout.js';

function scene() {
  const clock = new VirtualClock();
  const warnings: unknown[] = [];
  return {
    clock,
    warnings,
    options: {
      limitMs: 500,
      clock,
      what: 'the release',
      log: { warn: (text: unknown) => void warnings.push(text) },
    },
  };
}

describe('what tidies up', () => {
  it('is waited for, without a word', async () => {
    const { clock, warnings, options } = scene();
    await withTimeout(options, Promise.resolve());
    expect([warnings, clock.sleepers]).toEqual([[], 0]);
  });

  it('is not waited for any longer than that, and warned of', async () => {
    const { clock, warnings, options } = scene();
    const waiting = withTimeout(options, new Promise(() => {}));
    await clock.advance(500);
    await waiting;
    expect(warnings).toEqual(['the release took more than 500 ms: not waiting for it']);
  });

  it('may fail, which is warned of', async () => {
    const { clock, warnings, options } = scene();
    await withTimeout(options, Promise.reject(new Error('gone')));
    expect([warnings, clock.sleepers]).toEqual([['the release failed: gone'], 0]);
  });
});

describe('a call with a timeout', () => {
  it('gives its result, and leaves no timer and no listener behind', async () => {
    const clock = new VirtualClock();
    const caller = new AbortController();
    expect(await callWithTimeout({ clock, timeoutMs: 500, signal: caller.signal }, async () => 7)).toBe(7);
    expect([clock.sleepers, getEventListeners(caller.signal, 'abort').length]).toEqual([0, 0]);
  });

  it.each([
    ['after its time', 'no answer within 500 ms'],
    ['when the caller gives up', 'enough'],
  ])('ends %s, also where the work ignores its signal', async (when, message) => {
    const clock = new VirtualClock();
    const caller = new AbortController();
    let given: AbortSignal | undefined;
    const called = callWithTimeout({ clock, timeoutMs: 500, signal: caller.signal }, (signal) => {
      given = signal;
      return new Promise(() => {});
    });
    called.catch(() => undefined);
    if (when === 'after its time') await clock.advance(500);
    else caller.abort(new Error('enough'));
    await expect(called).rejects.toThrow(message);
    expect(given?.reason).toMatchObject({ message });
    await settled();
    expect(clock.sleepers).toBe(0);
  });
});
