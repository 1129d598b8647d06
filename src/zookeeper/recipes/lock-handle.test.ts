import { beforeEach, describe, expect, it } from 'vitest';
import { fails, ScriptedZooKeeper, SESSION_MS } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { DEFAULT_SESSION_TIMEOUT_MS } from '../client/zookeeper-client.js';
import { lock } from './lock.js';
import type { LockHandle } from './lock-handle.js';
import { writeLock } from './read-write-lock.js';

const PATH = '/locks/report';
let clock: VirtualClock;
let zookeeper: ScriptedZooKeeper;

beforeEach(() => {
  clock = new VirtualClock();
  zookeeper = new ScriptedZooKeeper(clock);
  zookeeper.put(PATH, '', undefined);
});

const options = () => ({ clock, random: seededRandom(1) });

async function acquired(): Promise<LockHandle> {
  const acquiring = lock(zookeeper, PATH, options()).acquire();
  await clock.advance(0);
  return acquiring;
}

const standing = () => [...zookeeper.znodes.keys()].filter((path) => path.startsWith(`${PATH}/`));

describe('a handle', () => {
  it('is kept by a transaction every sixth of the time-out, valid for a third of one at first and then for half', async () => {
    const held = await acquired();
    expect(held.deadline).toBe(SESSION_MS / 3);
    zookeeper.calls.length = 0;
    await clock.advance(SESSION_MS);
    expect(zookeeper.calls).toEqual(Array.from({ length: 6 }, () => `multi ${held.path}`));
    expect(held.deadline - clock.monotonic()).toBe(SESSION_MS / 2);
    await held.release();
    expect(standing()).toEqual([]);
  });

  it('notifies a process that was paused past the deadline of the loss, before anything else can run', async () => {
    const held = await acquired();
    clock.freeze(SESSION_MS / 2);
    expect(held.isValid()).toBe(false);
    await expect(held.guard([])).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'paused' });
    expect(held.signal.aborted).toBe(true);
  });

  it('is over although a heartbeat was sent in time, whose answer is there after a pause past the deadline', async () => {
    const held = await acquired();
    zookeeper.fault = async (operation) => {
      if (operation !== 'multi') return;
      zookeeper.fault = undefined;
      clock.freeze(SESSION_MS / 3);
    };
    await clock.advance(SESSION_MS / 6);
    expect([held.isValid(), held.deadline]).toEqual([false, SESSION_MS / 3]);
    expect(held.signal.reason).toMatchObject({ reason: 'paused' });
  });

  it('aborts its signal as soon as the process continues, also where the pause came right after the acquisition', async () => {
    const held = await acquired();
    clock.freeze(SESSION_MS);
    await clock.advance(1);
    expect(held.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'paused' });
  });

  it('can be acquired again in the listener of its loss', async () => {
    const contender = lock(zookeeper, PATH, options());
    const acquiring = contender.acquire();
    await clock.advance(0);
    const held = await acquiring;
    const again = new Promise<LockHandle>((resolve, reject) => {
      held.signal.addEventListener('abort', () => contender.acquire().then(resolve, reject));
    });
    zookeeper.znodes.delete(held.path);
    await clock.advance(SESSION_MS / 6);
    expect(held.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
    expect((await again).isValid()).toBe(true);
  });

  it('frees its lock once, at its end', async () => {
    const contender = lock(zookeeper, PATH, options());
    const acquire = async () => {
      const acquiring = contender.acquire();
      await clock.advance(0);
      return acquiring;
    };
    await (await acquire()).release();
    const lost = await acquire();
    zookeeper.znodes.delete(lost.path);
    await clock.advance(SESSION_MS / 6);
    expect(lost.signal.aborted).toBe(true);
    const held = await acquire();
    await lost.release();
    await expect(contender.acquire()).rejects.toThrow('it is not re-entrant');
    await held.release();
  });

  it('ends the work before the deadline where no heartbeat is answered, and takes its znode away after it', async () => {
    const held = await acquired();
    zookeeper.fault = async (operation) => {
      if (operation === 'multi') throw fails('connection-loss', 'unknown');
    };
    await clock.advance(SESSION_MS / 4 - 200);
    expect(held.signal.aborted).toBe(false);
    await clock.advance(200);
    expect(held.signal.reason).toMatchObject({ reason: 'unreachable', deadline: SESSION_MS / 3 });
    expect(held.isValid()).toBe(false);
    expect(standing()).toHaveLength(1);
    await clock.advance(SESSION_MS / 12);
    expect(standing()).toEqual([]);
  });

  it('outlasts an outage of 2.6 s at the default time-out of sessions, whenever it begins', async () => {
    zookeeper.become({
      status: 'connected',
      sessionId: 'a',
      timeoutMs: DEFAULT_SESSION_TIMEOUT_MS,
      server: 'x:1',
    });
    const held = await acquired();
    await clock.advance(DEFAULT_SESSION_TIMEOUT_MS);
    // Just before a heartbeat: what has been answered is as old as it gets.
    await clock.advance(held.deadline - DEFAULT_SESSION_TIMEOUT_MS / 3 - clock.monotonic() - 1);
    zookeeper.fault = () => Promise.reject(fails('connection-loss', 'unknown'));
    await clock.advance(2_600);
    zookeeper.fault = undefined;
    await clock.advance(DEFAULT_SESSION_TIMEOUT_MS);
    expect(held.isValid()).toBe(true);
    await held.release();
  });

  it('is deleted on release as often as it takes', async () => {
    const held = await acquired();
    let failures = 0;
    zookeeper.fault = async (operation) => {
      if (operation !== 'remove' || failures === 3) return;
      failures += 1;
      throw fails('connection-loss', 'unknown');
    };
    const releasing = held.release();
    await clock.advance(3_000);
    await releasing;
    expect(failures).toBe(3);
    expect(standing()).toEqual([]);
  });

  it('releases in time where ZooKeeper does not answer, and continues to delete', async () => {
    const held = await acquired();
    zookeeper.fault = () => Promise.reject(fails('connection-loss', 'unknown'));
    const releasing = held.release();
    await clock.advance(SESSION_MS / 2);
    await releasing;
    zookeeper.fault = undefined;
    await clock.advance(2_000);
    expect(standing()).toEqual([]);
  });
});

describe('acquiring', () => {
  it('checks the session first where the process was paused during it', async () => {
    let isStill = true;
    zookeeper.heardBy = (at) => (isStill ? Number.NEGATIVE_INFINITY : zookeeper.activity.heardBy(at));
    const acquiring = lock(zookeeper, PATH, options()).acquire();
    let held: LockHandle | undefined;
    void acquiring.then((handle) => {
      held = handle;
    });
    await clock.advance(SESSION_MS / 2);
    expect(held).toBeUndefined();
    isStill = false;
    await clock.advance(SESSION_MS / 2);
    expect(held?.isValid()).toBe(true);
    await held?.release();
  });

  it('has a znode whose making was given up deleted, also where that is known to be made only later', async () => {
    const over = new AbortController();
    let reply: () => void = () => undefined;
    zookeeper.fault = async (operation, _path, apply) => {
      if (operation !== 'create') return;
      await new Promise<void>((resolve) => {
        reply = resolve;
      });
      apply();
    };
    const acquiring = lock(zookeeper, PATH, options()).acquire({ signal: over.signal });
    acquiring.catch(() => undefined);
    await settled();
    over.abort(new Error('enough'));
    zookeeper.fault = undefined;
    reply();
    await clock.advance(3_000);
    await expect(acquiring).rejects.toThrow('enough');
    expect(standing()).toEqual([]);
  });
});

describe('acquiring that is given up', () => {
  it.each(['deleted', 'expired'])(
    'rejects with the reason, whatever happens at the same moment: %s',
    async (what) => {
      for (let ticks = 0; ticks < 40; ticks += 1) {
        zookeeper = new ScriptedZooKeeper(clock);
        const over = new AbortController();
        const abortAfter = (left: number): void =>
          left === 0 ? over.abort(new Error('enough')) : queueMicrotask(() => abortAfter(left - 1));
        let isAborting = false;
        zookeeper.fault = async (operation, _path, apply) => {
          if (operation === 'create') apply();
          if (operation !== 'children') return;
          for (const path of standing()) zookeeper.znodes.delete(path);
          if (!isAborting) abortAfter(ticks);
          isAborting = true;
          if (what === 'expired') throw fails('session-expired', 'not-applied');
        };
        const acquiring = lock(zookeeper, PATH, options()).acquire({ signal: over.signal });
        acquiring.catch(() => undefined);
        await clock.advance(0);
        await expect(acquiring, `after ${ticks}`).rejects.toThrow('enough');
      }
    },
  );
});

describe('a downgrade', () => {
  it('happens once, where the reply to its transaction was lost', async () => {
    const acquiring = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(0);
    const held = await acquiring;
    let lost = false;
    zookeeper.fault = async (operation, path, apply) => {
      if (operation !== 'multi' || lost || !path.includes('__READ__')) return;
      lost = true;
      apply();
      throw fails('connection-loss', 'unknown');
    };
    const downgraded = held.downgrade();
    await clock.advance(1_000);
    await downgraded;
    expect(standing()).toEqual([held.path]);
    expect(held.path).toContain('__READ__');
    expect(held.isValid()).toBe(true);
    await held.release();
    expect(standing()).toEqual([]);
  });

  it('keeps the lock where a guarded write comes in the middle of it, and carries that out', async () => {
    const acquiring = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(0);
    const held = await acquiring;
    zookeeper.put('/data', '', undefined);
    const downgraded = held.downgrade();
    await held.guard([{ type: 'create', path: '/data/written', data: '', mode: 'persistent' }]);
    await downgraded;
    expect(held.isValid()).toBe(true);
    expect(zookeeper.znodes.has('/data/written')).toBe(true);
    await held.release();
  });

  it('is asked for again with pauses by the heartbeats that come in the middle of it', async () => {
    const acquiring = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(0);
    const held = await acquiring;
    await clock.advance(SESSION_MS / 6 - 20);
    let beats = 0;
    let lost = false;
    zookeeper.fault = async (operation, path, apply) => {
      if (operation !== 'multi') return;
      if (!path.includes('__READ__') && ++beats > 100) return new Promise(() => undefined);
      if (lost || !path.includes('__READ__')) return;
      lost = true;
      apply();
      throw fails('connection-loss', 'unknown');
    };
    const downgraded = held.downgrade();
    await clock.advance(500);
    await downgraded;
    expect(beats).toBeLessThan(10);
    expect(held.isValid()).toBe(true);
    await held.release();
  });

  it('leaves nothing where it fails after an attempt whose reply was lost', async () => {
    const acquiring = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(0);
    const held = await acquiring;
    let attempts = 0;
    zookeeper.fault = async (operation, path, apply) => {
      if (operation !== 'multi' || !path.includes('__READ__')) return;
      attempts += 1;
      if (attempts === 1) apply();
      throw attempts === 1 ? fails('connection-loss', 'unknown') : fails('no-auth', 'not-applied');
    };
    const downgraded = held.downgrade();
    downgraded.catch(() => undefined);
    await clock.advance(SESSION_MS);
    await expect(downgraded).rejects.toMatchObject({ fault: 'no-auth' });
    expect(held.isValid()).toBe(false);
    expect(standing()).toEqual([]);
  });
});
