import { describe, expect, it } from 'vitest';
import {
  AnySession,
  fails,
  ScriptedZooKeeper,
  SESSION_MS,
} from '../../../../test/support/scripted-zookeeper.js';
import {
  inVirtualTime,
  seededRandom,
  settled,
  VirtualClock,
} from '../../../../test/support/virtual-clock.js';
import type { Znode } from '../../client/zookeeper.js';
import { queue } from './queue.js';
import { decodeItems, encodeItems } from './queue-items.js';

describe('an iteration over a queue that is ended', () => {
  it('loses no item without saying so, whenever its signal aborts', async () => {
    for (let ticks = 0; ticks < 60; ticks += 1) {
      const clock = new VirtualClock();
      const zookeeper = new ScriptedZooKeeper(clock);
      if (zookeeper.state.status === 'connected')
        zookeeper.state = { ...zookeeper.state, sessionId: undefined as unknown as string };
      zookeeper.put('/queue', '', undefined);
      zookeeper.put('/queue/qn-0000000000', 'item', undefined);
      const over = new AbortController();
      const abortAfter = (left: number): void =>
        left === 0 ? over.abort(new Error('enough')) : queueMicrotask(() => abortAfter(left - 1));
      zookeeper.fault = async (operation, _path, apply) => {
        if (operation !== 'remove') return;
        apply();
        abortAfter(ticks);
      };
      const taken: string[] = [];
      const iterate = async () => {
        for await (const item of queue(zookeeper, '/queue', {
          format: 'simple',
          signal: over.signal,
          clock,
          random: seededRandom(1),
        }))
          taken.push(item.toString());
      };
      const end = iterate().catch((error) => error.fault);
      await settled();
      over.abort(new Error('enough'));
      expect(
        taken.length === 1 || (await end) === 'outcome-unknown',
        `after ${ticks}: ${taken} ${await end}`,
      ).toBe(true);
    }
  });
});

it('a taker that cannot put back what is left of a znode keeps it for another call, those after it first', async () => {
  const clock = new VirtualClock();
  const zookeeper = new AnySession(clock);
  const path = '/queue/queue-0000000000';
  for (const made of ['/queue', path]) zookeeper.put(made, '', undefined);
  const { stat } = zookeeper.znodes.get(path) as Znode;
  zookeeper.znodes.set(path, { stat, data: encodeItems([...'abc'].map((item) => Buffer.from(item))) });
  const taker = queue(zookeeper, '/queue', { format: 'distributed', clock, random: seededRandom(1) });
  expect(String(await taker.take())).toBe('a');
  zookeeper.denied.add('/queue/queue-');
  await expect(taker[Symbol.asyncDispose]()).rejects.toMatchObject({ fault: 'no-auth' });
  zookeeper.denied.clear();
  const putBack: string[] = [];
  const { multi } = zookeeper;
  zookeeper.multi = async (operations, call) => {
    await multi.call(zookeeper, operations, call);
    putBack.push(`${decodeItems(zookeeper.znodes.get('/queue/queue-')?.data ?? Buffer.alloc(0))}`);
    zookeeper.znodes.delete('/queue/queue-');
  };
  zookeeper.fault = async (_operation, _path, apply) => {
    zookeeper.fault = undefined;
    apply();
    throw fails('connection-loss', 'unknown');
  };
  // It may be in the queue: put back once more, it might be there twice.
  await expect(taker[Symbol.asyncDispose]()).rejects.toMatchObject({ fault: 'outcome-unknown' });
  zookeeper.znodes.delete('/queue/queue-');
  await taker[Symbol.asyncDispose]();
  expect(putBack).toEqual(['b']);
});

it('a queue whose items would be their own locks is refused: no item could ever be taken', () => {
  const options = { format: 'distributed', lockPath: '/queue' } as const;
  expect(() => queue(new AnySession(new VirtualClock()), '/queue', options)).toThrow(
    'lockPath: expected another path',
  );
});

describe('a taker that was paused', () => {
  /**
   * Takes two items, with a pause at the answer to the read of the znode or between the two.
   *
   * @param lost whether another taker has them meanwhile, and acknowledges them
   */
  async function takenAround(pauseMs: number, items: string, atRead: boolean, lost: boolean) {
    const clock = new VirtualClock();
    const zookeeper = new AnySession(clock);
    const path = '/queue/queue-0000000000';
    for (const made of ['/queue', '/queue-locks', path]) zookeeper.put(made, '', undefined);
    const { stat } = zookeeper.znodes.get(path) as Znode;
    zookeeper.znodes.set(path, { stat, data: encodeItems([...items].map((item) => Buffer.from(item))) });
    let isPaused = false;
    const pause = () => {
      if (isPaused) return;
      isPaused = true;
      const [pausedAt, heardBy] = [clock.monotonic(), zookeeper.heardBy];
      clock.freeze(pauseMs);
      const goesOnAt = clock.monotonic();
      zookeeper.heardBy = (at) => (at < goesOnAt ? Math.min(pausedAt, heardBy(at)) : heardBy(at));
      if (lost) for (const gone of [path, '/queue-locks/queue-0000000000']) zookeeper.znodes.delete(gone);
    };
    zookeeper.fault = async (operation, of, apply) => {
      apply();
      if (atRead && operation === 'read' && of === path) pause();
    };
    const options = { format: 'distributed', lockPath: '/queue-locks', clock } as const;
    const one = queue(zookeeper, '/queue', { ...options, random: seededRandom(1) });
    const taken: string[] = [];
    const take = async () => taken.push(String((await one.take({ timeoutMs: 60_000 })).data));
    const takeTwo = async () => {
      await take();
      pause();
      await take();
    };
    await inVirtualTime(
      clock,
      takeTwo().catch(() => undefined),
    );
    return { taken, writes: zookeeper.calls.filter((call) => /^(?!read|children)/.test(call)).length };
  }

  it('for longer than its session lasts: does not hand out what it has read, nor what is left of a znode', async () => {
    expect((await takenAround(2 * SESSION_MS, 'a', true, true)).taken).toEqual([]);
    expect((await takenAround(2 * SESSION_MS, 'ab', false, true)).taken).toEqual(['a']);
  });

  it('for less: asks the servers, and hands out', async () => {
    const { taken, writes } = await takenAround(0.8 * SESSION_MS, 'ab', true, false);
    expect(taken).toEqual(['a', 'b']);
    expect(writes).toBeLessThan(10);
    expect((await takenAround(0.8 * SESSION_MS, 'ab', false, false)).taken).toEqual(['a', 'b']);
  });
});
