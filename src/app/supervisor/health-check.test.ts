import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { checkHealth, type HealthVerdict } from './health-check.js';

/** A check whose answers are in the test's hands: `true`, `false`, or `'hangs'` for none. */
function scene({ intervalMs = 2_000, threshold = 3, answer = false as boolean | 'hangs' } = {}) {
  const clock = new VirtualClock();
  const acts: string[] = [];
  const state: { answer: boolean | 'hangs'; underWay: number; most: number; probes: number } = {
    answer,
    underWay: 0,
    most: 0,
    probes: 0,
  };
  const probe = async (signal: AbortSignal) => {
    state.probes += 1;
    state.underWay += 1;
    state.most = Math.max(state.most, state.underWay);
    try {
      if (state.answer === 'hangs')
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      if (!state.answer) throw new Error('refused');
    } finally {
      state.underWay -= 1;
    }
  };
  const ending = new AbortController();
  const check = {
    ...{ probe, clock, intervalMs, threshold },
    onChange: (verdict: HealthVerdict) =>
      acts.push(
        `${clock.monotonic()} ${verdict.healthy ? 'up' : `down after ${verdict.failures}: ${verdict.problem}`}`,
      ),
    onWaiting: (problem: unknown) => acts.push(`${clock.monotonic()} waits: ${problem}`),
  };
  const ended = checkHealth(check, ending.signal);
  const stop = () => {
    ending.abort();
    return ended;
  };
  return { clock, acts, state, stop };
}

describe('a health check', () => {
  it('takes the first good answer at the start, and says once what it waits for', async () => {
    const { clock, acts, state } = scene();
    await clock.advance(5_000);
    state.answer = true;
    await clock.advance(10_000);
    expect(acts).toEqual(['0 waits: Error: refused', '6000 up']);
  });

  it('changes its mind only after several answers in a row, in both directions', async () => {
    const { clock, acts, state } = scene({ answer: true });
    await clock.advance(1_000);
    for (const answer of [false, false, true, false, false]) {
      state.answer = answer;
      await clock.advance(2_000);
    }
    expect(acts).toEqual(['0 up']);
    state.answer = false;
    await clock.advance(2_000);
    expect(acts.at(-1)).toBe('12000 down after 3: Error: refused');
    for (const answer of [true, true, false, true, true]) {
      state.answer = answer;
      await clock.advance(2_000);
    }
    expect(acts).toHaveLength(2);
    state.answer = true;
    await clock.advance(2_000);
    expect(acts.at(-1)).toBe('24000 up');
  });

  it('counts no answer within the interval as a bad one, and has one probe under way at a time', async () => {
    const { clock, acts, state } = scene({ intervalMs: 1_000, threshold: 2, answer: true });
    await clock.advance(500);
    state.answer = 'hangs';
    await clock.advance(3_000);
    expect(acts.at(-1)).toMatch(/^3000 down after 2: TimeoutError: no answer within 1000 ms$/);
    expect(state.most).toBe(1);
  });

  it('waits for no answer longer than 5 s', async () => {
    const { clock, acts, state } = scene({ intervalMs: 60_000, threshold: 1, answer: 'hangs' });
    await clock.advance(4_999);
    expect([state.underWay, acts]).toEqual([1, []]);
    await clock.advance(1);
    expect([state.underWay, acts]).toEqual([0, ['5000 waits: TimeoutError: no answer within 5000 ms']]);
  });

  it('reports nothing after its end, and leaves no sleeper behind', async () => {
    const { clock, acts, state, stop } = scene();
    state.answer = 'hangs';
    await clock.advance(2_000);
    const reported = acts.length;
    await stop();
    expect([state.underWay, clock.sleepers]).toEqual([0, 0]);
    const { probes } = state;
    state.answer = true;
    await clock.advance(60_000);
    expect([acts.length, state.probes]).toEqual([reported, probes]);
  });

  it.each([true, false])('reports no answer that comes in the tick of its end: %j', async (answer) => {
    const clock = new VirtualClock();
    const calls: string[] = [];
    const ending = new AbortController();
    const check = {
      ...{ clock, intervalMs: 1_000, threshold: 1 },
      probe: async () => {
        calls.push('ended');
        ending.abort();
        if (!answer) throw new Error('refused');
      },
      onChange: () => calls.push('changed'),
      onWaiting: () => calls.push('waits'),
    };
    void checkHealth(check, ending.signal);
    await clock.advance(5_000);
    expect(calls).toEqual(['ended']);
  });

  it('keeps no listener for its end but the one at work', async () => {
    const clock = new VirtualClock();
    const pauses = new Set<AbortSignal>();
    const sleep = clock.sleep.bind(clock);
    clock.sleep = (ms, signal) => {
      if (signal) pauses.add(signal);
      return sleep(ms, signal);
    };
    const nothing = () => undefined;
    const ending = new AbortController();
    const check = {
      clock,
      intervalMs: 100,
      threshold: 1,
      probe: async () => undefined,
      onChange: nothing,
      onWaiting: nothing,
    };
    const ended = checkHealth(check, ending.signal);
    await clock.advance(10_050);
    const listeners = [...pauses].map((signal) => getEventListeners(signal, 'abort').length);
    // The pause until the next probe.
    expect(listeners.filter((count) => count > 0)).toEqual([1]);
    ending.abort();
    await ended;
  });
});
