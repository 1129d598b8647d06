import { describe, expect, it } from 'vitest';
import {
  AnySession,
  type Fault,
  fails,
  ScriptedZooKeeper,
} from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { barrier } from './barrier.js';
import { lock } from './lock.js';

describe('a lock that is tried once', () => {
  /** Tries on servers with that fault. */
  async function tried(fault: Fault, { held = false, timeoutMs = 0 } = {}) {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    zookeeper.put('/locks/report', '', undefined);
    const one = (seed: number) => lock(zookeeper, '/locks/report', { clock, random: seededRandom(seed) });
    const holding = held ? one(1).acquire() : undefined;
    await clock.advance(100);
    await holding;
    zookeeper.fault = fault;
    const begun = clock.monotonic();
    const ended = one(2)
      .acquire({ timeoutMs })
      .then(
        () => 'held',
        ({ code }) => code,
      );
    let outcome: string | undefined;
    let tookMs = 0;
    void ended.then((value) => {
      outcome = value;
      tookMs = clock.monotonic() - begun;
    });
    for (let step = 0; step < 200 && outcome === undefined; step += 1) await clock.advance(100);
    return { outcome, tookMs };
  }
  const seen = new Set<string>();
  const firstOfEach =
    (when: 'before' | 'after'): Fault =>
    async (operation, _, apply) => {
      if (seen.has(operation)) return;
      seen.add(operation);
      if (when === 'after') apply();
      throw fails('connection-loss', 'unknown');
    };

  it.each(['before', 'after'] as const)(
    'is acquired although the connection is lost %s each first call',
    async (when) => {
      seen.clear();
      expect((await tried(firstOfEach(when))).outcome).toBe('held');
    },
  );

  it('is said to be held by another where it is, whatever the connection does', async () => {
    seen.clear();
    expect((await tried(firstOfEach('after'), { held: true })).outcome).toBe('WAIT_TIMEOUT');
  });

  it.each<[string, Fault]>([
    ['lose each connection', () => Promise.reject(fails('connection-loss', 'unknown'))],
    ['never answer', () => new Promise(() => undefined)],
  ])('fails for the servers, and no holder, where they %s', async (_, fault) => {
    const { outcome, tookMs } = await tried(fault);
    expect(outcome).toBe('ZOOKEEPER_FAILED');
    expect(tookMs).toBeGreaterThan(4_000);
    expect(tookMs).toBeLessThan(6_000);
  });
});

it('the wait at a barrier fails where the servers refuse the session, and close each connection', async () => {
  const clock = new VirtualClock();
  const zookeeper = new AnySession(clock);
  // The refusal reaches the first request of a connection, which is that of an open watch.
  zookeeper.fault = () =>
    Promise.reject(fails(zookeeper.watches.size > 0 ? 'connection-loss' : 'auth-failed', 'not-applied'));
  const waiting = barrier(zookeeper, '/gate', { clock, random: seededRandom(1) }).wait({ timeoutMs: 30_000 });
  waiting.catch(() => undefined);
  await clock.advance(40_000);
  await expect(waiting).rejects.toMatchObject({ fault: 'auth-failed' });
});
