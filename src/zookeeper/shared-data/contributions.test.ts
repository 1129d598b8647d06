import { expect, it } from 'vitest';
import { AnySession, SESSION_MS } from '../../../test/support/scripted-zookeeper.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { sharedData } from './shared-data.js';

it('takes ephemeral data away at the next connection where there was none at its end', async () => {
  const clock = new VirtualClock();
  const tree = new AnySession(clock);
  const data = sharedData(tree, { clock, random: seededRandom(1) });
  const present = await inVirtualTime(clock, data.set('present', { lifespan: 'ephemeral' }));
  await inVirtualTime(clock, present.add('node a'));
  const elements = () => [...tree.znodes.keys()].filter((path) => path.startsWith(`${present.path}/`));
  expect(elements()).toHaveLength(1);
  const { state } = tree;
  tree.become({ status: 'suspended', sessionId: 'a', timeoutMs: SESSION_MS });
  await inVirtualTime(clock, data.close());
  expect(elements()).toHaveLength(1);
  tree.become(state);
  await clock.advance(1_000);
  expect([elements(), data.state.status]).toEqual([[], 'closed']);
  await expect(inVirtualTime(clock, present.add('node b'))).rejects.toThrow('closed');
});

it('appends to an ephemeral list whatever the names of foreign znodes in it are', async () => {
  const clock = new VirtualClock();
  const tree = new AnySession(clock);
  const data = sharedData(tree, { clock, random: seededRandom(1) });
  const list = await inVirtualTime(clock, data.list('list', { lifespan: 'ephemeral' }));
  tree.put(`${list.path}/${Number.MAX_SAFE_INTEGER}`, '', 'b');
  await inVirtualTime(clock, list.append('mine'));
  expect(tree.znodes.has(`${list.path}/0`)).toBe(true);
});
