import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { ConfigConflictError } from '../../../src/configuration/index.js';
import { stopProxies } from '../../support/network/proxies.js';
import { expireSession } from '../../support/zookeeper.js';
import { RecipeScene } from '../recipes/recipe-scene.js';
import { keys, publisher } from './config-scene.js';

const PUBLISHERS = 50;
const RUN_MS = 60_000;
const KEEP = 10_000;
let scene: RecipeScene;
beforeEach(() => {
  scene = new RecipeScene();
});
afterEach(async () => {
  await scene.close();
  await stopProxies();
});

// One half reads, adds one, and publishes what it expects to stand; the other half adds one to whatever stands. Connections break, and sessions end.
it('50 publishers lose no update in a minute of broken connections, and the history is whole', { timeout: 240_000 }, async () => {
  const through = await Promise.all(Array.from({ length: PUBLISHERS }, () => scene.openThroughProxy({ sessionTimeoutMs: 10_000 })));
  const end = performance.now() + RUN_MS;
  const tally = { published: 0, conflicts: 0, unknown: 0 };
  const countOf = (properties: ReadonlyMap<string, string>) => Number(properties.get('total') ?? 0);
  const work = through.map(async ({ client }, id) => {
    const config = publisher(client, { author: `p${id}`, keep: KEEP });
    for (let own = 0; performance.now() < end; ) {
      const changes = (state: { properties: ReadonlyMap<string, string> }) =>
        keys({ total: String(countOf(state.properties) + 1), [`by.p${id}`]: String(own + 1) });
      try {
        const state = await config.read();
        // What became of the last one, where that was not told.
        own = Number(state.properties.get(`by.p${id}`) ?? 0);
        const expected = id % 2 === 0 ? { expect: state.revision } : {};
        await config.publish(id % 2 === 0 ? changes(state) : changes, { timeoutMs: 30_000, ...expected });
        tally.published += 1;
      } catch (error) {
        if (error instanceof ConfigConflictError) tally.conflicts += 1;
        else if ((error as { outcome?: string }).outcome === 'unknown') tally.unknown += 1;
        else throw error;
      }
    }
  });
  const faults = (async () => {
    for (let n = 0; performance.now() < end - 5_000; n += 1) {
      const { client, proxy } = through[(n * 7) % PUBLISHERS] as (typeof through)[0];
      const { state } = client;
      if (n % 5 === 4 && state.status === 'connected')
        await expireSession({ connect: inject('zookeeper').connect, sessionId: state.sessionId }).catch(() => undefined);
      else if (n % 2 === 0) proxy.reset();
      else {
        proxy.stall('to-client');
        await new Promise((resolve) => setTimeout(resolve, 50));
        proxy.heal();
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  await Promise.all([...work, faults]);

  const config = publisher(await scene.open(), { keep: KEEP });
  const { revision, properties } = await config.read();
  const history = (await config.history()).toReversed();
  console.log(JSON.stringify({ ...tally, revision }));
  expect(tally.published).toBeGreaterThan(500);
  expect(tally.conflicts).toBeGreaterThan(0);
  expect(history.map((each) => each.revision)).toEqual(Array.from({ length: revision }, (_, at) => at + 1));
  // Each revision added one to what the one before it left, for one publisher.
  const replayed = new Map<string, string>();
  for (const { revision: number, base, author, changes } of history) {
    expect(base).toBe(number - 1);
    for (const { key, old, new: value } of changes) {
      expect([number, key, replayed.get(key) ?? null]).toEqual([number, key, old]);
      expect(Number(value)).toBe(Number(old) + 1);
      replayed.set(key, value as string);
    }
    expect(changes.map(({ key }) => key).sort()).toEqual([`by.${author}`, 'total']);
  }
  expect(properties).toEqual(new Map([...replayed].sort()));
  expect(countOf(properties)).toBe(revision);
  // What was told to be published was; only what was told to be unknown may be more.
  expect(revision).toBeGreaterThanOrEqual(tally.published);
  expect(revision).toBeLessThanOrEqual(tally.published + tally.unknown);
});
