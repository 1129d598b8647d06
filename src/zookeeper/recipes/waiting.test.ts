import { describe, expect, it } from 'vitest';
import { type Fault, fails, ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
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
