import { describe, expect, it } from 'vitest';
import { AnySession, ScriptedZooKeeper, SESSION_MS } from '../../../../test/support/scripted-zookeeper.js';
import {
  inVirtualTime,
  seededRandom,
  settled,
  VirtualClock,
} from '../../../../test/support/virtual-clock.js';
import { queue } from './queue.js';
import { encodeItems } from './queue-items.js';

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

describe('a taker that was paused for longer than its session lasts', () => {
  /** Another taker has had what is in the znode, and acknowledged it, before the answer is read. */
  async function takenAfterPause(items: string, atRead: boolean): Promise<string[]> {
    const clock = new VirtualClock();
    const zookeeper = new AnySession(clock);
    zookeeper.put('/queue', '', undefined);
    zookeeper.put('/queue-locks', '', undefined);
    zookeeper.put('/queue/queue-0000000000', '', undefined);
    const pause = () => {
      const heardAt = clock.monotonic();
      zookeeper.heardBy = () => heardAt;
      zookeeper.znodes.delete('/queue/queue-0000000000');
      zookeeper.znodes.delete('/queue-locks/queue-0000000000');
      clock.freeze(2 * SESSION_MS);
    };
    zookeeper.fault = async (operation, path, apply) => {
      apply();
      if (atRead && operation === 'read' && path === '/queue/queue-0000000000') pause();
    };
    const znode = zookeeper.znodes.get('/queue/queue-0000000000');
    if (znode)
      zookeeper.znodes.set('/queue/queue-0000000000', {
        ...znode,
        data: encodeItems([...items].map((item) => Buffer.from(item))),
      });
    const options = {
      format: 'distributed',
      lockPath: '/queue-locks',
      clock,
      random: seededRandom(1),
    } as const;
    const one = queue(zookeeper, '/queue', options);
    const taken: string[] = [];
    const take = async () => {
      taken.push(String((await one.take({ timeoutMs: 0 })).data));
      pause();
      taken.push(String((await one.take({ timeoutMs: 0 })).data));
    };
    await inVirtualTime(
      clock,
      take().catch(() => taken.push('nothing')),
    );
    return taken;
  }

  it('does not hand out what it has read, nor what is left of a znode', async () => {
    expect(await takenAfterPause('a', true)).toEqual(['nothing']);
    expect(await takenAfterPause('ab', false)).toEqual(['a', 'nothing']);
  });
});
