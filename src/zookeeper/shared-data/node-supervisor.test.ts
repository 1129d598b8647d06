import { expect, it } from 'vitest';
import { AnySession, type Fault, fails, SESSION_MS } from '../../../test/support/scripted-zookeeper.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { sharedData } from './shared-data.js';

const NODES = '/monastery/root/nodes';

/** @param fault of the first request to announce a node, whose reply is lost */
function supervised(fault: (apply: () => void, clock: VirtualClock) => Promise<void>) {
  const clock = new VirtualClock();
  const tree = new AnySession(clock);
  tree.put(NODES, '', undefined);
  const announced: Fault = async (operation, path, apply) => {
    if (operation !== 'create' || path !== `${NODES}/node-`) return;
    tree.fault = undefined;
    await fault(apply, clock);
  };
  tree.fault = announced;
  const data = sharedData(tree, { clock, random: seededRandom(1) });
  const nodes = () => [...tree.znodes.keys()].filter((path) => path.startsWith(`${NODES}/`));
  return { clock, tree, data, supervisor: data.supervise({ data: 'a' }), nodes };
}

it('is one node where the reply to its announcement does not come in time', async () => {
  const { clock, data, supervisor, nodes } = supervised(async (apply) => {
    apply();
    await new Promise(() => undefined);
  });
  const node = await inVirtualTime(clock, supervisor.whenJoined({ timeoutMs: 20_000 }));
  expect(nodes()).toEqual([node.path]);
  expect((await inVirtualTime(clock, data.announce({ data: 'a' }))).path).not.toBe(node.path);
});

it('takes a node away that is announced only when it stops', async () => {
  const { clock, supervisor, nodes } = supervised(async (apply, clock) => {
    await clock.sleep(200);
    apply();
  });
  await clock.advance(100);
  await inVirtualTime(clock, supervisor.stop());
  await clock.advance(1_000);
  expect(nodes()).toEqual([]);
});

it('takes its node away at the next connection where there was none at its end', async () => {
  const { clock, tree, supervisor, nodes } = supervised(async () => undefined);
  await inVirtualTime(clock, supervisor.whenJoined());
  let isAway = true;
  tree.fault = async (operation) => {
    if (operation === 'remove' && isAway) await new Promise(() => undefined);
  };
  await inVirtualTime(clock, supervisor.stop());
  await clock.advance(15_000);
  isAway = false;
  await clock.advance(15_000);
  expect(nodes()).toEqual([]);
});

it.each(['supervisor', 'shared data'])(
  'takes a node away at the next connection whose reply was lost, where there is none until after the end: %s',
  async (which) => {
    const { clock, tree, data, supervisor, nodes } = supervised(async (apply) => {
      apply();
      tree.state = { status: 'suspended', sessionId: 'a', timeoutMs: SESSION_MS };
      throw fails('connection-loss', 'unknown');
    });
    const connected = await tree.whenConnected();
    tree.whenConnected = async () => {
      while (tree.state !== connected) await clock.sleep(100);
      return connected;
    };
    await clock.advance(6_000);
    await inVirtualTime(clock, which === 'supervisor' ? supervisor.stop() : data.close());
    await clock.advance(4_000);
    expect(nodes()).toHaveLength(1);
    tree.become(connected);
    await clock.advance(1_000);
    expect([supervisor.state.status, nodes()]).toEqual(['stopped', []]);
  },
);

it('announces none any more where there was no connection until its lease was lost', async () => {
  const { clock, tree, data, supervisor } = supervised(async () => undefined);
  await inVirtualTime(clock, supervisor.stop());
  tree.calls.length = 0;
  const state = await tree.whenConnected();
  tree.whenConnected = () => clock.sleep(2_000).then(() => state);
  const lost = new AbortController();
  const next = data.supervise({ lease: { id: 1, version: 2, taskId: 't', signal: lost.signal } });
  await clock.advance(100);
  lost.abort();
  await clock.advance(10_000);
  expect([next.state.status, tree.calls]).toEqual(['stopped', []]);
});
