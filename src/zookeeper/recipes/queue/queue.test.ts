import { describe, expect, it } from 'vitest';
import { ScriptedZooKeeper } from '../../../../test/support/scripted-zookeeper.js';
import { seededRandom, settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { queue } from './queue.js';

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
