import { beforeEach, describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { ScanLoop } from './scan-loop.js';

let clock: VirtualClock;
let scans: { readonly end: (pauseMs: number) => void; readonly signal: AbortSignal }[];
let loop: ScanLoop;
let underWay: number;
let most: number;

beforeEach(() => {
  clock = new VirtualClock();
  scans = [];
  underWay = 0;
  most = 0;
  let pauseMs = 0;
  const scan = async (signal: AbortSignal) => {
    underWay += 1;
    most = Math.max(most, underWay);
    try {
      await new Promise<void>((resolve, reject) => {
        const end = (ms: number) => {
          pauseMs = ms;
          resolve();
        };
        scans.push({ end, signal });
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    } finally {
      underWay -= 1;
    }
  };
  loop = new ScanLoop(scan, () => pauseMs, clock);
});

describe('a scan', () => {
  it('is shared by all callers while it is under way; callers after its end get another one, whenever that is', async () => {
    for (let moment = 0; moment < 12; moment += 1) {
      scans.length = 0;
      const [first, too] = [loop.next(), loop.next()];
      await clock.advance(1);
      expect(scans).toHaveLength(1);
      scans[0]?.end(1);
      for (let i = 0; i < moment; i += 1) await Promise.resolve();
      const second = loop.next();
      await Promise.all([first, too]);
      await clock.advance(1);
      expect([most, scans.length <= 2]).toEqual([1, true]);
      for (const { end } of scans) end(1);
      await second;
    }
  });

  it('follows the previous one after its pause, as long as there are users', async () => {
    const release = loop.use();
    await settled();
    scans[0]?.end(3_000);
    await clock.advance(2_999);
    expect([scans.length, loop.isFresh]).toEqual([1, true]);
    await clock.advance(1);
    expect(scans).toHaveLength(2);
    release();
    release();
    await clock.advance(60_000);
    expect([scans.length, scans[1]?.signal.aborted, loop.isFresh]).toEqual([2, true, false]);
  });

  it('that was aborted is followed by a pause, the longer the longer it was under way, ten seconds at most', async () => {
    for (const [tookMs, pauseMs] of [
      [0, 1_000],
      [3_000, 6_000],
      [60_000, 10_000],
    ] as const) {
      scans.length = 0;
      const abort = new AbortController();
      const given = loop.next(abort.signal);
      await clock.advance(tookMs);
      abort.abort(new Error('enough'));
      await expect(given).rejects.toThrow('enough');
      expect(scans[0]?.signal.aborted).toBe(true);
      // Callers that give up during the pause do not make it longer.
      for (let i = 0; i < 9; i += 1) {
        const soon = new AbortController();
        const asked = loop.next(soon.signal).catch(() => undefined);
        await clock.advance(pauseMs / 10);
        soon.abort();
        await asked;
      }
      const next = loop.next();
      await clock.advance(pauseMs / 10 - 1);
      expect(scans).toHaveLength(1);
      await clock.advance(1);
      expect(scans).toHaveLength(2);
      scans[1]?.end(0);
      await next;
      await clock.advance(10_000);
    }
  });
});
