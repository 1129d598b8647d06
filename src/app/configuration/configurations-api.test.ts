import { expect, it } from 'vitest';
import { AnySession, fails } from '../../../test/support/scripted-zookeeper.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { ConfigEntry } from '../../node/wire/entries-wire.js';
import { ConfigPublisher } from '../../zookeeper/configuration/publisher.js';
import { EntriesModel } from '../console/model/entries-model.js';
import { nodeApp } from '../http/node-app.js';
import { configurationsPage } from './configurations-api.js';

const RANDOM = seededRandom(1);

function setUp() {
  const clock = new VirtualClock();
  const zookeeper = new AnySession(clock);
  const app = nodeApp({ clock, parts: [configurationsPage({ zookeeper, random: RANDOM })] });
  const publish = async (app: string, values: Readonly<Record<string, string | null>>, nodes?: string) => {
    const author = { author: 'ada', clock, random: RANDOM };
    const publisher = new ConfigPublisher(zookeeper, { app, profile: 'prod', nodes, ...author });
    const changes = Object.entries(values).map(([key, value]) => ({ key, new: value }));
    await inVirtualTime(clock, publisher.publish(changes, { message: 'why' }));
  };
  const seen = (context: string, nodeId: number, revisions: Readonly<Record<string, number>>) => {
    const path = `/config/.nodelease/seen/${context}`;
    zookeeper.put(path, '', undefined);
    zookeeper.put(`${path}/${nodeId}`, JSON.stringify({ revisions, at: 'now' }), 'b');
  };
  const follow = async (ms = 2_500) => {
    const model = new EntriesModel<ConfigEntry>(clock, () => undefined);
    const events: string[] = [];
    const reader = (await app.request('/api/configurations')).body?.getReader();
    const read = async () => {
      for (let text = ''; ; ) {
        const { done, value } = (await reader?.read()) ?? { done: true };
        if (done) return;
        const blocks = (text + Buffer.from(value as Uint8Array)).split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) {
          const [, event = '', data = ''] = /event: (.*)\ndata: (.*)$/.exec(block) ?? [];
          if (event === '') continue;
          events.push(event);
          model.apply({ event, data });
        }
      }
    };
    void read();
    await clock.advance(ms);
    return { model, events, stop: () => reader?.cancel() };
  };
  const get = async (path: string) => {
    const response = await inVirtualTime(clock, Promise.resolve(app.request(path)));
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { clock, zookeeper, publish, seen, follow, get };
}

it('a page gets every context with its values, its revision and the nodes that run it, and what changes', async () => {
  const { clock, zookeeper, publish, seen, follow } = setUp();
  await publish('shop', { 'db.url': 'pg://db1', size: '10' });
  await publish('shop', { size: '20' }, '0-3');
  seen('shop,prod', 2, { 'shop,prod': 1, 'shop,prod@nodes=0-3': 1 });
  seen('shop,prod', 7, { 'shop,prod': 1 });
  zookeeper.put('/config/by-hand', '', undefined);
  zookeeper.put('/config/by-hand/key', 'x'.repeat(5_000), undefined);
  const { model } = await follow();
  const node = { follows: 'shop,prod', revisions: { 'shop,prod': 1 }, at: 'now', behind: [] };
  const nodes = [
    { nodeId: 2, ...node, revisions: { 'shop,prod': 1, 'shop,prod@nodes=0-3': 1 } },
    { nodeId: 7, ...node },
  ];
  expect(Object.fromEntries(model.entries)).toEqual({
    'by-hand': { context: 'by-hand', revision: 0, keys: 1, nodes: [], problem: null },
    'by-hand/key': { context: 'by-hand', key: 'key', value: `${'x'.repeat(1_999)}…` },
    'shop,prod': { context: 'shop,prod', revision: 1, keys: 2, nodes, problem: null },
    'shop,prod/db.url': { context: 'shop,prod', key: 'db.url', value: 'pg://db1' },
    'shop,prod/size': { context: 'shop,prod', key: 'size', value: '10' },
    'shop,prod@nodes=0-3': {
      context: 'shop,prod@nodes=0-3',
      revision: 1,
      keys: 1,
      nodes: nodes.slice(0, 1),
      problem: null,
    },
    'shop,prod@nodes=0-3/size': { context: 'shop,prod@nodes=0-3', key: 'size', value: '20' },
  });
  await publish('shop', { size: null, more: '1' });
  zookeeper.overwrite('/config/by-hand/key', 'y');
  await clock.advance(2_500);
  expect(model.entries.get('by-hand/key')).toMatchObject({ value: 'y' });
  expect(model.entries.has('shop,prod/size')).toBe(false);
  expect(model.entries.get('shop,prod/more')).toMatchObject({ value: '1' });
  expect(model.entries.get('shop,prod')).toMatchObject({
    revision: 2,
    nodes: [
      { nodeId: 2, behind: ['shop,prod'] },
      { nodeId: 7, behind: ['shop,prod'] },
    ],
  });
});

it('is read for all pages once, while there is one, and sent again only where it changes', async () => {
  const { clock, zookeeper, publish, follow } = setUp();
  await publish('shop', { a: '1' });
  const [first, second] = [await follow(), await follow()];
  const readsOf = async () => {
    const before = zookeeper.calls.length;
    await clock.advance(60_000);
    return zookeeper.calls.slice(before).filter((call) => call === 'read /config/shop,prod/a').length;
  };
  expect(await readsOf()).toBe(30);
  expect(first.events).toEqual(['hello', 'status', 'entries', 'status']);
  await first.stop();
  expect(await readsOf()).toBe(30);
  await second.stop();
  // A page that is loaded again.
  const again = await follow(0);
  expect([again.model.entries.size, again.model.store.isWhole]).toEqual([2, true]);
  await again.stop();
  expect(await readsOf()).toBe(0);
  // What another page was shown may be old by now.
  await publish('shop', { b: '2', a: null });
  const later = await follow();
  expect([...later.model.entries.keys()].sort()).toEqual(['shop,prod', 'shop,prod/b']);
});

it('what may not be read, and a ZooKeeper that is away, are shown as such', async () => {
  const { clock, zookeeper, publish, follow } = setUp();
  await publish('shop', { a: '1' });
  await publish('cart', { b: '2' });
  zookeeper.fault = async (operation, path) => {
    if (operation === 'read' && path === '/config/cart,prod') throw fails('no-auth', 'not-applied');
  };
  const { model } = await follow();
  expect(model.entries.get('cart,prod')).toMatchObject({ keys: 0, problem: 'may not be read' });
  expect(model.entries.get('shop,prod/a')).toMatchObject({ value: '1' });
  const { state } = zookeeper;
  zookeeper.become({ status: 'connecting', sessionId: undefined } as never);
  await clock.advance(5_000);
  expect([model.store.state, model.store.problem, model.entries.size]).toEqual(['failing', 'timeout', 3]);
  zookeeper.become(state);
  await clock.advance(5_000);
  expect([model.store.state, model.staleSince]).toEqual(['ok', undefined]);
});

it('a context whose nodes may not be read has its values all the same, and says why they are unknown', async () => {
  const { zookeeper, publish, seen, follow } = setUp();
  await publish('shop', { a: '1' });
  await publish('cart', { b: '2' });
  seen('shop,prod', 7, { 'shop,prod': 1 });
  seen('cart,prod', 8, { 'cart,prod': 1 });
  seen('secret', 9, { secret: 1 });
  seen('a,foreign,name', 9, {});
  zookeeper.fault = async (_operation, path) => {
    if (/seen\/(cart,prod|secret)$|history\/secret$/.test(path)) throw fails('no-auth', 'not-applied');
  };
  const { model } = await follow();
  expect([model.store.state, model.store.isWhole]).toEqual(['ok', true]);
  const problem = 'its nodes are unknown: no-auth';
  expect(Object.fromEntries(model.entries)).toMatchObject({
    'cart,prod': { revision: 1, keys: 1, nodes: [], problem },
    'cart,prod/b': { value: '2' },
    secret: { revision: 0, keys: 0, nodes: [], problem: 'may not be read' },
    'shop,prod': { revision: 1, nodes: [{ nodeId: 7, behind: [] }], problem: null },
    'shop,prod/a': { value: '1' },
  });
  expect(model.entries.size).toBe(5);
});

it('has the history of a context, and the differences between two of its revisions', async () => {
  const { zookeeper, publish, get } = setUp();
  await publish('shop', { a: '1', b: '1' });
  await publish('shop', { a: '2' });
  await publish('shop', { b: null, c: '3' });
  const path = '/api/configurations/shop%2Cprod';
  const { status, body } = await get(path);
  expect([status, body]).toMatchObject([
    200,
    {
      revisions: [
        { revision: 3, author: 'ada', message: 'why', keys: ['b', 'c'] },
        { revision: 2, keys: ['a'] },
        { revision: 1, keys: ['a', 'b'] },
      ],
      from: 2,
      to: 3,
      changes: [
        { key: 'b', old: '1', new: null },
        { key: 'c', old: null, new: '3' },
      ],
    },
  ]);
  const changesOf = async (query: string) => (await get(path + query)).body.changes;
  expect(await changesOf('?from=1')).toEqual([
    { key: 'a', old: '1', new: '2' },
    { key: 'b', old: '1', new: null },
    { key: 'c', old: null, new: '3' },
  ]);
  expect(await changesOf('?from=2&to=1')).toEqual([{ key: 'a', old: '2', new: '1' }]);
  expect((await get('/api/configurations/none')).body).toEqual({
    revisions: [],
    from: 0,
    to: 0,
    changes: [],
  });
  expect(await get(`${path}?from=9`)).toEqual({
    status: 404,
    body: { error: 'not-found', message: 'there is no revision 9: the history goes from 0 to 3' },
  });
  expect(await get(`${path}?from=x`)).toMatchObject({ status: 400, body: { error: 'bad-request' } });
  expect(await get('/api/configurations/..%2Fa')).toMatchObject({ status: 400 });
  zookeeper.overwrite('/config/.nodelease/history/shop,prod/rev-0000000002', '{');
  expect((await get(path)).body.message).toContain('rev-0000000002 is damaged');
});
