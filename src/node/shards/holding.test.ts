import { describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { Holding, type ShardEvent, type StartShard, type StopShard, StopTimeoutError } from './holding.js';

const START_MS = 1_000;
const STOP_MS = 2_000;
const NEVER = new Promise<never>(() => undefined);

/** The work of shard 3 under token 7. */
function holdingOf(start: StartShard) {
  const clock = new VirtualClock();
  const events: ShardEvent[] = [];
  const running = new Uint8Array(4);
  const calls = { failed: 0, ended: 0, sleeps: 0 };
  const sleep = clock.sleep.bind(clock);
  clock.sleep = (...args) => {
    calls.sleeps += 1;
    return sleep(...args);
  };
  const options = { clock, start, startTimeoutMs: START_MS, stopTimeoutMs: STOP_MS, running };
  const emit = (event: ShardEvent) => void events.push(event);
  const onFailed = () => {
    calls.failed += 1;
  };
  const onEnded = () => {
    calls.ended += 1;
  };
  const holding = new Holding(3, 7, { ...options, emit }, onFailed, onEnded);
  return { clock, holding, events, running, calls };
}

const ofThis = { shard: 3, token: 7 };

describe('the work of a shard', () => {
  it.each<[string, StartShard]>([
    ['a function that stops it', () => () => undefined],
    ['nothing', () => undefined],
  ])('begins at once where its start returns %s, and reports each step', async (_, start) => {
    const { clock, holding, events, running, calls } = holdingOf(start);
    await settled();
    expect([holding.state, holding.isAborted, running[3], calls.sleeps]).toEqual(['running', false, 1, 0]);
    await clock.advance(500);
    const stopped = holding.stop();
    expect([holding.state, running[3]]).toEqual(['stopping', 0]);
    expect(holding.stop()).toBe(stopped);
    await stopped;
    expect(events).toEqual([
      { ...ofThis, type: 'started' },
      { ...ofThis, type: 'stopping', deadline: 500 + STOP_MS },
      { ...ofThis, type: 'stopped' },
    ]);
    expect([calls.failed, calls.ended, holding.isAborted]).toEqual([0, 1, false]);
  });

  it('does not run where it is stopped before its start has resolved, and is stopped then', async () => {
    let isStopped = false;
    let begins: (stop: StopShard) => void = () => undefined;
    const { clock, holding, events, running } = holdingOf(
      () =>
        new Promise((resolve) => {
          begins = resolve;
        }),
    );
    await clock.advance(100);
    const stopped = holding.stop();
    begins(() => {
      isStopped = true;
    });
    await stopped;
    expect([isStopped, running[3], holding.runsSince]).toEqual([true, 0, Number.POSITIVE_INFINITY]);
    expect(events.map(({ type }) => type)).toEqual(['stopping', 'stopped']);
  });

  it('has failed to stop where its start does not settle while it is stopped', async () => {
    const { clock, holding, events, calls } = holdingOf(() => NEVER);
    await clock.advance(500);
    void holding.stop();
    await clock.advance(10_000);
    expect(events).toEqual([
      { ...ofThis, type: 'stopping', deadline: 500 + STOP_MS },
      { ...ofThis, type: 'failed', step: 'stop', error: expect.any(StopTimeoutError) },
    ]);
    expect(events[1]).toMatchObject({ error: { message: 'shard 3 has not stopped within 2000 ms' } });
    expect([calls.ended, holding.isAborted]).toEqual([0, true]);
  });

  it('has ended once a stop that took too long resolves', async () => {
    const { clock, holding, events, calls } = holdingOf(() => () => clock.sleep(5_000));
    await settled();
    void holding.stop();
    await clock.advance(4_999);
    expect([calls.ended, holding.isAborted]).toEqual([0, true]);
    await clock.advance(1);
    expect(events.map(({ type }) => type)).toEqual(['started', 'stopping', 'failed', 'stopped']);
    expect(calls.ended).toBe(1);
  });

  it('is not handed on where its stop fails', async () => {
    const error = new Error('cannot close');
    const { holding, events, calls } = holdingOf(() => () => Promise.reject(error));
    await settled();
    await holding.stop();
    expect(events.at(-1)).toEqual({ ...ofThis, type: 'failed', step: 'stop', error });
    expect([calls.ended, holding.isAborted]).toEqual([0, true]);
  });

  it('fails once by itself, and not when it is stopped already', async () => {
    let fail: (error: unknown) => void = () => undefined;
    const { holding, events, calls } = holdingOf((_, own) => {
      fail = own.fail;
      return () => NEVER;
    });
    await settled();
    fail(new Error('first'));
    fail(new Error('second'));
    expect(calls.failed).toBe(1);
    expect(holding.state).toBe('stopping');
    expect(events.map(({ type }) => type)).toEqual(['started', 'failed', 'stopping', 'failed']);
  });

  it('fails where its start takes too long, and aborts', async () => {
    const { clock, holding, events, calls } = holdingOf(() => NEVER);
    await clock.advance(START_MS - 1);
    expect(events).toEqual([]);
    await clock.advance(1);
    expect(events[0]).toMatchObject({
      ...{ type: 'failed', step: 'start' },
      error: { message: 'shard 3 has not started within 1000 ms' },
    });
    expect([calls.failed, holding.isAborted]).toEqual([1, true]);
  });
});
