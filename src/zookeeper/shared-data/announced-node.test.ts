import { expect, it } from 'vitest';
import { AnySession, fails, SESSION_MS } from '../../../test/support/scripted-zookeeper.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { sharedData } from './shared-data.js';

const NODES = '/monastery/root/nodes';

/** The replies to that many announcements are lost. */
function announcing({ lost, afterMs }: { lost: number; afterMs: number }) {
  const clock = new VirtualClock();
  const tree = new AnySession(clock);
  tree.put(NODES, '', undefined);
  let left = lost;
  tree.fault = async (operation, path, apply) => {
    if (operation !== 'create' || path !== `${NODES}/node-` || left-- <= 0) return;
    apply();
    await clock.sleep(afterMs);
    throw fails('connection-loss', 'unknown');
  };
  const data = sharedData(tree, { clock, random: seededRandom(1) });
  const announced = async (...texts: string[]) => {
    const nodes = texts.map(async (text) => (await data.announce({ data: text })).path);
    return (await inVirtualTime(clock, Promise.allSettled(nodes))).flatMap((each) =>
      each.status === 'fulfilled' ? each.value : [],
    );
  };
  const nodes = () => [...tree.znodes.keys()].filter((path) => path.startsWith(`${NODES}/`));
  return { clock, tree, announced, nodes };
}

it.each([
  { lost: 2, afterMs: 100 },
  { lost: 1, afterMs: 6_000 },
])('nodes that are announced at once are one znode each where replies are lost: %o', async (replies) => {
  const { announced, nodes } = announcing(replies);
  const first = await announced('a', 'a');
  expect([...first, ...(await announced('a', 'a'))].sort()).toEqual(nodes());
});

it('a node whose reply was lost is found where another has been announced since', async () => {
  const { announced, nodes } = announcing({ lost: 1, afterMs: 6_000 });
  expect(await announced('a')).toEqual([]);
  await announced('b');
  await announced('a');
  expect(nodes()).toHaveLength(2);
});

it('a node whose request was lost is not taken for that of another object with the same client', async () => {
  const { clock, tree, announced, nodes } = announcing({ lost: 0, afterMs: 0 });
  const [first] = await announced('a');
  tree.fault = async (operation) => {
    if (operation !== 'create') return;
    tree.fault = undefined;
    throw fails('connection-loss', 'unknown');
  };
  const other = sharedData(tree, { clock, random: seededRandom(2) });
  const { path } = await inVirtualTime(clock, other.announce({ data: 'a' }));
  expect(nodes()).toEqual([first, path]);
});

it('a node whose reply was lost is found where one with the same data has been announced below another root', async () => {
  const { clock, tree, announced, nodes } = announcing({ lost: 1, afterMs: 6_000 });
  expect(await announced('a')).toEqual([]);
  const other = sharedData(tree, { clock, random: seededRandom(2), root: '/other' });
  await inVirtualTime(clock, other.announce({ data: 'a' }));
  expect(await announced('a')).toEqual(nodes());
});

it('a node that could not be announced without a connection is not searched among all others', async () => {
  const { tree, announced } = announcing({ lost: 0, afterMs: 0 });
  const { state } = tree;
  tree.become({ status: 'suspended', sessionId: 'a', timeoutMs: SESSION_MS });
  expect(await announced('a')).toEqual([]);
  tree.become(state);
  expect(await announced('a')).toHaveLength(1);
  expect(tree.calls).toEqual([`create ${NODES}/node-`]);
});
