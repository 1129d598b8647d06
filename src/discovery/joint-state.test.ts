import { describe, expect, it } from 'vitest';
import { JointState, JointTroubles } from './joint-state.js';
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
