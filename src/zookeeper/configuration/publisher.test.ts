import { expect, it } from 'vitest';
import { LaggingServer } from '../../../test/support/scripted-zookeeper.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { historyPath } from './layout.js';
import { configPublisher } from './publisher.js';

it.each([
  ['a new value where that revision is expected', '2', 1],
  ['that a key is not set any more', null, undefined],
])('publishes %s at a server that does not show the first revision yet', async (_, value, expected) => {
  const clock = new VirtualClock();
  const zookeeper = new LaggingServer(clock);
  const head = { revision: 1, base: 0, at: '', author: 'eve', message: '', changes: [], id: 'x' };
  for (const path of ['/config', '/config/shop', '/config/.nodelease', historyPath('/config')])
    zookeeper.put(path, '', undefined);
  zookeeper.put(historyPath('/config', 'shop'), JSON.stringify(head), undefined);
  zookeeper.put('/config/shop/a', '1', undefined);
  const publisher = configPublisher(zookeeper, {
    app: 'shop',
    author: 'ada',
    clock,
    random: seededRandom(1),
  });
  const publishing = publisher.publish([{ key: 'a', new: value }], { expect: expected });
  expect(await inVirtualTime(clock, publishing)).toMatchObject({
    revision: 2,
    changes: [{ key: 'a', old: '1', new: value }],
  });
});
