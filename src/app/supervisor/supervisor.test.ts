import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import {
  type Lease,
  LeaseLostError,
  LeaseRetiringError,
  type LossReason,
  leavesTime,
} from '../../core/lease/model/lease.js';
import { SignalRelay } from '../kit/terminal/signal-relay.js';
import type { RetirePolicy } from '../settings/settings.js';
import type { Child, ChildEnd } from './child.js';
import { supervise, type WorkEnd } from './supervisor.js';

const DURATION = 15_000;

/** A child, a lease and a guard whose fates are in the test's hands. */
function scene({
  deadline = DURATION,
  diesOf = ['SIGTERM', 'SIGKILL'],
  keyboard = false,
  beforeStop,
  onRetire,
}: {
  deadline?: number;
  diesOf?: NodeJS.Signals[];
  keyboard?: boolean;
  beforeStop?: () => Promise<void>;
  onRetire?: RetirePolicy;
} = {}) {
  const clock = new VirtualClock();
  const acts: string[] = [];
  const note = (what: string) => acts.push(`${clock.monotonic()} ${what}`);

  let alive = true;
  let childEnded: (end: ChildEnd) => void = () => {};
  const end = (how: ChildEnd, leftovers = false) => {
    alive = leftovers;
    childEnded(how);
  };
  const child: Child = {
    group: {
      id: 4711,
      isAlive: () => alive,
      signal(signal) {
        if (acts.at(-1)?.endsWith(`group ${signal}`) !== true) note(`group ${signal}`);
        if (alive && diesOf.includes(signal)) end({ signal });
      },
    },
    begin: () => note('begin'),
    signal: (signal) => note(`child ${signal}`),
    ended: new Promise((resolve) => {
      childEnded = resolve;
    }),
  };

  const loss = new AbortController();
  const retirement = new AbortController();
  const held = { deadline };
  const lease: Lease = {
    id: 3,
    version: 8,
    taskId: 'task',
    signal: loss.signal,
    retiring: retirement.signal,
    get deadline() {
      return held.deadline;
    },
    tenureTime: undefined,
    home: undefined,
    isValid: () => !loss.signal.aborted && clock.monotonic() < held.deadline,
    setKnownNodes: () => undefined,
    release: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
  const lose = (reason: LossReason) =>
    loss.abort(new LeaseLostError(3, 8, reason, leavesTime(reason) ? deadline : clock.monotonic(), 'test'));

  let restart: () => void = () => {};
  const restartAsked = new Promise<void>((resolve) => {
    restart = resolve;
  });
  let guardFailed: (reason: string) => void = () => {};
  const guard = {
    watch: (id: number) => note(`watch ${id}`),
    extend: (until: number) => note(`extend ${until}`),
    done: () => note('done'),
    failed: new Promise<string>((resolve) => {
      guardFailed = resolve;
    }),
  };

  const process = new Map<string, () => void>();
  const signals = new SignalRelay({
    on: (signal, listener) => process.set(signal, listener),
    off: (signal) => process.delete(signal),
  });
  const lines: string[] = [];
  const log = {
    info: (...line: unknown[]) => note2(line),
    warn: (...line: unknown[]) => note2(line),
    error: (...line: unknown[]) => note2(line),
  };
  const note2 = (line: unknown[]) => void lines.push(String(line.at(-1)));

  const result: { value?: WorkEnd } = {};
  const policy = { beforeStop, onRetire, restart: restartAsked };
  const running = supervise({
    lease,
    clock,
    log,
    guard,
    signals,
    keyboard,
    ...policy,
    start: async () => child,
  }).then((value) => {
    note('over');
    result.value = value;
  });
  return {
    clock,
    acts,
    lines,
    lease,
    held,
    result,
    running,
    end,
    lose,
    restart,
    retire: () => retirement.abort(new LeaseRetiringError(3, 8, 2)),
    failGuard: (reason: string) => guardFailed(reason),
    arrive: (signal: string) => process.get(signal)?.(),
    finishLeftovers: () => {
      alive = false;
    },
  };
}

describe('a supervised child', () => {
  it('begins only after the guard knows its group and its deadline', async () => {
    const { acts } = scene();
    await settled();
    expect(acts).toEqual(['0 watch 4711', `0 extend ${DURATION}`, '0 begin']);
  });

  it('does not begin when the lease ran out while it was being started', async () => {
    const { acts, running, result } = scene({ deadline: 0 });
    await running;
    expect(acts.filter((act) => /begin|SIGKILL/.test(act))).toEqual(['0 group SIGKILL']);
    expect(result.value).toEqual({ exitCode: 76, workEnded: true });
  });

  it('shares the keyboard with all of its group, as on a separate terminal', async () => {
    const { acts, arrive } = scene({ keyboard: true });
    await settled();
    arrive('SIGINT');
    arrive('SIGTERM');
    expect(acts.slice(3)).toEqual(['0 group SIGINT', '0 child SIGTERM']);
  });

  it('passes its exit code on, and a signal that ended it as 128 plus its number', async () => {
    const first = scene();
    first.end({ code: 5 });
    await first.running;
    expect(first.result.value).toEqual({ exitCode: 5, workEnded: true });
    const second = scene();
    second.end({ signal: 'SIGSEGV' });
    await second.running;
    expect(second.result.value).toEqual({ exitCode: 139, workEnded: true });
  });

  it('gets the signals that arrive', async () => {
    const { acts, arrive } = scene();
    await settled();
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'])
      arrive(signal);
    expect(acts.slice(3)).toEqual(
      ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'].map(
        (signal) => `0 child ${signal}`,
      ),
    );
  });

  it('leaves no listener on the lease behind', async () => {
    const { lease, end, running } = scene();
    end({ code: 0 });
    await running;
    expect(getEventListeners(lease.signal, 'abort')).toHaveLength(0);
  });
});

describe('what has to happen before a child gets its stop signal', () => {
  /** It takes half a second, as a slow server would. */
  function slowScene(options: Parameters<typeof scene>[0] = {}) {
    const act: { note: (what: string) => void; clock?: VirtualClock; begun: number } = {
      note: () => {},
      begun: 0,
    };
    const beforeStop = async () => {
      act.begun += 1;
      act.note('withdraws');
      await act.clock?.sleep(500);
    };
    const made = scene({ ...options, beforeStop });
    act.clock = made.clock;
    act.note = (what) => made.acts.push(`${made.clock.monotonic()} ${what}`);
    return { ...made, act };
  }

  it('holds SIGTERM up, and no other signal', async () => {
    const { acts, clock, arrive } = slowScene();
    await settled();
    arrive('SIGTERM');
    arrive('SIGHUP');
    await clock.advance(600);
    expect(acts.slice(3)).toEqual(['0 withdraws', '0 child SIGHUP', '500 child SIGTERM']);
  });

  it('holds up no second SIGTERM', async () => {
    const { acts, clock, arrive } = slowScene();
    await settled();
    arrive('SIGTERM');
    await clock.advance(100);
    arrive('SIGTERM');
    expect(acts.slice(3)).toEqual(['0 withdraws', '100 child SIGTERM', '100 child SIGTERM']);
  });

  it.each(['taken', 'paused', 'unreachable', 'denied'] as const)(
    'holds up nothing that a lost lease asks for, also while a signal waits: %s',
    async (reason) => {
      const { acts, clock, arrive, lose, running } = slowScene();
      await settled();
      arrive('SIGTERM');
      await clock.advance(100);
      lose(reason);
      await settled();
      expect(acts[4]).toBe(
        `100 group ${reason === 'unreachable' || reason === 'denied' ? 'SIGTERM' : 'SIGKILL'}`,
      );
      await clock.advance(10);
      await running;
      await clock.advance(1_000);
      expect(acts.filter((each) => each.includes('child'))).toEqual([]);
    },
  );

  it('is begun when the child ends by itself, and not waited for', async () => {
    const { acts, end, running, result } = slowScene();
    end({ code: 0 });
    await running;
    expect(acts.slice(3)).toEqual(['0 withdraws', '0 done', '0 over']);
    expect(result.value).toEqual({ exitCode: 0, workEnded: true });
  });
});

describe('the retirement of a node id', () => {
  /** What prepares for the stop takes half a second. */
  const preparing = (onRetire?: RetirePolicy) => {
    const clock: { its?: VirtualClock } = {};
    const made = scene({
      deadline: Number.POSITIVE_INFINITY,
      ...(onRetire && { onRetire }),
      beforeStop: async () => clock.its?.sleep(500),
    });
    clock.its = made.clock;
    return made;
  };

  it('asks the child to stop as SIGTERM would, once it gets no new work any more, and passes its exit code on', async () => {
    const { acts, clock, retire, end, running, result } = preparing();
    await clock.advance(1_000);
    retire();
    await clock.advance(499);
    expect(acts.slice(3)).toEqual([]);
    await clock.advance(60_000);
    expect(acts.slice(3)).toEqual(['1500 child SIGTERM']);
    end({ code: 5 });
    await running;
    expect(acts.slice(3)).toEqual(['1500 child SIGTERM', '61499 done', '61499 over']);
    expect(result.value).toEqual({ exitCode: 5, workEnded: true });
  });

  it('is heeded as well where it came before the child was started', async () => {
    const { acts, retire } = scene();
    retire();
    await settled();
    expect(acts.slice(2)).toEqual(['0 begin', '0 child SIGTERM']);
  });

  it.each(['SIGTERM', 'SIGINT'])(
    'asks no child a second time that %s has asked already: many take that for a request to hurry',
    async (signal) => {
      const { acts, clock, arrive, retire } = preparing();
      await settled();
      arrive(signal);
      await clock.advance(100);
      retire();
      await clock.advance(5_000);
      expect(acts.slice(3)).toEqual([`500 child ${signal}`]);
    },
  );

  it('asks a child that only had to read its settings again', async () => {
    const { acts, arrive, retire } = scene();
    await settled();
    arrive('SIGHUP');
    retire();
    expect(acts.slice(3)).toEqual(['0 child SIGHUP', '0 child SIGTERM']);
  });

  it('leaves a child alone that is to drain, until it ends by itself', async () => {
    const { acts, clock, retire, end, running, result, lines } = preparing('drain');
    await settled();
    retire();
    await clock.advance(60_000);
    expect(acts.slice(3)).toEqual([]);
    expect(lines).toEqual([
      'the command goes on until it ends by itself, and gets no new work: its node id is being retired',
    ]);
    end({ code: 0 });
    await running;
    expect(result.value).toEqual({ exitCode: 0, workEnded: true });
  });

  it.each(['drain', 'stop'] as const)(
    'ends in a loss like any other where the node id is taken away before the child has ended: %s',
    async (how) => {
      const { acts, clock, retire, lose, running, result } = preparing(how);
      await settled();
      retire();
      await clock.advance(10_000);
      lose('taken');
      await clock.advance(100);
      await running;
      expect(acts.slice(3).filter((act) => act.includes('group'))).toEqual(['10000 group SIGKILL']);
      expect(result.value).toEqual({ exitCode: 76, workEnded: true });
    },
  );

  it('is of no interest any more once the lease is lost, or the child has ended: nothing is sent, and no listener is left', async () => {
    const lost = scene({ diesOf: [] });
    await settled();
    lost.lose('unreachable');
    lost.retire();
    await settled();
    expect(lost.acts.filter((act) => act.includes('child'))).toEqual([]);
    const ended = scene({ diesOf: ['SIGKILL'] });
    ended.end({ code: 0 }, true);
    await settled();
    ended.retire();
    await ended.clock.advance(11_000);
    await ended.running;
    expect(ended.acts.filter((act) => act.includes('child'))).toEqual([]);
    const quiet = scene();
    quiet.end({ code: 0 });
    await quiet.running;
    expect(getEventListeners(quiet.lease.retiring, 'abort')).toHaveLength(0);
  });
});

describe('what a child leaves behind', () => {
  it('is ended before the run is over, so before the node id can be released (rule 8)', async () => {
    const { acts, clock, end, running, result } = scene({ diesOf: ['SIGKILL'] });
    end({ code: 0 }, true);
    await clock.advance(9_900);
    expect(acts.slice(3)).toEqual(['0 group SIGTERM']);
    expect(result.value).toBeUndefined();
    await clock.advance(200);
    await running;
    expect(acts.slice(3)).toEqual(['0 group SIGTERM', '10000 group SIGKILL', '10040 done', '10040 over']);
    expect(result.value).toEqual({ exitCode: 0, workEnded: true });
  });

  it('keeps the lease for as long as it cannot be ended', async () => {
    const { clock, held, end, result, lines, finishLeftovers, running } = scene({ diesOf: [] });
    held.deadline = Number.POSITIVE_INFINITY;
    end({ code: 0 }, true);
    await clock.advance(600_000);
    expect(result.value).toBeUndefined();
    expect(lines).toContain('some of them do not end: the lease is kept until they do');
    finishLeftovers();
    await clock.advance(100);
    await running;
    expect(result.value).toEqual({ exitCode: 0, workEnded: true });
  });

  it('is given up on at a further signal, and the lease then left to expire', async () => {
    const { acts, clock, held, end, result, arrive, running } = scene({ diesOf: [] });
    held.deadline = Number.POSITIVE_INFINITY;
    end({ code: 0 }, true);
    await clock.advance(60_000);
    arrive('SIGTERM');
    await clock.advance(100);
    await running;
    expect(result.value).toEqual({ exitCode: 0, workEnded: false });
    expect(acts.filter((act) => act.endsWith('done'))).toEqual([]);
  });

  it('is killed at once when the lease is lost meanwhile', async () => {
    const { acts, clock, end, lose, running, result } = scene({ diesOf: ['SIGKILL'] });
    end({ code: 0 }, true);
    await clock.advance(100);
    lose('taken');
    await clock.advance(100);
    await running;
    expect(acts.some((act) => /^1[0-4]\d group SIGKILL$/.test(act))).toBe(true);
    expect(result.value).toEqual({ exitCode: 76, workEnded: true });
  });
});

describe('the loss of a lease (rule 7)', () => {
  it('ends the whole group with SIGTERM where the store is only out of reach', async () => {
    const { acts, clock, lose, running, result } = scene();
    await clock.advance(12_500);
    lose('unreachable');
    await clock.advance(10);
    await running;
    expect(acts.slice(3)).toEqual(['12500 group SIGTERM', '12502 done', '12502 over']);
    expect(result.value?.exitCode).toBe(76);
  });

  it.each([15_000, 1_200])(
    'kills a group that ignores SIGTERM, and is over, before the deadline of a lease of %d ms',
    async (deadline) => {
      const { acts, clock, lose, running, result } = scene({ deadline, diesOf: ['SIGKILL'] });
      await clock.advance((deadline * 5) / 6);
      lose('unreachable');
      await clock.advance(deadline / 6 - 1);
      await running;
      expect(acts.slice(3).map((act) => act.split(' ').slice(1).join(' '))).toEqual([
        'group SIGTERM',
        'group SIGKILL',
        'done',
        'over',
      ]);
      expect(result.value?.exitCode).toBe(76);
      const killed = Number.parseInt(acts[4] ?? '', 10);
      expect(deadline - killed).toBeGreaterThanOrEqual(50);
      expect(deadline - killed).toBeLessThanOrEqual(500);
    },
  );

  it.each(['taken', 'paused'] as const)(
    'kills at once where another task may hold the id already: %s',
    async (reason) => {
      const { acts, clock, lose, running, result } = scene();
      await clock.advance(7_000);
      lose(reason);
      await clock.advance(100);
      await running;
      expect(acts.slice(3)[0]).toBe('7000 group SIGKILL');
      expect(acts.filter((act) => act.includes('SIGTERM'))).toEqual([]);
      expect(result.value?.exitCode).toBe(76);
    },
  );

  it('is not waited out for processes that cannot be killed, and those are not called ended', async () => {
    const { clock, lose, running, result } = scene({ diesOf: [] });
    lose('taken');
    await clock.advance(2_100);
    await running;
    expect(result.value).toEqual({ exitCode: 76, workEnded: false });
  });

  it('is found out at the end of a child that the guard killed while this process was paused', async () => {
    const { clock, end, running, result, lines } = scene();
    await settled();
    clock.freeze(DURATION + 1);
    end({ signal: 'SIGKILL' });
    await running;
    expect(result.value).toEqual({ exitCode: 76, workEnded: true });
    expect(lines).toEqual(['the lease ran out before the command had ended: this process was paused']);
  });
});

describe('the failure of the guard', () => {
  it('ends the child, since nothing would stop it in time any more', async () => {
    const { acts, clock, failGuard, running, result, lines } = scene({
      deadline: 60_000,
      diesOf: ['SIGKILL'],
    });
    await clock.advance(1_000);
    failGuard('it was ended by SIGKILL');
    await clock.advance(10_100);
    await running;
    expect(acts.slice(3, 5)).toEqual(['1000 group SIGTERM', '11000 group SIGKILL']);
    expect(result.value).toEqual({ exitCode: 76, workEnded: true });
    expect(lines[0]).toContain('it was ended by SIGKILL');
  });

  it('leaves a child that ignores SIGTERM no time beyond its lease', async () => {
    const { acts, clock, failGuard, running } = scene({ deadline: 5_000, diesOf: ['SIGKILL'] });
    failGuard('gone');
    await clock.advance(4_999);
    await running;
    expect(acts.slice(3, 5)).toEqual(['0 group SIGTERM', '4500 group SIGKILL']);
  });
});

describe('a child that is to be started again', () => {
  it('is ended with its whole group first: SIGTERM, and SIGKILL after ten seconds', async () => {
    const { acts, clock, restart, running, result } = scene({ diesOf: ['SIGKILL'] });
    await settled();
    restart();
    await clock.advance(10_100);
    await running;
    expect(acts.slice(3)).toEqual([
      '0 group SIGTERM',
      '10000 group SIGKILL',
      expect.stringMatching(/done$/),
      expect.stringMatching(/over$/),
    ]);
    expect(result.value).toMatchObject({ workEnded: true, again: true });
  });

  it('is not, where it has ended by itself', async () => {
    const { end, restart, running, result } = scene();
    await settled();
    end({ code: 3 });
    restart();
    await running;
    expect(result.value).toEqual({ exitCode: 3, workEnded: true });
  });

  it('keeps its time to end where that has been asked for before', async () => {
    for (const ask of ['signal', 'retire'] as const) {
      const { acts, arrive, retire, clock, end, restart, running, result } = scene({ diesOf: [] });
      await settled();
      if (ask === 'signal') arrive('SIGTERM');
      else retire();
      restart();
      await clock.advance(12_000);
      expect(acts.slice(3)).toEqual(['0 child SIGTERM']);
      end({ code: 0 });
      await running;
      expect(result.value).toEqual({ exitCode: 0, workEnded: true });
    }
  });

  it.each(['signal', 'retire'] as const)(
    'stays ended where that is asked for while it ends: %s',
    async (ask) => {
      const { arrive, retire, clock, end, restart, running, result } = scene({ diesOf: [] });
      await settled();
      restart();
      await clock.advance(1_000);
      if (ask === 'signal') arrive('SIGTERM');
      else retire();
      end({ signal: 'SIGTERM' });
      await clock.advance(1_000);
      await running;
      expect(result.value).toEqual({ exitCode: 143, workEnded: true, again: false });
    },
  );

  it('is killed before the deadline when the lease is lost while it ends, and stays ended (rule 7)', async () => {
    const { acts, lose, held, clock, restart, running, result } = scene({
      diesOf: ['SIGKILL'],
      deadline: 8_000,
    });
    await settled();
    restart();
    await clock.advance(5_000);
    lose('unreachable');
    await clock.advance(3_000);
    await running;
    const killed = acts.find((act) => act.endsWith('group SIGKILL')) ?? '';
    expect(Number.parseFloat(killed)).toBeLessThan(held.deadline);
    expect(result.value).toEqual({ exitCode: 76, workEnded: true, again: false });
  });

  it('is not prepared for as for an end: what sends it work is its caller’s to see to', async () => {
    let prepared = 0;
    const { restart, clock, running } = scene({
      beforeStop: async () => {
        prepared += 1;
      },
    });
    await settled();
    restart();
    await clock.advance(100);
    await running;
    expect(prepared).toBe(0);
  });
});
