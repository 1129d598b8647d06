import { afterEach, describe, expect, it } from 'vitest';
import { newStore, parseLog, removeStores } from '../../../support/fleet.js';
import { killAll } from '../../../support/processes.js';
import { expectIncreasing, printed, startId } from './id-support.js';

afterEach(async () => {
  await killAll();
  await removeStores();
});

describe('nodelease id', () => {
  it('waits where ids run out: all of them are printed, in order, over more than one duration', async () => {
    const store = await newStore();
    const begun = performance.now();
    // A millisecond has 256 of them: there are some for several seconds at once, and then as time goes on.
    const made = startId(store, ['-n', '3400000', '--duration', '3s']);
    expect((await made.exit).code).toBe(0);
    const ids = printed(made);
    expect(performance.now() - begun).toBeGreaterThan(4_500);
    expect(ids).toHaveLength(3_400_000);
    expectIncreasing(ids);
  });

  it('says why it waits, and for how long, where there is no id for some seconds', async () => {
    const store = await newStore();
    expect((await startId(store, ['--nodes', '1']).exit).code).toBe(0);
    const stampedUntil = Date.now() + 18_000;
    await store.spoil(
      '0.json',
      JSON.stringify({ released: true, version: 7, timestamp: stampedUntil, stampedUntil }),
    );
    const call = startId(store, []);
    expect((await call.exit).code).toBe(0);
    expect(Number((printed(call)[0] as bigint) >> 16n)).toBe(stampedUntil + 1);
    const log = parseLog(call.stderr()).map(({ msg }) => msg);
    expect(log).toEqual([
      expect.stringMatching(
        /^no unique id for now, waiting: they would be stamped .* \(\d+s or more to go\)$/,
      ),
    ]);
    expect(log[0]).toContain(new Date(stampedUntil).toISOString());
  });
});
