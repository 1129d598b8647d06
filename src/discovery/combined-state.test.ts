import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import type { ReconcileState } from '../zookeeper/reconcile-loop.js';
import { CombinedState, DegradedReasons } from './combined-state.js';

function part(): {
  state: ReconcileState;
  listeners: Set<(state: ReconcileState) => void>;
  onState: CombinedState['onState'];
  become: (state: ReconcileState) => void;
} {
  const listeners = new Set<(state: ReconcileState) => void>();
  return {
    state: { status: 'degraded', problem: 'begun' },
    listeners,
    onState(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    become(state) {
      this.state = state;
      for (const listener of listeners) listener(state);
    },
  };
}

describe('several things that are kept right', () => {
  it('are synced when all of them are, degraded when one is, closed when one is', () => {
    const [one, two] = [part(), part()];
    const combined = new CombinedState([one, two]);
    const told: string[] = [];
    const forget = combined.onState(({ status }) => told.push(status));
    one.become({ status: 'synced' });
    expect(combined.state).toEqual({ status: 'degraded', problem: 'begun' });
    two.become({ status: 'synced' });
    expect(combined.state).toEqual({ status: 'synced' });
    one.become({ status: 'degraded', problem: 'away' });
    two.become({ status: 'closed' });
    expect(told).toEqual(['degraded', 'synced', 'degraded', 'closed']);
    forget();
    expect(one.listeners.size + two.listeners.size).toBe(0);
  });

  it('are settled at once where they are so already', async () => {
    const [clock, one] = [new VirtualClock(), part()];
    one.become({ status: 'synced' });
    expect(await new CombinedState([one]).settled(clock, 1_000)).toEqual({ status: 'synced' });
  });

  it.each([
    ['they are settled', () => undefined, { status: 'synced' }],
    ['the time is over', (clock: VirtualClock) => clock.advance(1_000), { status: 'degraded', problem: 'begun' }],
  ] as const)('leave no listener and no timer behind when %s', async (_, pass, expected) => {
    const [clock, one] = [new VirtualClock(), part()];
    const { signal } = new AbortController();
    const settled = new CombinedState([one]).settled(clock, 1_000, signal);
    expect([one.listeners.size, getEventListeners(signal, 'abort').length, clock.sleepers]).toEqual([1, 1, 1]);
    await pass(clock);
    if (expected.status === 'synced') one.become(expected);
    expect(await settled).toEqual(expected);
    expect([one.listeners.size, getEventListeners(signal, 'abort').length, clock.sleepers]).toEqual([0, 0, 0]);
  });

  it('are not waited for any longer when the caller gives up', async () => {
    const [clock, one, giveUp] = [new VirtualClock(), part(), new AbortController()];
    const settled = new CombinedState([one]).settled(clock, 1_000, giveUp.signal);
    giveUp.abort(new Error('enough'));
    await expect(settled).rejects.toThrow('enough');
    expect([one.listeners.size, clock.sleepers]).toEqual([0, 0]);
  });

  it('are degraded while something is refused', () => {
    const one = part();
    one.become({ status: 'synced' });
    const combined = new CombinedState([one]);
    const told: string[] = [];
    combined.onState(({ status }) => told.push(status));
    combined.refuse('');
    combined.refuse('unfit');
    combined.refuse('unfit');
    expect(combined.state).toEqual({ status: 'degraded', problem: 'unfit' });
    combined.refuse('');
    expect([combined.state, told]).toEqual([{ status: 'synced' }, ['degraded', 'synced']]);
  });

  it('report a reason once, and the end of all when none is left, also of one that was not there at the beginning', () => {
    const told: string[] = [];
    const reasons = new DegradedReasons<'one' | 'two' | 'other'>(['one', 'two'], (reason) => told.push(reason));
    reasons.tell('one', '');
    expect(told).toEqual([]);
    reasons.tell('two', '');
    reasons.tell('one', 'away');
    reasons.tell('two', 'away');
    reasons.tell('one', '');
    expect(told).toEqual(['', 'away']);
    reasons.tell('two', 'else');
    reasons.tell('two', '');
    reasons.tell('other', 'unfit');
    reasons.tell('other', '');
    expect(told).toEqual(['', 'away', 'else', '', 'unfit', '']);
  });
});
