import { expect, it } from 'vitest';
import { inVirtualTime, VirtualClock } from '../../../test/support/virtual-clock.js';
import { WakeUp } from './wake-up.js';

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
