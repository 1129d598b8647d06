import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { ConfigError } from '../base/errors.js';
import { cluster16, snowflake } from './id-layout.js';
import { IdsExhaustedError } from './id-time.js';
import { standaloneIds } from './standalone-ids.js';
import type { UniqueIdGenerator } from './unique-id-generator.js';

function drained(ids: UniqueIdGenerator): bigint[] {
  const all: bigint[] = [];
  for (;;) {
    try {
      all.push(ids.next());
    } catch (error) {
      if (error instanceof IdsExhaustedError) return all;
      throw error;
    }
  }
}

describe('ids without a lease', () => {
  it('are not repeated by a process that is started again, however soon', async () => {
    const clock = new VirtualClock();
    const seen = new Set<bigint>();
    let made = 0;
    for (const waitMs of [0, 1, 0, 500, 3, 10_000, 2, 0]) {
      const ids = standaloneIds({ nodeId: 3, layout: cluster16(8), clock });
      await clock.advance(waitMs);
      for (const id of drained(ids)) {
        seen.add(id);
        made += 1;
      }
    }
    expect(made).toBeGreaterThan(1_000);
    expect(seen.size).toBe(made);
  });

  it('are available a millisecond after the start, and not before', async () => {
    const clock = new VirtualClock();
    const ids = standaloneIds({ nodeId: 3, layout: cluster16(16), clock });
    expect(() => ids.next()).toThrow(expect.objectContaining({ code: 'IDS_EXHAUSTED', waitMs: 1 }));
    const first = ids.nextAsync();
    await clock.advance(1);
    expect(ids.decode(await first)).toMatchObject({ timeMs: clock.now(), sequence: 0 });
    await clock.advance(100);
  });

  it('never carry a time ahead of the clock', async () => {
    const clock = new VirtualClock();
    const ids = standaloneIds({ nodeId: 3, layout: cluster16(8), clock, lagMs: 50 });
    expect(() => ids.next()).toThrow(IdsExhaustedError);
    await clock.advance(200);
    const all = drained(ids);
    expect(ids.decode(all[0] as bigint).timeMs).toBe(clock.now() - 50);
    expect(ids.decode(all.at(-1) as bigint).timeMs).toBe(clock.now());
  });

  it.each([0, -1, Number.NaN])('are refused where the clock says %d', (now) => {
    const clock = Object.assign(new VirtualClock(), { now: () => now });
    expect(() => standaloneIds({ nodeId: 3, clock, layout: cluster16(8) })).toThrow(
      'clock: expected a time after the year 1970, got ',
    );
  });

  it('are refused for an invalid node id, or one that does not fit into the layout', () => {
    const clock = new VirtualClock();
    expect(() => standaloneIds({ nodeId: 65_528, clock, layout: cluster16(16) })).toThrow(ConfigError);
    expect(() => standaloneIds({ nodeId: 248, clock, layout: cluster16(8) })).toThrow(
      'node: expected a whole number from 0 to 255',
    );
    expect(() => standaloneIds({ nodeId: 3, clock, layout: 'snowflake' as never })).toThrow(
      /^layout: expected what cluster16\(\)/,
    );
    expect(() => standaloneIds({ nodeId: 1_016, clock, layout: snowflake() })).toThrow(
      'node: expected a whole number from 0 to 1023',
    );
  });
});
