import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import { FairShare } from './fair-share.js';

let clock: VirtualClock;
let done: number[];
let share: FairShare;

const run = (...numbers: readonly number[]) => {
  for (const number of numbers) share.run(() => done.push(number));
};

beforeEach(() => {
  clock = new VirtualClock();
  done = [];
  share = new FairShare(() => clock.sleep(0), 2);
});

describe('what is to be done', () => {
  it('is done at once as long as it is little', () => {
    run(1, 2);
    expect(done).toEqual([1, 2]);
  });

  it('waits beyond that until everything else has had its turn, in its order', async () => {
    run(1, 2, 3, 4, 5);
    expect(done).toEqual([1, 2]);
    await clock.advance(0);
    // What comes meanwhile comes last.
    expect(done.slice(0, 4)).toEqual([1, 2, 3, 4]);
    run(6, 7);
    await clock.advance(0);
    await clock.advance(0);
    expect(done).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('may hand in more, which waits for its own turn', async () => {
    share.run(() => run(1, 2, 3));
    expect(done).toEqual([1]);
    await clock.advance(0);
    expect(done).toEqual([1, 2, 3]);
  });

  it('leaves nothing to wait for when it has been done', async () => {
    run(1, 2, 3);
    for (let i = 0; i < 4; i += 1) await clock.advance(0);
    expect(clock.sleepers).toBe(0);
    run(4, 5, 6);
    await clock.advance(0);
    await clock.advance(0);
    expect(done).toEqual([1, 2, 3, 4, 5, 6]);
    expect(clock.sleepers).toBe(0);
  });
});
