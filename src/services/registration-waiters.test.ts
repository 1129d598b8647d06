import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import { RegistrationWaiters } from './registration.js';

const PATH = '/services/orders/one';

describe('whoever waits for a registration', () => {
  it('is told that it is done, and leaves no timer and no listener behind', async () => {
    const clock = new VirtualClock();
    const waiters = new RegistrationWaiters(clock);
    const { signal } = new AbortController();
    const all = Array.from({ length: 20 }, () => waiters.wait({ signal }, PATH, () => 'late'));
    expect(clock.sleepers).toBe(20);
    waiters.done();
    await Promise.all(all);
    expect([clock.sleepers, getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
  });

  it('waits for 5 s unless told otherwise, and then learns why', async () => {
    const clock = new VirtualClock();
    const waiters = new RegistrationWaiters(clock);
    let why = 'unknown';
    const usual = expect(waiters.wait({}, PATH, () => why)).rejects.toMatchObject({
      ...{ code: 'ZOOKEEPER_FAILED', fault: 'timeout', path: PATH, message: expect.stringContaining('no connection') },
    });
    const short = expect(waiters.wait({ timeoutMs: 10 }, PATH, () => why)).rejects.toMatchObject({ fault: 'timeout' });
    await clock.advance(10);
    await short;
    why = 'no connection';
    await clock.advance(4_989);
    expect(clock.sleepers).toBe(1);
    await clock.advance(1);
    await usual;
  });

  it.each([new Error('enough'), 'a text', null])('is given up with the very reason of the signal (%s)', async (reason) => {
    const clock = new VirtualClock();
    const waiters = new RegistrationWaiters(clock);
    const abort = new AbortController();
    const waiting = waiters.wait({ signal: abort.signal }, PATH, () => 'late');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(waiters.wait({ signal: abort.signal }, PATH, () => 'late')).rejects.toBe(reason);
    expect(clock.sleepers).toBe(0);
  });

  it('is told that it will not come', async () => {
    const clock = new VirtualClock();
    const waiters = new RegistrationWaiters(clock);
    const waiting = waiters.wait({}, PATH, () => 'late');
    waiters.fail(PATH, 'closed', 'closed');
    waiters.done();
    await expect(waiting).rejects.toMatchObject({ fault: 'closed' });
    expect(clock.sleepers).toBe(0);
  });
});
