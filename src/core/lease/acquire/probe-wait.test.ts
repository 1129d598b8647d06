import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { ProbeWait } from './probe-wait.js';

const BEGUN = 50_000;

interface Scenery {
  readonly requestMs: number;
  /** What chance says each time, from 0 to 1. @default 0 */
  readonly chance?: number;
  readonly raced?: boolean;
  /** From the beginning. @default no limit */
  readonly untilMs?: number;
}

/** The pauses of a task until it takes the probe over, or its time is up. `takenOver` is what each look shows. */
async function waited(
  { requestMs, chance = 0, raced = false, untilMs = Number.POSITIVE_INFINITY }: Scenery,
  takenOver: (look: number) => number | undefined = () => 0,
) {
  const clock = new VirtualClock();
  await clock.advance(BEGUN);
  const pauses: number[] = [];
  clock.sleep = async (ms) => {
    pauses.push(ms);
    clock.freeze(ms);
  };
  const random = { next: () => chance, hex: () => '' };
  const options = { clock, random, raced, requestMs: () => requestMs, until: BEGUN + untilMs };
  const wait = new ProbeWait(options);
  let isEnough = false;
  const step = async () => {
    await wait.pause();
    isEnough = wait.looked(takenOver(pauses.length));
  };
  while (!isEnough && !wait.isOver && pauses.length < 20) await step();
  return { pauses, isEnough, isOver: wait.isOver, wait, step, clock };
}

describe('a task that waits for the probe of another one', () => {
  it.each([
    ['quick', 10, [660, 80, 160, 320, 640, 1_140]],
    ['usual', 20, [1_320, 160, 320, 640, 1_280, 240]],
    ['very slow', 1_000, [3_000, 8_000, 8_000, 1_000]],
  ])(
    'takes it over after three times its length, from 3 to 20 s, on a store that is %s',
    async (_, requestMs, expected) => {
      const { pauses, isEnough, isOver } = await waited({ requestMs });
      expect([pauses, isEnough, isOver]).toEqual([expected, true, false]);
    },
  );

  it('looks again less often, after five seconds at most', async () => {
    const { pauses } = await waited({ requestMs: 90, chance: 0 });
    expect(pauses.slice(1, 5)).toEqual([720, 1_440, 2_880, 5_000]);
  });

  it('waits again for as long after it has taken it over', async () => {
    const { pauses, step } = await waited({ requestMs: 20 });
    await step();
    expect(pauses.at(-1)).toBe(3_960);
  });

  it.each([
    ['alone', false, 3_960],
    ['with many', true, 1.5 * 3_960],
  ])(
    'that starts %s waits up to half as long again, and an eighth in each pause',
    async (_, raced, patienceMs) => {
      const { pauses } = await waited({ requestMs: 20, raced, chance: 1 });
      expect(pauses.slice(0, 4)).toEqual([1.125 * 1_320, 1.125 * 160, 1.125 * 320, 1.125 * 640]);
      const before = pauses.slice(0, -1).reduce((sum, ms) => sum + ms, 0);
      expect(pauses.at(-1)).toBeCloseTo(1.125 * (patienceMs - before));
    },
  );

  it('waits half as long again once a further task has taken it over', async () => {
    const { pauses, isEnough } = await waited({ requestMs: 20 }, (look) => (look < 6 ? undefined : 1));
    expect([pauses.slice(6), isEnough]).toEqual([[5_000, 940], true]);
  });

  it('does not take for news what its first look shows', async () => {
    const { pauses } = await waited({ requestMs: 20 }, () => 3);
    expect(pauses).toHaveLength(6);
  });

  it.each([
    [0, [3_000]],
    [10_000, [3_375, 6_625]],
  ])('gives up at the end of its time, which is 3 s at least: after %i ms', async (untilMs, expected) => {
    const { pauses, isEnough, isOver } = await waited({ requestMs: 1_000, chance: 1, untilMs });
    expect([pauses, isEnough, isOver]).toEqual([expected, false, true]);
  });
});
