import { describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { type CallLimit, CallLimits } from './call-limits.js';

const LATE = new Error('late');
const never = () => new Promise<never>(() => undefined);

function scene() {
  const clock = new VirtualClock();
  const limits = new CallLimits(clock, LATE);
  const ended: [at: number, name: string, reason: unknown][] = [];
  const begin = (name: string, timeoutMs: number, signal?: AbortSignal): CallLimit => {
    const limit = limits.begin(clock.monotonic(), timeoutMs, signal);
    limit.bound(never).catch((reason) => {
      ended.push([clock.monotonic(), name, reason]);
      limits.release(limit);
    });
    return limit;
  };
  return { clock, limits, ended, begin };
}

describe('the deadlines of calls', () => {
  it('are kept to the millisecond by one timer, in whatever order they come', async () => {
    const { clock, ended, begin } = scene();
    const timeouts = Array.from({ length: 200 }, (_, i) => 1 + ((i * 37) % 101) * 10);
    for (const timeoutMs of timeouts) begin('a', timeoutMs);
    expect(clock.sleepers).toBeLessThanOrEqual(2);
    await settled();
    expect(clock.sleepers).toBe(1);
    await clock.advance(2_000);
    expect(ended.map(([at]) => at)).toEqual([...timeouts].sort((a, b) => a - b));
    expect(clock.sleepers).toBe(0);
  });

  it('count from the beginning of each call, also after others have ended', async () => {
    const { clock, limits, ended, begin } = scene();
    limits.release(begin('answered', 100));
    await clock.advance(60);
    begin('b', 100);
    await clock.advance(60);
    begin('c', 30);
    await clock.advance(200);
    expect(ended).toEqual([
      [150, 'c', LATE],
      [160, 'b', LATE],
    ]);
  });

  it('pass for a process that was paused as soon as it continues', async () => {
    const { clock, ended, begin } = scene();
    begin('a', 100);
    begin('b', 5_000);
    clock.freeze(10_000);
    await clock.advance(0);
    expect(ended).toEqual([
      [10_000, 'a', LATE],
      [10_000, 'b', LATE],
    ]);
  });
});

describe('a call that is given up', () => {
  it('ends with the reason of its signal, and leaves nothing at a signal that many calls share', async () => {
    const { clock, limits, ended, begin } = scene();
    const giving = new AbortController();
    let listeners = 0;
    const add = giving.signal.addEventListener.bind(giving.signal);
    const remove = giving.signal.removeEventListener.bind(giving.signal);
    giving.signal.addEventListener = (...given: Parameters<typeof add>) => {
      listeners += 1;
      add(...given);
    };
    giving.signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...given);
    };
    const calls = Array.from({ length: 50 }, () => begin('answered', 1_000, giving.signal));
    expect(listeners).toBe(1);
    for (const call of calls) limits.release(call);
    expect(listeners).toBe(0);
    begin('given up', 1_000, giving.signal);
    begin('continues', 1_000);
    giving.abort('enough');
    await settled();
    expect(ended).toEqual([[0, 'given up', 'enough']]);
    await clock.advance(1_000);
    expect(ended).toHaveLength(2);
    expect(clock.sleepers).toBe(0);
  });

  it('is not begun if its signal was aborted before, or the client is closed', async () => {
    const { clock, limits } = scene();
    let begun = 0;
    const work = async () => {
      begun += 1;
    };
    await expect(limits.begin(0, 1_000, AbortSignal.abort('before')).bound(work)).rejects.toBe('before');
    limits.close('closed');
    await expect(limits.begin(0, 1_000, undefined).bound(work)).rejects.toBe('closed');
    expect(begun).toBe(0);
    await settled();
    expect(clock.sleepers).toBe(0);
  });

  it('ends with the client, and so does the timer', async () => {
    const { clock, limits, ended, begin } = scene();
    begin('a', 1_000);
    begin('b', 50);
    limits.close('closed');
    await settled();
    expect(ended.map(([, name, reason]) => [name, reason])).toEqual([
      ['a', 'closed'],
      ['b', 'closed'],
    ]);
    expect(clock.sleepers).toBe(0);
  });
});
