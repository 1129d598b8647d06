import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import {
  ConfigConflictError,
  type ContextState,
  type Revision,
} from '../../../../src/zookeeper/configuration/index.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { expireSession } from '../../../support/zookeeper.js';
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

// One half reads, adds one, and publishes what it expects to stand; the other half adds one to whatever
// stands. Connections break, and sessions end.
it('50 publishers lose no update in a minute of broken connections, and the history is whole', async () => {
  const through = await Promise.all(
    Array.from({ length: PUBLISHERS }, () => scene.openThroughProxy({ sessionTimeoutMs: 10_000 })),
  );
  const end = performance.now() + RUN_MS;
  const reported: (Partial<Revision> & { readonly by: string })[] = [];
  const tally = { published: 0, conflicts: 0, unknown: 0 };
  const next = ({ properties }: Pick<ContextState, 'properties'>) =>
    String(Number(properties.get('total') ?? 0) + 1);
  const work = through.map(async ({ client }, id) => {
    const config = publisher(client, { author: `p${id}`, keep: KEEP });
    const changes = (state: Pick<ContextState, 'properties'>) =>
      keys({ total: next(state), 'again.total': next(state), by: `p${id}` });
    for (let n = 0; performance.now() < end; n += 1) {
      try {
        if (id % 2 === 0)
          reported.push({
            ...(await config.publish(changes, { timeoutMs: 60_000, message: `${n}` })),
            by: `p${id}:${n}`,
          });
        else {
          const state = await config.read();
          reported.push({
            ...(await config.publish(changes(state), {
              timeoutMs: 60_000,
              message: `${n}`,
              expect: state.revision,
            })),
            by: `p${id}:${n}`,
          });
        }
        tally.published += 1;
      } catch (error) {
        if (error instanceof ConfigConflictError) tally.conflicts += 1;
        else if ((error as { outcome?: string }).outcome === 'unknown') tally.unknown += 1;
        else throw error;
        await sleep(Math.random() * 500);
      }
    }
  });
  const faults = (async () => {
    for (let n = 0; performance.now() < end - 5_000; n += 1) {
      const { state } = (through[(n * 7) % PUBLISHERS] as (typeof through)[0]).client;
      const some = through.filter((_, id) => id % 3 === n % 3);
      if (n % 4 === 0 && state.status === 'connected')
        await expireSession({ connect: inject('zookeeper').connect, sessionId: state.sessionId }).catch(
          () => undefined,
        );
      // What the server has carried out meanwhile is not answered any more.
      for (const { proxy } of some) proxy.stall('to-client');
      await sleep(20);
      for (const { proxy } of some) proxy.heal();
      await sleep(400);
    }
  })();
  await Promise.all([...work, faults]);

  const config = publisher(await scene.open(), { keep: KEEP });
  const { revision, properties } = await config.read();
  const history = (await config.history()).toReversed();
  console.log(JSON.stringify({ ...tally, revision }));
  expect(tally.published).toBeGreaterThan(100);
  expect(tally.conflicts).toBeGreaterThan(0);
  expect(history.map((each) => each.revision)).toEqual(Array.from({ length: revision }, (_, at) => at + 1));
  // Each revision added one to what the one before it left, and no publish stands there twice.
  const replayed = new Map<string, string | null>();
  for (const { revision: number, base, author, changes } of history) {
    expect(base).toBe(number - 1);
    for (const { key, old, new: value } of changes) {
      expect([number, key, old]).toEqual([number, key, replayed.get(key) ?? null]);
      replayed.set(key, value);
    }
    expect([replayed.get('total'), replayed.get('again.total'), replayed.get('by')]).toEqual([
      `${number}`,
      `${number}`,
      author,
    ]);
  }
  expect(new Set(history.map(({ author, message }) => `${author}:${message}`)).size).toBe(revision);
  expect(new Map([...properties].sort())).toEqual(new Map([...replayed].sort()));
  expect(
    reported.filter(
      ({ revision: number = 0, by }) =>
        `${history[number - 1]?.author}:${history[number - 1]?.message}` !== by,
    ),
  ).toEqual([]);
  // What was reported as published was; only what was reported as unknown may be more.
  expect(revision).toBeGreaterThanOrEqual(tally.published);
  expect(revision).toBeLessThanOrEqual(tally.published + tally.unknown);
});
