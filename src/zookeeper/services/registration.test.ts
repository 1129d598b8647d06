import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { instanceOf } from '../../../test/support/service-instances.js';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { ReconcileLoop } from '../client/reconcile-loop.js';
import type { SessionState } from '../client/session-state.js';
import type { ZooKeeper } from '../client/zookeeper.js';
import { Registration } from './registration.js';

const PATH = '/services/orders/one';

/** A registration while no server answers. The test plays the loop. */
function unanswered() {
  const clock = new VirtualClock();
  const listeners = new Set<(state: SessionState) => void>();
  const zookeeper = {
    description: 'zookeeper 127.0.0.1:2181',
    state: { status: 'suspended', sessionId: '1', problem: 'no server answers' } as SessionState,
    onState: (listener: (state: SessionState) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const random = seededRandom(1);
  const loop = new ReconcileLoop({
    ...{ zookeeper: zookeeper as unknown as ZooKeeper, clock, random, name: 'the service discovery' },
  });
  const wanted = { instance: instanceOf('one'), path: PATH, data: '{}', mode: 'ephemeral' as const };
  const registration = new Registration(wanted, {
    ...{ zookeeper: zookeeper as unknown as ZooKeeper, clock, random, lease: undefined },
    ...{ emit: () => {}, loop, onGone: () => {} },
  });
  loop.reconcile(registration);
  return { clock, loop, registration, wanted };
}

describe('a call that waits for a registration', () => {
  it('ends when nothing is wanted and nothing was written, and leaves no timer and no listener behind', async () => {
    const { clock, registration } = unanswered();
    const { signal } = new AbortController();
    const all = Array.from({ length: 20 }, () => registration.whenApplied({ signal }));
    const outcomes = Promise.allSettled(all);
    expect(clock.sleepers).toBe(20);
    registration.unregister();
    expect((await outcomes).map(({ status }) => status)).toEqual(Array(20).fill('rejected'));
    await expect(all[0]).rejects.toMatchObject({ fault: 'aborted', path: PATH });
    await registration.whenApplied({ signal });
    expect([clock.sleepers, getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
  });

  it('waits for 5 s by default, and then says why', async () => {
    const { clock, registration } = unanswered();
    await settled();
    const usual = expect(registration.whenApplied({})).rejects.toMatchObject({
      ...{
        code: 'ZOOKEEPER_FAILED',
        fault: 'timeout',
        path: PATH,
        message: expect.stringContaining('no server answers'),
      },
    });
    const short = expect(registration.whenApplied({ timeoutMs: 10 })).rejects.toMatchObject({
      fault: 'timeout',
    });
    await clock.advance(10);
    await short;
    await clock.advance(4_989);
    expect(clock.sleepers).toBe(1);
    await clock.advance(1);
    await usual;
  });

  it.each([new Error('enough'), 'a text', null])(
    'is given up with the very reason of the signal (%s)',
    async (reason) => {
      const { clock, registration } = unanswered();
      const abort = new AbortController();
      const waiting = registration.whenApplied({ signal: abort.signal });
      abort.abort(reason);
      await expect(waiting).rejects.toBe(reason);
      await expect(registration.whenApplied({ signal: abort.signal })).rejects.toBe(reason);
      expect(clock.sleepers).toBe(0);
    },
  );

  it('learns what came first, though the opposite is wanted at once', async () => {
    const { registration, wanted } = unanswered();
    // From here on something may have been written.
    await registration.step({ sessionId: '1', signal: new AbortController().signal }).catch(() => undefined);
    const registering = registration.whenApplied({});
    registration.unregister();
    const removing = registration.whenApplied({});
    registration.register(wanted);
    await expect(registering).rejects.toMatchObject({
      fault: 'aborted',
      message: expect.stringContaining('unregistered'),
    });
    await expect(removing).rejects.toMatchObject({
      fault: 'aborted',
      message: expect.stringContaining('registered again'),
    });
  });

  it('ends when the loop is closed', async () => {
    const { clock, loop, registration } = unanswered();
    const waiting = expect(registration.whenApplied({})).rejects.toMatchObject({ fault: 'closed' });
    await loop.close();
    await waiting;
    expect(clock.sleepers).toBe(0);
  });
});
