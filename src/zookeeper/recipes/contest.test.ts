import { beforeEach, describe, expect, it } from 'vitest';
import { fails, ScriptedZooKeeper, SESSION_MS } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { CallOptions } from '../client/zookeeper.js';
import { inOrder } from './contest.js';
import { createFence } from './fence.js';
import { lock } from './lock.js';
import type { LockHandle } from './lock-handle.js';
import { readLock, writeLock } from './read-write-lock.js';
import type { WaitOptions } from './recipe.js';

const PATH = '/locks/report';

describe('a contender', () => {
  let clock: VirtualClock;
  let zookeeper: ScriptedZooKeeper;
  let other: ScriptedZooKeeper;
  let seed: number;

  beforeEach(() => {
    clock = new VirtualClock();
    zookeeper = new ScriptedZooKeeper(clock);
    other = new ScriptedZooKeeper(clock, zookeeper);
    zookeeper.put(PATH, '', undefined);
    seed = 0;
  });

  const standing = () => [...zookeeper.znodes.keys()].filter((path) => path.startsWith(`${PATH}/`));
  /** What a client has sent since the last time, without the names. */
  const sent = (client: ScriptedZooKeeper) =>
    client.calls.splice(0).map((call) => call.replace(/_c_[-0-9a-f]{36}-/, ''));

  /** What becomes of an acquisition. */
  function contending(
    client = zookeeper,
    { as = lock, ...wait }: WaitOptions & { readonly as?: typeof lock } = {},
  ) {
    seed += 1;
    const contender = as(client, PATH, { clock, random: seededRandom(seed) });
    const attempt: { held?: LockHandle; error?: unknown } = {};
    const acquire = () =>
      contender.acquire(wait).then(
        (held) => {
          attempt.held = held;
        },
        (error) => {
          attempt.error = error;
        },
      );
    void acquire();
    return Object.assign(attempt, { acquire });
  }

  it.each([2 ** 31 - 1, -(2 ** 31)])(
    'is refused with the number %i, after which the servers have none that is greater',
    async (next) => {
      zookeeper.sequence.next = 2 ** 31 - 2;
      const last = contending();
      await clock.advance(0);
      zookeeper.sequence.next = next;
      const late = contending(other);
      await clock.advance(0);
      expect([last.held?.isValid(), late.held]).toEqual([true, undefined]);
      expect(late.error).toMatchObject({ fault: 'exhausted', path: PATH });
      expect(standing()).toEqual([last.held?.path]);
    },
  );

  it('waits with one watch for the one before it, and reads again once that is gone', async () => {
    const first = contending();
    await clock.advance(0);
    expect(sent(zookeeper)).toEqual([`create ${PATH}/lock-`, `children ${PATH}`]);
    const second = contending(other);
    await clock.advance(0);
    const third = contending(other);
    await clock.advance(0);
    expect([second.held, other.watches.size]).toEqual([undefined, 2]);
    sent(other);
    await first.held?.release();
    other.fireWatches();
    await clock.advance(0);
    expect(sent(other)).toEqual([`children ${PATH}`]);
    expect([second.held?.isValid(), third.held]).toEqual([true, undefined]);
    expect(second.held?.token).toBe(other.znodes.get(second.held?.path ?? '')?.stat.createdZxid);
    await second.held?.release();
    other.fireWatches();
    await clock.advance(0);
    await third.held?.release();
    expect([third.held?.path.slice(-1), standing(), other.watches.size]).toEqual(['3', [], 0]);
  });

  it('checks its session at the end of a long wait, at once', async () => {
    const first = contending();
    const second = contending(other);
    await clock.advance(SESSION_MS);
    sent(other);
    await first.held?.release();
    other.fireWatches();
    await clock.advance(0);
    expect(sent(other)).toEqual([`children ${PATH}`, `multi ${PATH}/lock-0000000002`]);
    expect(second.held?.deadline).toBe(clock.monotonic() + SESSION_MS / 3);
    await second.held?.release();
  });

  it('is told from a deleted znode, and rejoins the queue', async () => {
    const first = contending();
    const second = contending(other);
    await clock.advance(SESSION_MS);
    const [, own = ''] = standing();
    other.znodes.delete(own);
    await first.held?.release();
    sent(other);
    other.fireWatches();
    await clock.advance(0);
    expect(sent(other)).toEqual([
      `children ${PATH}`,
      `multi ${PATH}/lock-0000000002`,
      `remove ${PATH}/lock-0000000002`,
      `create ${PATH}/lock-`,
      `children ${PATH}`,
    ]);
    expect(second.held?.path).toMatch(/lock-0000000003$/);
    await second.held?.release();
  });

  it('rejoins the queue in its next session', async () => {
    const first = contending();
    const second = contending(other);
    await clock.advance(0);
    other.endSession();
    other.become({ status: 'connected', sessionId: 'c', timeoutMs: SESSION_MS / 2, server: 'x:1' });
    await clock.advance(0);
    expect(standing().map((path) => path.slice(-1))).toEqual(['1', '3']);
    await first.held?.release();
    other.fireWatches();
    await clock.advance(0);
    expect(second.held?.deadline).toBe(SESSION_MS / 4);
    await second.held?.release();
  });

  it('that tries once is late where another one is ahead, and leaves nothing', async () => {
    const first = contending();
    await clock.advance(0);
    other.watchRemoval = () => {
      throw new Error('it waits');
    };
    const second = contending(other, { timeoutMs: 0 });
    await clock.advance(0);
    expect(second.error).toMatchObject({
      code: 'WAIT_TIMEOUT',
      message: `scripted: ${PATH} could not be acquired within 0 ms`,
    });
    expect([standing(), other.watches.size]).toEqual([[first.held?.path], 0]);
    await first.held?.release();
    await second.acquire();
    expect(second.held?.isValid()).toBe(true);
  });

  it('is one at a time', async () => {
    const first = contending();
    await clock.advance(0);
    await first.acquire();
    expect(first.error).toMatchObject({
      fault: 'already-held',
      path: PATH,
      message: `${PATH}: this object holds it, or waits for it: it is not re-entrant`,
    });
    await first.held?.release();
    await first.acquire();
    expect([first.held?.isValid(), standing()]).toEqual([true, [first.held?.path]]);
  });

  it('that gives up while it waits takes its znode away', async () => {
    const first = contending();
    const over = new AbortController();
    const second = contending(other, { signal: over.signal });
    await clock.advance(0);
    const reason = new Error('enough');
    over.abort(reason);
    await clock.advance(0);
    expect(second.error).toBe(reason);
    expect([standing(), other.watches.size]).toEqual([[first.held?.path], 0]);
  });

  it('fails where it may not make its znode, and looks for one that it may have made', async () => {
    zookeeper.fault = async (operation) => {
      if (operation === 'create') throw fails('no-auth', 'not-applied');
    };
    const only = contending();
    await clock.advance(0);
    expect(only.error).toMatchObject({ fault: 'no-auth' });
    expect(sent(zookeeper).slice(2)).toEqual([`multi ${PATH}`, `children ${PATH}`]);
  });

  it('finds the znode whose reply was lost, and reads its token', async () => {
    let lost = false;
    zookeeper.fault = async (operation, _path, apply) => {
      if (operation !== 'create' || lost) return;
      lost = true;
      apply();
      throw fails('connection-loss', 'unknown');
    };
    const only = contending();
    await clock.advance(200);
    expect(sent(zookeeper).slice(2)).toEqual([
      `multi ${PATH}`,
      `children ${PATH}`,
      `read ${PATH}/lock-0000000001`,
      `children ${PATH}`,
    ]);
    expect(only.held?.token).toBe(zookeeper.znodes.get(standing()[0] ?? '')?.stat.createdZxid);
    await only.held?.release();
  });

  it('makes its znode again where the connection was lost before, and the folder where it is missing', async () => {
    zookeeper.znodes.delete(PATH);
    let isLost = false;
    const { createWithZxid } = zookeeper;
    zookeeper.createWithZxid = (...call) =>
      zookeeper.znodes.has(PATH) || !isLost
        ? createWithZxid.apply(zookeeper, call)
        : Promise.reject(fails('no-node', 'not-applied'));
    zookeeper.fault = async (operation) => {
      if (operation !== 'create' || isLost) return;
      isLost = true;
      throw fails('connection-loss', 'unknown');
    };
    const only = contending();
    await clock.advance(200);
    expect(sent(zookeeper)).toEqual([
      ...[`create ${PATH}/lock-`, `children ${PATH}`],
      ...[`multi ${PATH}`, `children ${PATH}`],
      ...[`children ${PATH}`, `ensurePath ${PATH}`],
      ...[`create ${PATH}/lock-`, `children ${PATH}`],
    ]);
    expect(only.held?.isValid()).toBe(true);
    await only.held?.release();
  });

  it.each(['multi', 'children'])(
    'gives up at once while the look for its znode hangs: %s',
    async (hanging) => {
      let isLost = false;
      zookeeper.fault = async (operation) => {
        if (isLost && operation === hanging) return new Promise(() => undefined);
        if (operation !== 'create') return;
        isLost = true;
        throw fails('connection-loss', 'unknown');
      };
      const over = new AbortController();
      const only = contending(zookeeper, { signal: over.signal });
      await clock.advance(200);
      over.abort('enough');
      await clock.advance(0);
      expect([isLost, only.error]).toEqual([true, 'enough']);
    },
  );

  it('rejoins the queue where its znode or the folder is gone before it is found', async () => {
    const answers: ((apply: () => void) => void)[] = [
      () => zookeeper.znodes.delete(standing()[0] ?? ''),
      () => undefined,
    ];
    zookeeper.fault = async (operation, _path, apply) => {
      if (operation === 'create' && answers.length === 2) {
        apply();
        throw fails('connection-loss', 'unknown');
      }
      if (operation === 'read') answers.shift()?.(apply);
    };
    const { children } = zookeeper;
    let isGone = true;
    zookeeper.children = async (...call) => {
      if (answers.length === 2 || !isGone) return children.apply(zookeeper, call);
      isGone = standing().length === 0;
      return undefined;
    };
    const only = contending();
    await clock.advance(500);
    expect([only.held?.isValid(), standing()]).toEqual([true, [only.held?.path]]);
    await only.held?.release();
  });

  it('waits for its next session as long as it takes, or until it gives up', async () => {
    const first = contending();
    const over = new AbortController();
    const second = contending(other, { signal: over.signal });
    await clock.advance(0);
    let isWaiting = false;
    other.whenConnected = ({ timeoutMs = 5_000, signal }: CallOptions = {}) => {
      isWaiting = true;
      return clock.sleep(timeoutMs, signal).then(() => Promise.reject(fails('timeout', 'not-applied')));
    };
    other.become({ status: 'connecting' });
    await clock.advance(60_000);
    expect([isWaiting, second.error]).toEqual([true, undefined]);
    over.abort('enough');
    await clock.advance(0);
    expect(second.error).toBe('enough');
    await first.held?.release();
  });

  it('lists the folder again where its first answer is an error', async () => {
    let failures = 0;
    zookeeper.fault = async (operation) => {
      if (operation === 'children' && failures++ === 0) throw fails('connection-loss', 'not-applied');
    };
    const only = contending();
    await clock.advance(0);
    expect(sent(zookeeper)).toEqual([`create ${PATH}/lock-`, `children ${PATH}`, `children ${PATH}`]);
    await only.held?.release();
  });

  it('sends heartbeats with pauses until its session is fresh', async () => {
    const { heardBy } = zookeeper;
    zookeeper.heardBy = (at) => (clock.monotonic() < SESSION_MS / 6 ? Number.NEGATIVE_INFINITY : heardBy(at));
    const only = contending();
    await clock.advance(SESSION_MS / 6 - 1);
    expect([sent(zookeeper).slice(2), only.held]).toEqual([[`multi ${PATH}/lock-0000000001`], undefined]);
    await clock.advance(1);
    expect(sent(zookeeper)).toEqual([`multi ${PATH}/lock-0000000001`]);
    expect(only.held?.isValid()).toBe(true);
    await only.held?.release();
  });

  it.each([
    ['no-node', { held: expect.objectContaining({ path: expect.stringMatching(/2$/) }) }],
    ['no-auth', { error: expect.objectContaining({ fault: 'no-auth' }) }],
  ] as const)(
    'holds nothing where a heartbeat fails before its session is fresh: %s',
    async (fault, outcome) => {
      const { heardBy } = zookeeper;
      zookeeper.heardBy = () => Number.NEGATIVE_INFINITY;
      zookeeper.fault = async (operation) => {
        if (operation !== 'multi') return;
        zookeeper.heardBy = heardBy;
        zookeeper.fault = undefined;
        throw fails(fault, 'not-applied');
      };
      const only = contending();
      await clock.advance(SESSION_MS / 4);
      expect(only).toMatchObject(outcome);
      await only.held?.release();
    },
  );

  it('that reads waits for the last writer ahead of it, and for no reader', async () => {
    const firsts = [contending(zookeeper, { as: readLock }), contending(zookeeper, { as: readLock })];
    await clock.advance(0);
    expect(firsts.map(({ held }) => held?.isValid())).toEqual([true, true]);
    const writer = contending(other, { as: writeLock });
    await clock.advance(0);
    const reader = contending(other, { as: readLock });
    await clock.advance(0);
    expect([writer.held, reader.held]).toEqual([undefined, undefined]);
    sent(other);
    await firsts[1]?.held?.release();
    other.fireWatches();
    await clock.advance(0);
    expect([sent(other), writer.held]).toEqual([[`children ${PATH}`], undefined]);
    await firsts[0]?.held?.release();
    other.fireWatches();
    await clock.advance(0);
    expect([writer.held?.isValid(), reader.held]).toEqual([true, undefined]);
    await writer.held?.release();
    other.fireWatches();
    await clock.advance(0);
    expect(reader.held?.isValid()).toBe(true);
    await reader.held?.release();
  });
});

describe('the order of contenders', () => {
  it("is that of what follows the recipe's name, whatever comes before it", () => {
    const names = ['_c_b-lock-0000000002', '_c_z-lock-0000000000', '_c_a-lock-x-lock-0000000001'];
    expect(inOrder('/p', names, ['lock-'])).toEqual([names[1], names[2], names[0]]);
    expect(
      inOrder('/p', ['_c_b-__READ__0000000001', '_c_a-__WRIT__0000000000'], ['__READ__', '__WRIT__']),
    ).toEqual(['_c_a-__WRIT__0000000000', '_c_b-__READ__0000000001']);
  });

  it('is that of the names where numbers are equal, and can end before one of them', () => {
    const names = ['c-lock-1', 'a-lock-1', 'd-lock-0', 'b-lock-1', 'e-lock-2'];
    expect(inOrder('/p', names, ['lock-'])).toEqual([
      'd-lock-0',
      'a-lock-1',
      'b-lock-1',
      'c-lock-1',
      'e-lock-2',
    ]);
    expect(inOrder('/p', names, ['lock-'], 'b-lock-1')).toEqual(['d-lock-0', 'a-lock-1']);
    expect(() => inOrder('/p', ['x'], ['__READ__', '__WRIT__'])).toThrow('with "__READ__" or "__WRIT__"');
    expect(inOrder('/p', ['lock-1', 'lock-0'], ['lock-'])).toEqual(['lock-0', 'lock-1']);
  });

  it('is refused where a znode is not of the recipe', () => {
    expect(() => inOrder('/p', ['_c_a-lock-0000000000', 'ready'], ['lock-'])).toThrow(
      '/p has a child "ready", which is not of this recipe: expected names with "lock-"',
    );
  });
});

describe('a fence', () => {
  it('lets the newest holder through, and none before it', () => {
    const fence = createFence(4n);
    expect([fence.pass(5n), fence.pass(5n), fence.pass(4n), fence.pass(7n), fence.newest]).toEqual([
      true,
      true,
      false,
      true,
      7n,
    ]);
  });

  it('names a token that is none', () => {
    expect(() => createFence().pass(0n)).toThrow('token: expected a fencing token: a bigint above 0, got 0');
    expect(() => createFence().pass(1 as never)).toThrow('token: expected');
    const expected = 'newest: expected a fencing token: a bigint of at least 0';
    for (const newest of [-1n, 1 as never]) expect(() => createFence(newest)).toThrow(expected);
    expect([createFence().newest, createFence().pass(1n)]).toEqual([0n, true]);
  });
});
