import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { ClusterEvent, ClusterHello, StoreHealth } from '../../../node/wire/cluster-snapshot.js';
import type { NodeReport, StatusReport } from '../../../node/wire/status-report.js';
import { ClusterModel } from './cluster-model.js';

const OK: StoreHealth = { state: 'ok', problem: null, latencyMs: 5, clockOffsetMs: null, lookedAt: 1 };

function node(id: number, facts: Partial<NodeReport> = {}): NodeReport {
  const held = {
    state: 'held',
    version: 1,
    taskId: `task-${id}`,
    ageMs: [0, 1],
    expiresInMs: 3_000,
    timestamp: 1,
    knownNodes: {},
  } as const;
  return { id, ...held, idWidth: 8, problem: null, ...facts };
}

function event(id: number, facts: Partial<ClusterEvent> = {}): ClusterEvent {
  const nothing = { since: null, previousTaskId: null };
  return {
    ...nothing,
    id,
    at: id,
    kind: 'acquired',
    nodeId: 0,
    version: 1,
    taskId: 'a',
    text: `event ${id}`,
    ...facts,
  };
}

function report(nodes: readonly NodeReport[], facts: Partial<StatusReport> = {}): StatusReport {
  const cluster = { size: nodes.length, durationMs: 3_000, graceMs: 1_000, idWidth: 8, bootstrapped: true };
  return {
    store: 'file:x',
    cluster,
    discovery: null,
    allocation: null,
    draining: [],
    totals: null,
    page: null,
    nodes,
    ...facts,
  };
}

function hello(facts: Partial<ClusterHello> = {}): ClusterHello {
  return {
    epoch: 'a',
    instance: null,
    report: report([node(0), node(1)]),
    store: OK,
    tree: null,
    events: [],
    ...facts,
  };
}

let clock: VirtualClock;
let model: ClusterModel;

beforeEach(() => {
  clock = new VirtualClock();
  model = new ClusterModel(clock);
});

const send = (name: string, data: unknown) => model.apply({ event: name, data: JSON.stringify(data) });
const begin = (facts?: Partial<ClusterHello>) => {
  model.connection(true);
  send('hello', hello(facts));
};
const ids = () => model.nodes.map(({ node: { id } }) => id);
const states = () => model.nodes.map((seen) => model.look(seen).state);
const lefts = () => model.nodes.map((seen) => model.look(seen).left);

describe('the leases', () => {
  it('run out by the time that has passed since the page received them, and are full again with a renewal', async () => {
    begin();
    await clock.advance(2_000);
    expect(lefts()).toEqual([1_000, 1_000]);
    send('report', report([node(0, { expiresInMs: 1_000 }), node(1)]));
    await clock.advance(1_500);
    expect([lefts(), states()]).toEqual([
      [-500, 1_500],
      ['overdue', 'held'],
    ]);
  });

  it('may be taken only when the server says so, however long they are overdue', async () => {
    begin();
    await clock.advance(60_000);
    expect(states()).toEqual(['overdue', 'overdue']);
    send(
      'report',
      report([node(0, { state: 'expired', expiresInMs: -2_000 }), node(1, { expiresInMs: -1 })]),
    );
    expect(states()).toEqual(['expired', 'overdue']);
  });

  it('do not seem to run out without news of them: they stay as they were in the last message', async () => {
    begin();
    await clock.advance(500);
    send('report', report([node(0), node(1)]));
    await clock.advance(1_000);
    model.connection(false);
    await clock.advance(60_000);
    expect([lefts(), model.staleSince]).toEqual([[3_000, 3_000], 500]);
    begin();
    expect([lefts(), model.staleSince]).toEqual([[3_000, 3_000], undefined]);
  });

  it('do not seem to run out while the store fails, either', async () => {
    begin();
    await clock.advance(4_000);
    send('store', { ...OK, state: 'failing', problem: 'no answer' });
    await clock.advance(10_000);
    expect([states(), model.staleSince]).toEqual([['held', 'held'], 0]);
    send('store', OK);
    expect(model.staleSince).toBeUndefined();
  });

  it('go when the cluster shrinks, and come when it grows', () => {
    begin();
    send('report', report([node(0)]));
    expect(ids()).toEqual([0]);
    const free = { state: 'released', taskId: null, expiresInMs: null } as const;
    send('report', report([node(0), node(1, free), node(2, free)]));
    expect([ids(), states()]).toEqual([
      [0, 1, 2],
      ['held', 'free', 'free'],
    ]);
  });

  it('come page by page in a large cluster, each in place of what its ids were before', () => {
    begin({ report: report([node(0), node(1)], { page: { from: 0, limit: 2, next: 2 } }) });
    send('page', { nodes: [node(2), node(4)], page: { from: 2, limit: 2, next: 5 } });
    send('page', { nodes: [node(5), node(6)], page: { from: 5, limit: 2, next: null } });
    expect(ids()).toEqual([0, 1, 2, 4, 5, 6]);
    // The next snapshot: the others stay until their page has come.
    send('report', report([node(0, { version: 2 }), node(1)], { page: { from: 0, limit: 2, next: 2 } }));
    expect([ids(), model.node(0)?.node.version]).toEqual([[0, 1, 2, 4, 5, 6], 2]);
    send('page', { nodes: [node(3)], page: { from: 2, limit: 2, next: 5 } });
    send('page', { nodes: [node(5)], page: { from: 5, limit: 2, next: null } });
    expect(ids()).toEqual([0, 1, 3, 5]);
  });

  it('are drawn from the same object after a renewal, and from another one after every visible change', () => {
    begin();
    const shown = () => model.lookAtAll().map(({ node }) => node);
    const [before, other] = shown();
    send('report', report([node(0, { ageMs: [1, 2], expiresInMs: 2_000, knownNodes: { 1: 1 } }), node(1)]));
    expect(shown()[0]).toBe(before);
    expect(lefts()).toEqual([2_000, 3_000]);
    const changes = [{ version: 2 }, { taskId: 'b' }, { state: 'expired' }, { problem: 'damaged' }] as const;
    for (const change of changes) {
      send('report', report([node(0), node(1)]));
      send('report', report([node(0, change), node(1)]));
      expect(shown()).toEqual([node(0, change), other]);
    }
  });

  it('of groups in ZooKeeper are free where there is no znode', () => {
    const allocation = { zookeeper: 'zk:2181', groups: [1], idWidth: 9 };
    begin({ report: report([node(250)], { store: null, cluster: null, allocation }) });
    expect([
      model.nodes.length,
      model.nodes[0]?.node.id,
      model.node(249)?.node.state,
      model.node(250)?.node.state,
    ]).toEqual([256, 248, 'vacant', 'held']);
  });
});

describe('a page that is opened while the store cannot be looked at', () => {
  it('says how old that is what it shows, and lets nothing run out meanwhile', async () => {
    await clock.advance(3_600_000);
    const failing: StoreHealth = {
      ...OK,
      state: 'failing',
      problem: 'no answer',
      lookedAt: clock.now() - 3_000_000,
    };
    begin({ store: failing });
    expect(model.now).toBe(failing.lookedAt);
    expect([clock.monotonic() - (model.staleSince ?? 0), lefts()]).toEqual([3_000_000, [3_000, 3_000]]);
    await clock.advance(5_000);
    send('store', failing);
    expect([clock.monotonic() - (model.staleSince ?? 0), model.now]).toEqual([3_005_000, failing.lookedAt]);
    // The wall clocks need not agree.
    begin({ store: { ...failing, lookedAt: clock.now() + 60_000 } });
    expect(clock.monotonic() - (model.staleSince ?? 0)).toBe(0);
    send('store', OK);
    expect([model.staleSince, model.now]).toEqual([undefined, clock.now()]);
  });
});

describe('a cluster that is gone', () => {
  it('leaves no node ids behind, and those of another one are shown', () => {
    begin();
    send('report', report([], { cluster: null }));
    expect(model.nodes).toEqual([]);
    send('report', report([node(0), node(1)]));
    expect(states()).toEqual(['held', 'held']);
  });
});

describe('the events', () => {
  const numbers = () => model.events.map(({ id }) => id);
  const news = () => model.takeNews().map(({ id }) => id);

  it('continue with their numbers after a reconnect, none twice and none missing', () => {
    begin({ events: [event(1)] });
    send('change', event(2));
    expect([numbers(), news()]).toEqual([[2, 1], [2]]);
    begin({ events: [event(1), event(2), event(3)] });
    send('change', event(3));
    send('change', event(4));
    expect([numbers(), news(), news()]).toEqual([[4, 3, 2, 1], [3, 4], []]);
  });

  it('are the past ones, not the coming ones, on a page that is opened', () => {
    begin({ report: null, events: [event(1), event(2)] });
    expect([numbers(), model.lastOld, news()]).toEqual([[2, 1], 2, []]);
  });

  it('start again with another server process', () => {
    begin({ events: [event(1), event(2)] });
    begin({ epoch: 'b', events: [event(1, { text: 'another' })] });
    expect([model.events, model.lastOld, news()]).toMatchObject([[{ text: 'another' }], 1, []]);
    send('change', event(2));
    expect(news()).toEqual([2]);
  });

  it('that are kept are the last 200', () => {
    begin();
    for (let id = 1; id <= 250; id += 1) send('change', event(id));
    expect([numbers().length, numbers().at(-1)]).toEqual([200, 51]);
  });
});

describe('a cluster that could not be read', () => {
  it('is known of, and filled in later', () => {
    const failing: StoreHealth = {
      state: 'failing',
      problem: 'no answer',
      latencyMs: null,
      clockOffsetMs: null,
      lookedAt: null,
    };
    begin({ report: null, store: failing });
    expect([model.isKnown, model.cluster, model.nodes]).toEqual([true, null, []]);
    send('report', report([node(0), node(1)]));
    send('store', OK);
    expect(states()).toEqual(['held', 'held']);
  });
});
