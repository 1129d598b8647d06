import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { inVirtualTime, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import {
  aborted,
  anySignal,
  LateSignal,
  onAbort,
  orAborted,
  timeoutSignal,
  until,
  WakeUp,
  withTimeout,
} from './abort.js';
import { Listeners } from './listeners.js';

const never = new Promise<never>(() => undefined);
const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;

describe('callbacks for one signal', () => {
  it('share one listener, which goes with the last of them', () => {
    const { signal } = new AbortController();
    const cancel = Array.from({ length: 100 }, () => onAbort(signal, () => {}));
    expect(listeners(signal)).toBe(1);
    for (const each of cancel.slice(1)) each();
    expect(listeners(signal)).toBe(1);
    cancel[0]?.();
    cancel[0]?.();
    expect(listeners(signal)).toBe(0);
    onAbort(signal, () => {})();
    expect(listeners(signal)).toBe(0);
  });

  it('are all called, each once, but for the cancelled ones', () => {
    const controller = new AbortController();
    const called: string[] = [];
    const same = () => called.push('same');
    onAbort(controller.signal, same);
    onAbort(controller.signal, same);
    const cancel = onAbort(controller.signal, () => called.push('cancelled'));
    const cancelLater = onAbort(controller.signal, () => called.push('last'));
    cancel();
    controller.abort();
    cancelLater();
    expect(called).toEqual(['same', 'same', 'last']);
    expect(listeners(controller.signal)).toBe(0);
  });

  it('are called although an earlier one throws, whose error becomes an uncaught one', async () => {
    const controller = new AbortController();
    const bug = new Error('a bug in a callback');
    const uncaught = new Promise((resolve) => {
      const others = process.listeners('uncaughtException');
      process.removeAllListeners('uncaughtException');
      process.once('uncaughtException', (error) => {
        for (const other of others) process.on('uncaughtException', other);
        resolve(error);
      });
    });
    onAbort(controller.signal, () => {
      throw bug;
    });
    const next = aborted(controller.signal);
    controller.abort('over');
    expect(await next).toBe('over');
    expect(await uncaught).toBe(bug);
  });

  it('are called at once where the signal has aborted before', () => {
    let called = 0;
    onAbort(AbortSignal.abort(), () => {
      called += 1;
    })();
    expect(called).toBe(1);
  });
});

describe('waiting for work or a signal', () => {
  it('ends with whichever comes first, and keeps no listener', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    expect(await orAborted(Promise.resolve('done'), signal)).toBe('done');
    await expect(orAborted(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
    const waiting = Promise.allSettled(Array.from({ length: 50 }, () => orAborted(never, signal)));
    expect(listeners(signal)).toBe(1);
    controller.abort(new Error('given up'));
    for (const outcome of await waiting) expect(outcome).toMatchObject({ reason: { message: 'given up' } });
    expect(listeners(signal)).toBe(0);
  });

  it('does not leave the failure of work unhandled that no caller waits for any more', async () => {
    const failing = Promise.reject(new Error('no caller sees it'));
    await expect(orAborted(failing, AbortSignal.abort('over'))).rejects.toBe('over');
  });
});

describe('waiting with a timeout', () => {
  it('resolves to undefined when the time is up, and leaves no timer behind in any case', async () => {
    const clock = new VirtualClock();
    const late = withTimeout(clock, 100, never);
    await clock.advance(99);
    expect(clock.sleepers).toBe(1);
    await clock.advance(1);
    expect(await late).toBeUndefined();
    expect(await withTimeout(clock, 100, Promise.resolve('in time'))).toBe('in time');
    await expect(withTimeout(clock, 100, Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    const controller = new AbortController();
    const interrupted = withTimeout(clock, 100, never, controller.signal);
    controller.abort('interrupted');
    await expect(interrupted).rejects.toBe('interrupted');
    await settled();
    expect(clock.sleepers).toBe(0);
    expect(listeners(controller.signal)).toBe(0);
  });
});

describe('a signal made from others', () => {
  it('aborts with the first of them, for its reason, and leaves no listener when it is released', () => {
    const [first, second] = [new AbortController(), new AbortController()];
    const any = anySignal(first.signal, undefined, second.signal);
    second.abort('the second');
    first.abort('the first');
    expect(any.signal.reason).toBe('the second');
    expect(anySignal(first.signal, second.signal).signal.reason).toBe('the first');
    const lasting = new AbortController();
    const { signal, release } = anySignal(lasting.signal);
    expect(listeners(lasting.signal)).toBe(1);
    release();
    expect(listeners(lasting.signal)).toBe(0);
    lasting.abort();
    expect(signal.aborted).toBe(false);
  });

  it('aborts after its time, unless it is released before', async () => {
    const clock = new VirtualClock();
    const lasting = new AbortController();
    const limit = timeoutSignal(clock, 50, () => new Error('too late'), lasting.signal);
    const released = timeoutSignal(clock, 50, () => new Error('not reported'), lasting.signal);
    released.release();
    await clock.advance(50);
    expect(limit.signal.reason).toMatchObject({ message: 'too late' });
    expect(released.signal.aborted).toBe(false);
    limit.release();
    expect(listeners(lasting.signal)).toBe(0);
    expect(clock.sleepers).toBe(0);
  });
});

describe('a signal that is made when it is asked for', () => {
  it('is aborted with the first reason, whether it was asked for before the end or after', () => {
    const [early, late] = [new LateSignal(), new LateSignal()];
    const { signal } = early;
    expect([signal.aborted, early.aborted]).toEqual([false, undefined]);
    for (const each of [early, late]) {
      each.abort('lost');
      each.abort('released');
      expect([each.signal.aborted, each.signal.reason, each.aborted]).toEqual([
        true,
        'lost',
        { reason: 'lost' },
      ]);
    }
    expect(early.signal).toBe(signal);
    expect(signal.reason).toBe('lost');
  });
});

it('resolves to the first value that is found, now or at a change, and listens no longer', async () => {
  const changes = new Listeners<void>();
  let value: number | undefined;
  let asked = 0;
  const waiting = until(
    (listener) => changes.add(listener),
    () => {
      asked += 1;
      return value;
    },
    (found) => found,
  );
  changes.notify();
  expect(changes.size).toBe(1);
  value = 0;
  changes.notify();
  value = 2;
  changes.notify();
  expect([await waiting, asked]).toEqual([0, 3]);
  expect(changes.size).toBe(0);
  const atOnce = until(
    (listener) => changes.add(listener),
    () => value,
    (found) => found,
  );
  expect(await atOnce).toBe(2);
});

it('listens no longer once its bound has ended the wait', async () => {
  const changes = new Listeners<void>();
  const waiting = until(
    (listener) => changes.add(listener),
    () => undefined,
    () => Promise.reject(new Error('late')),
  );
  await expect(waiting).rejects.toThrow('late');
  expect(changes.size).toBe(0);
});

it('ends a wait, and only that one', async () => {
  const clock = new VirtualClock();
  const { wait, wake } = waiter(clock);
  const both = wait().then(() => wait());
  wake();
  await inVirtualTime(clock, both);
  expect(clock.monotonic()).toBe(1_000);
});

it('is not missed while no task waits', async () => {
  const clock = new VirtualClock();
  const { wait, wake } = waiter(clock);
  wake();
  wake();
  await wait();
  expect(clock.monotonic()).toBe(0);
  await inVirtualTime(clock, wait());
  expect(clock.monotonic()).toBe(1_000);
});

it('does not wait without time, and counts as a wait', async () => {
  const clock = new VirtualClock();
  const { wait, wake } = waiter(clock);
  wake();
  await wait(0);
  await wait(0);
  await inVirtualTime(clock, wait());
  expect(clock.monotonic()).toBe(1_000);
});

it('rejects when its signal aborts', async () => {
  const wakeUp = new WakeUp();
  const over = new AbortController();
  const waiting = wakeUp.wait(undefined, over.signal);
  over.abort(new Error('over'));
  await expect(waiting).rejects.toThrow('over');
});

function waiter(clock: VirtualClock) {
  const wakeUp = new WakeUp();
  return { wait: (timeoutMs = 1_000) => wakeUp.wait({ clock, timeoutMs }), wake: wakeUp.wake };
}
