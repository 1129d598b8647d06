import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import { JointState, JointTroubles, StandingTrouble } from './joint-state.js';
import type { ReconcileState } from './reconcile-loop.js';

function part(): {
  state: ReconcileState;
  listeners: Set<(state: ReconcileState) => void>;
  onState: JointState['onState'];
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
    const joint = new JointState([one, two]);
    const told: string[] = [];
    const forget = joint.onState(({ status }) => told.push(status));
    one.become({ status: 'synced' });
    expect(joint.state).toEqual({ status: 'degraded', problem: 'begun' });
    two.become({ status: 'synced' });
    expect(joint.state).toEqual({ status: 'synced' });
    one.become({ status: 'degraded', problem: 'away' });
    two.become({ status: 'closed' });
    expect(told).toEqual(['degraded', 'synced', 'degraded', 'closed']);
    forget();
    expect(one.listeners.size + two.listeners.size).toBe(0);
  });

  it('are settled at once where they are so already', async () => {
    const [clock, one] = [new VirtualClock(), part()];
    one.become({ status: 'synced' });
    expect(await new JointState([one]).settled(clock, 1_000)).toEqual({ status: 'synced' });
  });

  it.each([
    ['they are settled', () => undefined, { status: 'synced' }],
    ['the time is over', (clock: VirtualClock) => clock.advance(1_000), { status: 'degraded', problem: 'begun' }],
  ] as const)('leave no listener and no timer behind when %s', async (_, pass, expected) => {
    const [clock, one] = [new VirtualClock(), part()];
    const { signal } = new AbortController();
    const settled = new JointState([one]).settled(clock, 1_000, signal);
    expect([one.listeners.size, getEventListeners(signal, 'abort').length, clock.sleepers]).toEqual([1, 1, 1]);
    await pass(clock);
    if (expected.status === 'synced') one.become(expected);
    expect(await settled).toEqual(expected);
    expect([one.listeners.size, getEventListeners(signal, 'abort').length, clock.sleepers]).toEqual([0, 0, 0]);
  });

  it('are not waited for any longer when the caller gives up', async () => {
    const [clock, one, giveUp] = [new VirtualClock(), part(), new AbortController()];
    const settled = new JointState([one]).settled(clock, 1_000, giveUp.signal);
    giveUp.abort(new Error('enough'));
    await expect(settled).rejects.toThrow('enough');
    expect([one.listeners.size, clock.sleepers]).toEqual([0, 0]);
  });

  it('have a trouble that stands until it is told to be over', () => {
    const said: string[] = [];
    const trouble = new StandingTrouble((problem) => said.push(problem));
    const joint = new JointState([trouble]);
    const told: string[] = [];
    joint.onState(({ status }) => told.push(status));
    expect(joint.state).toEqual({ status: 'synced' });
    trouble.tell('');
    trouble.tell('unfit');
    trouble.tell('unfit');
    expect(joint.state).toEqual({ status: 'degraded', problem: 'unfit' });
    trouble.tell('');
    expect([joint.state, told, said]).toEqual([{ status: 'synced' }, ['degraded', 'synced'], ['', 'unfit', '']]);
  });

  it('tell a trouble once, and its end when none is left', () => {
    const told: string[] = [];
    const troubles = new JointTroubles(['one', 'two'], (problem) => told.push(problem));
    troubles.tell('one', '');
    expect(told).toEqual([]);
    troubles.tell('two', '');
    troubles.tell('one', 'away');
    troubles.tell('two', 'away');
    troubles.tell('one', '');
    expect(told).toEqual(['', 'away']);
    troubles.tell('two', 'else');
    troubles.tell('two', '');
    expect(told).toEqual(['', 'away', 'else', '']);
  });
});
