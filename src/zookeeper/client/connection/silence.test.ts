import { describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { fallsSilent } from './session-activity.js';

const INTERVAL_MS = 1_000;

function connection(answers: (clock: VirtualClock) => boolean) {
  const clock = new VirtualClock();
  const over = new AbortController();
  let heardAt = clock.monotonic();
  let asked = 0;
  const result: { silent?: boolean } = {};
  void fallsSilent({
    clock,
    intervalMs: INTERVAL_MS,
    lastHeard: () => heardAt,
    ask: () => {
      asked += 1;
      if (answers(clock)) heardAt = clock.monotonic();
    },
    signal: over.signal,
  }).then((silent) => {
    result.silent = silent;
  });
  return {
    clock,
    over,
    result,
    asked: () => asked,
    hear: () => {
      heardAt = clock.monotonic();
    },
  };
}

describe('a connection', () => {
  it('is found dead two intervals after the server was heard last', async () => {
    const { clock, result } = connection(() => false);
    await clock.advance(2 * INTERVAL_MS - 1);
    expect(result.silent).toBeUndefined();
    await clock.advance(1);
    expect(result.silent).toBe(true);
  });

  it('lives as long as the server answers probes', async () => {
    const { clock, result, asked } = connection(() => true);
    await clock.advance(50 * INTERVAL_MS);
    expect(result.silent).toBeUndefined();
    expect(asked()).toBeGreaterThan(20);
  });

  it('costs no request while the server is heard anyway', async () => {
    const { clock, asked, hear } = connection(() => false);
    for (let i = 0; i < 50; i += 1) {
      await clock.advance(INTERVAL_MS / 2);
      hear();
    }
    expect(asked()).toBe(0);
  });

  it('is not given up after a pause of this process when the answer has been waiting to be read', async () => {
    const { clock, result, hear } = connection(() => false);
    await clock.advance(INTERVAL_MS);
    clock.freeze(60_000);
    // The timer fires, and only then the socket is read.
    const waking = clock.advance(0);
    await settled();
    hear();
    await waking;
    await clock.advance(1);
    expect(result.silent).toBeUndefined();
  });

  it('is watched no longer when it is over', async () => {
    const { clock, over, result } = connection(() => true);
    over.abort();
    await settled();
    expect(result.silent).toBe(false);
    expect(clock.sleepers).toBe(0);
  });
});
