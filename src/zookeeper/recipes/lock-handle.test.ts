import { beforeEach, describe, expect, it } from 'vitest';
import { fails, ScriptedZooKeeper, SESSION_MS } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { type CallOptions, type MultiOperation, ZooKeeperError } from '../client/zookeeper.js';
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

describe('a handle in its session', () => {
  it.each([
    [12_000, 100],
    [600, 50],
  ])('is watched, in one of %i ms, after %i ms, until its end', async (timeoutMs, afterMs) => {
    zookeeper.become({ status: 'connected', sessionId: 'a', timeoutMs, server: 'x:1' });
    const held = await acquired();
    await clock.advance(afterMs - 1);
    expect(zookeeper.watches.size).toBe(0);
    await clock.advance(1);
    expect([zookeeper.watches.size, zookeeper.listeners.size]).toEqual([1, 1]);
    zookeeper.fireWatches();
    expect(held.isValid()).toBe(true);
    zookeeper.calls.length = 0;
    await held.release();
    await clock.advance(SESSION_MS);
    expect([zookeeper.watches.size, zookeeper.listeners.size, clock.sleepers]).toEqual([0, 0, 0]);
    expect(zookeeper.calls).toEqual([`remove ${held.path}`]);
  });

  it.each([1, 50])('has no watch where it ends after %i ms', async (ms) => {
    const held = await acquired();
    await clock.advance(ms);
    await held.release();
    await clock.advance(SESSION_MS);
    expect(zookeeper.watches.size).toBe(0);
  });

  it('has one timer with all that are acquired at the same moment', async () => {
    const contenders = ['/locks/a', '/locks/b'].map((path) => lock(zookeeper, path, options()));
    for (let round = 0; round < 2; round += 1) {
      const acquiring = Promise.all(contenders.map((contender) => contender.acquire()));
      await clock.advance(0);
      expect(clock.sleepers).toBe(1);
      for (const held of await acquiring) await held.release();
      await clock.advance(5);
      expect([clock.sleepers, zookeeper.watches.size]).toEqual([0, 0]);
    }
  });

  it.each<[string, () => void]>([
    ['its znode has been deleted', () => zookeeper.fireWatches()],
    ['its session has been closed', () => void zookeeper.close()],
    ['its session has expired', () => zookeeper.become({ status: 'expired', sessionId: 'a' })],
  ])('is lost as soon as the client notices that %s', async (detail, notice) => {
    const held = await acquired();
    await clock.advance(100);
    zookeeper.znodes.delete(held.path);
    notice();
    expect(held.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'taken', token: held.token });
    expect(held.signal.reason.message).toContain(`${PATH} (token ${held.token})`);
    expect(held.signal.reason.message).toContain(detail);
  });

  it.each<[string, ZooKeeperError]>([
    ['its session has ended', fails('session-expired', 'not-applied')],
    ['its session has ended', fails('closed', 'not-applied')],
    ['its znode has been deleted', fails('no-node', 'not-applied')],
    ['could not be renewed', fails('no-auth', 'not-applied')],
  ])('is lost because %s, where a heartbeat shows it: %o', async (detail, error) => {
    const held = await acquired();
    zookeeper.fault = async (operation) => {
      if (operation === 'multi') throw error;
    };
    await clock.advance(SESSION_MS / 2);
    expect(held.signal.reason.message).toContain(detail);
  });

  it('has the shorter time-out of another server counted, also if it came during the acquisition', async () => {
    const shortenTo = (timeoutMs: number) =>
      zookeeper.become({ status: 'connected', sessionId: 'a', timeoutMs, server: 'y:1' });
    zookeeper.fault = async (operation) => {
      if (operation === 'create') shortenTo(SESSION_MS / 2);
    };
    const held = await acquired();
    expect(held.deadline).toBe(SESSION_MS / 4);
    zookeeper.become({ status: 'suspended', sessionId: 'a', timeoutMs: SESSION_MS / 2 });
    expect(held.isValid()).toBe(true);
    shortenTo(SESSION_MS / 4);
    expect(held.deadline).toBe(SESSION_MS / 8);
    await held.release();
  });

  it('asks for another connection where a heartbeat has no answer', async () => {
    const held = await acquired();
    const calls: CallOptions[] = [];
    const { multi } = zookeeper;
    zookeeper.multi = (operations, call = {}) => {
      calls.push(call);
      return multi.call(zookeeper, operations, call);
    };
    await clock.advance(SESSION_MS / 6);
    expect(calls).toMatchObject([{ sessionId: 'a', reconnectOnTimeout: true }]);
    await held.release();
  });

  it.each<[string, (fault?: ScriptedZooKeeper['fault']) => ScriptedZooKeeper['fault']]>([
    ['says nothing', () => () => new Promise(() => undefined)],
    ['loses each connection', () => () => Promise.reject(fails('connection-loss', 'unknown'))],
  ])('is released by its deadline where ZooKeeper %s', async (_, fault) => {
    const held = await acquired();
    await clock.advance(1_000);
    zookeeper.fault = fault();
    let releasedAt: number | undefined;
    void held.release().then(() => {
      releasedAt = clock.monotonic();
    });
    await clock.advance(SESSION_MS);
    expect(releasedAt).toBeGreaterThanOrEqual(SESSION_MS / 3);
    expect(releasedAt).toBeLessThanOrEqual(SESSION_MS / 3 + 1);
    await expect(held.guard([])).rejects.toThrow(`lock ${PATH} (token ${held.token}) has been released`);
  });
});

describe('a guarded write', () => {
  const create: MultiOperation = { type: 'create', path: '/written', data: '', mode: 'persistent' };
  const noNode = (path: string) => new ZooKeeperError('no-node', 'no-node', 'not-applied', path);

  it('is carried out with a check of the own znode', async () => {
    const held = await acquired();
    zookeeper.put('', '', undefined);
    zookeeper.calls.length = 0;
    await held.guard([create]);
    expect(zookeeper.calls).toEqual([`multi ${held.path}`]);
    expect(zookeeper.znodes.has('/written')).toBe(true);
    await expect(held.guard([{} as MultiOperation])).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    await held.release();
    await expect(held.guard([create])).rejects.toMatchObject({ code: 'LOCK_RELEASED' });
    expect(zookeeper.calls).toHaveLength(2);
  });

  it.each<[string, (held: LockHandle) => unknown, object, boolean]>([
    ['the own znode is gone', ({ path }) => noNode(path), { code: 'LOCK_LOST', reason: 'taken' }, false],
    ['another znode is missing', () => noNode('/written'), { fault: 'no-node' }, true],
    ['its outcome is unknown', () => fails('connection-loss', 'unknown'), { fault: 'connection-loss' }, true],
    [
      'it is released meanwhile, and nothing was carried out',
      (held) => {
        void held.release();
        return fails('no-auth', 'not-applied');
      },
      { code: 'LOCK_RELEASED' },
      false,
    ],
    [
      'it is released meanwhile, and the outcome is unknown',
      (held) => {
        void held.release();
        return fails('connection-loss', 'unknown');
      },
      { fault: 'connection-loss' },
      false,
    ],
  ])('fails with what is known where %s', async (_, failure, expected, isValid) => {
    const held = await acquired();
    zookeeper.fault = async (operation) => {
      if (operation === 'multi') throw failure(held);
    };
    await expect(held.guard([create])).rejects.toMatchObject(expected);
    expect(held.isValid()).toBe(isValid);
    zookeeper.fault = undefined;
    await held.release();
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
  it('moves the znode and its watch to the name of a reader, in one transaction', async () => {
    const acquiring = writeLock(zookeeper, PATH, { ...options(), data: 'me' }).acquire();
    await clock.advance(100);
    const held = await acquiring;
    const before = held.path;
    let watches: number | undefined;
    zookeeper.fault = async () => {
      watches = zookeeper.watches.size;
    };
    const [first, second] = [held.downgrade(), held.downgrade()];
    expect(second).toBe(first);
    await first;
    zookeeper.fault = undefined;
    expect([watches, zookeeper.watches.size]).toEqual([0, 1]);
    expect(held.path).toMatch(/\/_c_[-0-9a-f]{36}-__READ__\d{10}$/);
    expect(held.path.slice(-10)).toBe(before.slice(-10));
    const { data, stat } = zookeeper.znodes.get(held.path) ?? {};
    expect([standing(), data?.toString(), stat?.owner]).toEqual([[held.path], 'me', 'a']);
    zookeeper.fireWatches();
    expect(held.isValid()).toBe(true);
    zookeeper.calls.length = 0;
    await held.release();
    expect(zookeeper.calls).toEqual([`remove ${held.path}`]);
  });

  it('is refused where the znode has been deleted, and where the lock is held no more', async () => {
    const acquiring = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(0);
    const held = await acquiring;
    zookeeper.znodes.delete(held.path);
    await expect(held.downgrade()).rejects.toThrow('its znode has been deleted');
    const released = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(0);
    const other = await released;
    await other.release();
    zookeeper.calls.length = 0;
    await expect(other.downgrade()).rejects.toMatchObject({ code: 'LOCK_RELEASED' });
    expect(zookeeper.calls).toEqual([]);
  });

  it('that is refused leaves the lock as it was, with its watch', async () => {
    const acquiring = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(100);
    const held = await acquiring;
    zookeeper.fault = async () => {
      throw fails('no-auth', 'not-applied');
    };
    await expect(held.downgrade()).rejects.toMatchObject({ fault: 'no-auth' });
    zookeeper.fault = undefined;
    expect([held.isValid(), zookeeper.watches.size]).toEqual([true, 1]);
    zookeeper.znodes.delete(held.path);
    await clock.advance(SESSION_MS / 6);
    expect(held.signal.reason).toMatchObject({ reason: 'taken' });
  });

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

  /** One that has been carried out, whose replies are lost until the returned function is called. */
  async function withoutReply(held: LockHandle & { downgrade(): Promise<void> }) {
    let isAway = true;
    zookeeper.fault = async (operation, path, apply) => {
      if (!isAway || operation !== 'multi' || !path.includes('__READ__')) return;
      if (zookeeper.znodes.has(held.path)) apply();
      throw fails('connection-loss', 'unknown');
    };
    const downgraded = held.downgrade();
    downgraded.catch(() => undefined);
    await clock.advance(0);
    return () => {
      isAway = false;
      return downgraded;
    };
  }

  it('is no loss to a watch that was due meanwhile', async () => {
    const acquiring = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(0);
    const held = await acquiring;
    const end = await withoutReply(held);
    await clock.advance(200);
    zookeeper.fireWatches();
    expect(held.isValid()).toBe(true);
    const downgraded = end();
    await clock.advance(2_000);
    await downgraded;
    await held.release();
  });

  it('that never ends is the reason of the loss', async () => {
    const acquiring = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(0);
    const held = await acquiring;
    await withoutReply(held);
    await clock.advance(SESSION_MS);
    expect(held.signal.reason.message).toContain('its znode is moving');
    expect(standing()).toEqual([]);
  });

  it('is no loss to a heartbeat that was under way before it, and is answered after it', async () => {
    const acquiring = writeLock(zookeeper, PATH, options()).acquire();
    await clock.advance(0);
    const held = await acquiring;
    let answer: () => void = () => undefined;
    zookeeper.fault = async (operation) => {
      if (operation !== 'multi') return;
      zookeeper.fault = undefined;
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
    };
    await clock.advance(SESSION_MS / 6);
    await held.downgrade();
    answer();
    await clock.advance(SESSION_MS);
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
