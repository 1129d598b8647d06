import { beforeEach, describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../test/support/virtual-clock.js';
import { SharedLook } from './shared-look.js';

let clock: VirtualClock;
let looks: { readonly end: () => void; readonly signal: AbortSignal }[];
let shared: SharedLook;

beforeEach(() => {
  clock = new VirtualClock();
  looks = [];
  const look = (signal: AbortSignal) => new Promise<void>((end) => looks.push({ end, signal }));
  shared = new SharedLook(look, clock, (tookMs) => Math.max(1_000, 2 * tookMs));
});

describe('a look', () => {
  it('is had by all who ask while it is under way, and another one by those who ask once it has ended, whenever that is', async () => {
    for (let moment = 0; moment < 12; moment += 1) {
      looks.length = 0;
      const first = shared.take();
      const too = shared.take();
      await settled();
      expect(looks).toHaveLength(1);
      looks[0]?.end();
      for (let i = 0; i < moment; i += 1) await Promise.resolve();
      const second = shared.take();
      await Promise.all([first, too]);
      const third = shared.take();
      await settled();
      // Never two of them at once.
      expect(looks.filter(({ signal }) => signal.aborted)).toEqual([]);
      expect(looks.length).toBeLessThanOrEqual(2);
      for (const { end } of looks) end();
      await Promise.all([second, third]);
    }
  });

  it('that was given up is followed by a rest, the longer the longer it was under way', async () => {
    for (const [tookMs, restMs] of [
      [0, 1_000],
      [3_000, 6_000],
    ] as const) {
      looks.length = 0;
      const abort = new AbortController();
      const given = shared.take(abort.signal);
      await clock.advance(tookMs);
      abort.abort(new Error('enough'));
      await expect(given).rejects.toThrow('enough');
      expect(looks[0]?.signal.aborted).toBe(true);
      // Those who give up while it rests do not make it longer.
      for (let i = 0; i < 9; i += 1) {
        const soon = new AbortController();
        const asked = shared.take(soon.signal).catch(() => undefined);
        await clock.advance(restMs / 10);
        soon.abort();
        await asked;
      }
      const next = shared.take();
      await clock.advance(restMs / 10 - 1);
      expect(looks).toHaveLength(1);
      await clock.advance(1);
      expect(looks).toHaveLength(2);
      looks[1]?.end();
      await next;
    }
  });
});
