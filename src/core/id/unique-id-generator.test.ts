import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { ConfigError } from '../base/errors.js';
import { cluster16, type IdLayout, idLayout, snowflake } from './id-layout.js';
import { IdsExhaustedError, type IdTime } from './id-time.js';
import { UniqueIdGenerator, type UniqueIdGeneratorOptions } from './unique-id-generator.js';

const NODE = 0x0143;

/** A generator on a clock that moves only when it is moved, with bounds that can be moved, too. */
function generator(
  options: Partial<UniqueIdGeneratorOptions> & { readonly bounds?: { after?: number; before?: number } } = {},
) {
  const clock = new VirtualClock();
  const bounds = { after: 0, before: Number.POSITIVE_INFINITY, ...options.bounds };
  const ending = new AbortController();
  const time: IdTime = {
    now: () => clock.now(),
    get after() {
      return bounds.after;
    },
    before: () => bounds.before,
    check: () => ending.signal.throwIfAborted(),
    signal: ending.signal,
  };
  const { bounds: _, ...rest } = options;
  return {
    clock,
    bounds,
    ending,
    ids: new UniqueIdGenerator({ layout: cluster16(9), node: NODE, time, clock, ...rest }),
  };
}

/** All ids until the generator is exhausted. */
function drain(ids: UniqueIdGenerator, most = 10_000_000): bigint[] {
  const all: bigint[] = [];
  try {
    while (all.length < most) all.push(ids.next());
  } catch (error) {
    if (!(error instanceof IdsExhaustedError)) throw error;
  }
  return all;
}

const LAYOUTS: readonly IdLayout[] = [
  cluster16(9),
  cluster16(12),
  cluster16(16),
  snowflake(),
  idLayout({ timeBits: 42, sequenceBits: 10, nodeBits: 11, lowest: 'node', epochMs: 1_600_000_000_000 }),
  idLayout({ timeBits: 48, sequenceBits: 0, nodeBits: 16 }),
];

describe.each(LAYOUTS)('the ids of layout $name $timeBits/$sequenceBits/$nodeBits', (layout) => {
  it('continue when the lower half of an id is full', () => {
    const perHalf = 2 ** (32 - layout.sequenceBits - layout.nodeBits);
    const { clock, ids } = generator({ layout, lagMs: 0, advanceMs: 100 });
    const sinceEpoch = clock.now() - layout.epochMs;
    // Just before the next carry, wherever that is.
    clock.wallOffset += Math.ceil(sinceEpoch / perHalf) * perHalf - sinceEpoch - 3;
    const made = drain(ids, 200_000);
    for (let at = 1; at < made.length; at += 1) {
      if ((made[at] as bigint) <= (made[at - 1] as bigint)) expect.fail(`${made[at]} after ${made[at - 1]}`);
    }
    expect(new Set(made.map((id) => id >> 32n)).size).toBeGreaterThan(1);
  });

  it('strictly increase, in bursts and between them, and contain their node', async () => {
    const { clock, ids } = generator({ layout, advanceMs: 50 });
    let last = -1n;
    for (let burst = 0; burst < 20; burst += 1) {
      const made = drain(ids, 20_000);
      for (const id of made) {
        if (id <= last) expect.fail(`${id} after ${last}`);
        last = id;
      }
      const { node, nodeId } = ids.decode(last);
      expect([node, nodeId]).toEqual([NODE, NODE - 8]);
      await clock.advance(7);
    }
  });

  it('use every sequence number of every millisecond in a burst, once', () => {
    const { clock, ids } = generator({ layout, lagMs: 40, advanceMs: 30 });
    const made = drain(ids);
    expect(made).toHaveLength(31 * 2 ** layout.sequenceBits);
    expect(new Set(made).size).toBe(made.length);
    expect(ids.decode(made[0] as bigint).timeMs).toBe(clock.now() - 40);
    expect(ids.decode(made.at(-1) as bigint)).toMatchObject({
      timeMs: clock.now() - 10,
      sequence: 2 ** layout.sequenceBits - 1,
    });
  });

  it('are the same ones whether they are made one by one or filled into an array', () => {
    const one = generator({ layout, advanceMs: 2_000 });
    const many = generator({ layout, advanceMs: 2_000 });
    const target = new BigUint64Array(2_010);
    for (let round = 0; round < 3; round += 1) {
      many.ids.fill(target, 10, 600 + round);
      expect([...target.subarray(10, 610 + round)]).toEqual(
        Array.from({ length: 600 + round }, () => one.ids.next()),
      );
      expect(target.subarray(0, 10).every((id) => id === 0n)).toBe(true);
    }
  });
});

describe('the time in an id', () => {
  it('lags by the stated time while few ids are made, however long one waits between them', async () => {
    const { clock, ids } = generator();
    for (const waitMs of [0, 1, 5_000, 90, 3_600_000, 150]) {
      await clock.advance(waitMs);
      const { timeMs } = ids.decode(ids.next());
      expect(clock.now() - timeMs).toBeGreaterThanOrEqual(4_000);
      expect(clock.now() - timeMs).toBeLessThanOrEqual(4_100);
    }
  });

  it('runs ahead by the stated time in a burst, and no further', () => {
    const { clock, ids } = generator({ lagMs: 4_000, advanceMs: 8_000 });
    const last = drain(ids).at(-1) as bigint;
    expect(ids.decode(last).timeMs).toBe(clock.now() + 4_000);
  });

  it('does not go back when the clock does', async () => {
    const { clock, ids } = generator();
    const before = ids.next();
    clock.wallOffset -= 86_400_000;
    await clock.advance(200);
    expect(() => ids.next()).toThrow(IdsExhaustedError);
    clock.wallOffset += 86_400_000;
    expect(ids.next()).toBeGreaterThan(before);
  });
});

describe('the bounds of the time', () => {
  it('are kept: ids are later than those that other generators may have made, even if the clock is behind', () => {
    const { clock, bounds, ids } = generator();
    bounds.after = clock.now() + 2_000;
    expect(ids.decode(ids.next()).timeMs).toBe(clock.now() + 2_001);
  });

  it('are kept: no id carries a time at the end of the lease or past it', async () => {
    const { clock, bounds, ids } = generator();
    bounds.before = clock.now() + 100;
    const last = drain(ids).at(-1) as bigint;
    expect(ids.decode(last)).toMatchObject({ timeMs: clock.now() + 99, sequence: 127 });
    bounds.before += 1;
    expect(drain(ids)).toHaveLength(128);
    await clock.advance(200);
    expect(() => ids.next()).toThrow('past the end of the lease');
  });

  it('end the effect of a wrong time when it is corrected', async () => {
    const { clock, bounds, ids } = generator();
    const last = ids.next();
    bounds.before = clock.now() + 15_000;
    clock.wallOffset += 86_400_000;
    await clock.advance(200);
    expect(() => ids.next()).toThrow(/past the end of the lease/);
    clock.wallOffset -= 86_400_000;
    const { timeMs } = ids.decode(ids.next());
    expect(timeMs).toBe(clock.now() - 4_000);
    expect(ids.next()).toBeGreaterThan(last);
  });

  it('leave no id if they cross', () => {
    const { clock, bounds, ids } = generator();
    bounds.after = clock.now() + 10;
    bounds.before = clock.now() + 11;
    expect(drain(ids)).toEqual([]);
    bounds.before = clock.now() + 12;
    expect(drain(ids)).toHaveLength(128);
  });

  it('end with the layout: a time that does not fit into it is never cut off', async () => {
    const clock = new VirtualClock();
    const layout = idLayout({
      timeBits: 40,
      sequenceBits: 12,
      nodeBits: 12,
      epochMs: clock.now() - 2 ** 40 + 10,
    });
    const { ids } = generator({ layout, lagMs: 0, advanceMs: 50 });
    expect(drain(ids)).toHaveLength(10 * 4_096);
    expect(() => ids.next()).toThrow('the 40 bits of time of layout custom are used up');
  });
});

describe('when nothing is left', () => {
  it('reports for how long, correctly', async () => {
    const { clock, ids } = generator({ lagMs: 0, advanceMs: 5 });
    const made = drain(ids).length;
    await clock.advance(0);
    const refused = catching(() => ids.next());
    expect(refused).toMatchObject({ code: 'IDS_EXHAUSTED', waitMs: 1, filled: 0 });
    await clock.advance(refused.waitMs);
    expect(drain(ids)).toHaveLength(made / 6);
  });

  it('says why: too many at once, or ids that another task may have made', async () => {
    const { bounds, clock, ids } = generator({ lagMs: 2, advanceMs: 7 });
    const early = 'they would be stamped more than 5 ms ahead of the time';
    drain(ids);
    expect(() => ids.next()).toThrow(`${early}; ask again in 1 ms`);
    bounds.after = Math.ceil(clock.now()) + 10_000;
    const until = new Date(bounds.after).toISOString();
    expect(() => ids.next()).toThrow(
      `${early}, since somebody else with the node's number may have used it up to ${until}`,
    );
  });

  it('waits on request', async () => {
    const { clock, ids } = generator({ lagMs: 0, advanceMs: 0 });
    const last = drain(ids).at(-1) as bigint;
    const next = ids.nextAsync();
    await clock.advance(1);
    expect(await next).toBeGreaterThan(last);
    drain(ids);
    const giving = new AbortController();
    const given = expect(ids.nextAsync(giving.signal)).rejects.toThrow('enough');
    giving.abort(new Error('enough'));
    await given;
  });

  it('reports how far an array was filled, and continues from there', async () => {
    const { clock, ids } = generator({ lagMs: 0, advanceMs: 0 });
    const target = new BigUint64Array(300);
    const refused = catching(() => ids.fill(target, 5));
    expect(refused.filled).toBe(128);
    expect(target.findIndex((id, index) => index >= 5 && id === 0n)).toBe(133);
    await clock.advance(1);
    expect(ids.next()).toBeGreaterThan(target[132] as bigint);
  });
});

describe('bounds that are not whole milliseconds', () => {
  it('are rounded inwards', () => {
    const { clock, bounds, ids } = generator({ lagMs: 0, advanceMs: 60_000 });
    bounds.after = clock.now() + 10.5;
    bounds.before = clock.now() + 20.3;
    const stamps = new Set(drain(ids).map((id) => Number(id >> 16n) - clock.now()));
    expect([...stamps]).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
  });

  it('allow no ids if they are not numbers', () => {
    const { bounds, ids } = generator();
    bounds.before = Number.NaN;
    expect(catching(() => ids.next()).waitMs).toBe(50);
  });
});

describe('when the lease is lost', () => {
  it('throws what the loss was, at once, in the middle of a run too', async () => {
    const { ids, ending } = generator();
    ids.next();
    ending.abort(new Error('lost'));
    expect(() => ids.next()).toThrow('lost');
    expect(() => ids.fill(new BigUint64Array(1))).toThrow('lost');
    await expect(ids.nextAsync()).rejects.toThrow('lost');
  });
});

describe('a generator', () => {
  it.each([
    [
      { node: 512 },
      'node: expected a whole number from 0 to 511, since layout cluster16 has 9 bits for it, got 512',
    ],
    [{ node: -1 }, 'node: expected a whole number from 0 to 511'],
    [{ node: 1.5 }, 'node: expected a whole number from 0 to 511'],
    [{ lagMs: -1 }, 'lagMs: expected a whole number from 0 to 3600000 (milliseconds), got -1'],
    [{ advanceMs: Number.NaN }, 'advanceMs: expected a whole number from 0'],
    [{ advanceMs: 10_000 / 3 }, 'advanceMs: expected a whole number from 0'],
    [{ lagMs: 0.5 }, 'lagMs: expected a whole number from 0'],
    [{ lagMs: 3_600_001 }, 'lagMs: expected a whole number from 0 to 3600000 (milliseconds), got 3600001'],
    [{ clock: {} as never }, 'clock: expected a clock, such as systemClock'],
    [{ time: {} as never }, 'time: expected a time with now(), before() and check()'],
    [
      { advanceMs: '8000' as never },
      'advanceMs: expected a whole number from 0 to 3600000 (milliseconds), got "8000"',
    ],
    [
      { layout: 'snowflake' as never },
      'layout: expected what cluster16(), snowflake() or idLayout() returns, got "snowflake"',
    ],
    [
      { layout: null as never },
      'layout: expected what cluster16(), snowflake() or idLayout() returns, got null',
    ],
    [
      { layout: snowflake as never },
      'layout: expected what cluster16(), snowflake() or idLayout() returns, got a function',
    ],
    [{ layout: {} as never }, 'layout.timeBits: expected a whole number from 34 to 48, got undefined'],
    [{ layout: { ...cluster16(9), name: 7 as never } }, 'layout.name: expected a text, got 7'],
    [
      { layout: { ...cluster16(9), sequenceBits: 12 } },
      'layout: expected bits of time, sequence and node that make 63 or 64',
    ],
  ])('is refused with %j', (options, message) => {
    expect(() => generator(options)).toThrow(message);
    expect(() => generator(options)).toThrow(ConfigError);
  });

  it('is refused with a layout whose time has not begun', () => {
    expect(() => generator({ layout: snowflake(1_800_000_000_000) })).toThrow(
      new ConfigError('layout.epochMs', 1_800_000_000_000, 'a time in the past'),
    );
  });

  it('is refused with a layout whose time is over: it would wait for its first id for ever', () => {
    const layout = idLayout({ timeBits: 40, sequenceBits: 13, nodeBits: 10 });
    expect(() => generator({ layout })).toThrow(
      new ConfigError('layout.timeBits', 40, 'enough for the time since layout.epochMs'),
    );
  });

  it('reads the clock once for a run of ids, which gets longer while many are made', async () => {
    let reads = 0;
    const layout = idLayout({ timeBits: 42, sequenceBits: 10, nodeBits: 11, lowest: 'node' });
    const clock = new VirtualClock();
    const now = () => {
      reads += 1;
      return clock.now();
    };
    const before = () => Number.POSITIVE_INFINITY;
    const time: IdTime = { now, after: 0, before, check: () => undefined };
    const ids = new UniqueIdGenerator({ layout, node: 8, clock, time });
    const readsOf = (count: number) => {
      const from = reads;
      for (let made = 0; made < count; made += 1) ids.next();
      return reads - from;
    };
    expect([64, 128 + 256, 512 + 1_024 + 2_048, 4_096, 8_192].map(readsOf)).toEqual([1, 2, 3, 1, 2]);
    await clock.advance(100);
    expect(readsOf(64 + 1)).toBe(2);
  });

  it('writes a decimal text, unless it is another one', () => {
    const { ids } = generator();
    const first = ids.next();
    expect(ids.nextString()).toBe(String(first + 2n ** 9n));
    expect(ids.nextString('hex')).toBe((first + 2n ** 10n).toString(16).padStart(16, '0'));
  });

  it('adopts a layout with more bits for its node, and no other', () => {
    const { ids } = generator({ node: 8, layout: cluster16(9) });
    const first = ids.next();
    const hand = { ...cluster16(10), nodeBits: 11 };
    for (const layout of [
      cluster16(8),
      snowflake(),
      idLayout({ timeBits: 48, sequenceBits: 6, nodeBits: 10 }),
      idLayout({ timeBits: 48, sequenceBits: 5, nodeBits: 10 }),
      idLayout({ timeBits: 47, sequenceBits: 7, nodeBits: 9 }),
      idLayout({ ...cluster16(9), epochMs: 1 }),
      idLayout({ ...cluster16(9), lowest: 'sequence' }),
    ]) {
      expect(() => ids.adopt(layout)).toThrow(
        'layout: expected the time of layout cluster16 in the same place, and at least 9 bits for the node, got ',
      );
    }
    for (const layout of [null as never, hand]) expect(() => ids.adopt(layout)).toThrow(ConfigError);
    ids.adopt(cluster16(9));
    ids.adopt(cluster16(11));
    expect(ids.layout).toEqual(cluster16(11));
    const made = [first, ...drain(ids, 5_000)];
    expect(made.every((id, at) => at === 0 || id > (made[at - 1] as bigint))).toBe(true);
    expect(made.slice(1).every((id) => (id & 0x7ffn) === 8n)).toBe(true);
  });

  it('begins each millisecond at its first sequence number, whatever it used of the previous one, and whatever the layout was then', async () => {
    const { clock, ids } = generator({ node: 8, layout: cluster16(8), lagMs: 0, advanceMs: 0 });
    const bits = () => ids.layout.nodeBits;
    const whole = () =>
      Array.from(
        { length: 2 ** (16 - bits()) },
        (_, place) => (BigInt(clock.now()) << 16n) | BigInt(place * 2 ** bits() + 8),
      );
    // For longer than a reading of the clock is used.
    const untilLater = () => clock.advance(101);
    for (const [wider, usedBefore] of [
      [9, 200],
      [12, 3],
      [16, 1],
    ] as const) {
      for (const used of [200, 0, 1]) {
        ids.fill(new BigUint64Array(Math.min(used, whole().length)));
        await untilLater();
        expect(drain(ids)).toEqual(whole());
        await untilLater();
      }
      ids.fill(new BigUint64Array(usedBefore));
      ids.adopt(cluster16(wider));
      // The rest of this one is not used.
      expect(drain(ids)).toEqual([]);
      await untilLater();
      expect(drain(ids)).toEqual(whole());
      await untilLater();
    }
  });

  it('writes nothing into an array that has no room', () => {
    const { ids } = generator();
    const target = new BigUint64Array(4);
    for (const [offset, count] of [
      [5, 0],
      [0, 5],
      [2, 3],
      [-1, 1],
      [0, -1],
      [0.5, 1],
      [0, Number.NaN],
    ] as const) {
      expect(() => ids.fill(target, offset, count)).toThrow(
        /^(offset: expected a whole number from 0 to 4, the length of the array|count: expected a whole number from 0 to [24], what the array has room for), got /,
      );
    }
    expect([...target]).toEqual([0n, 0n, 0n, 0n]);
    ids.fill(target, 4);
    ids.fill(target, 1, 2);
    expect([...target].map((id) => id > 0n)).toEqual([false, true, true, false]);
  });

  it.each([
    new BigInt64Array(4),
    Buffer.alloc(32),
    new Uint32Array(8),
    new Float64Array(4),
    new DataView(new ArrayBuffer(32)),
    Array.from({ length: 4 }, () => 0n),
    { length: 4, buffer: new ArrayBuffer(32), byteOffset: 0, [Symbol.toStringTag]: 'BigUint64Array' },
    null,
  ])('writes into no other array than one of unsigned 64-bit numbers: %o', (target) => {
    const { ids } = generator();
    expect(() => ids.fill(target as never, 0, 2)).toThrow(ConfigError);
    expect(() => ids.fill(target as never)).toThrow(/^target: expected a BigUint64Array, got /);
    expect(ids.decode(ids.next()).sequence).toBe(0);
  });

  it('writes nothing past the end of a Buffer that it is given by mistake', () => {
    const { ids } = generator();
    const memory = new ArrayBuffer(64);
    expect(() => ids.fill(Buffer.from(memory, 0, 8) as never, 0, 4)).toThrow(ConfigError);
    expect(new Uint8Array(memory).every((byte) => byte === 0)).toBe(true);
  });

  it('writes into an array of another realm', () => {
    const { ids } = generator();
    const foreign = runInNewContext('new BigUint64Array(2)') as BigUint64Array;
    expect(foreign instanceof BigUint64Array).toBe(false);
    ids.fill(foreign);
    expect(foreign[1]).toBeGreaterThan(foreign[0] as bigint);
  });

  it('writes into a part of a buffer without touching the rest', () => {
    const { ids } = generator();
    const whole = new BigUint64Array(8).fill(7n);
    ids.fill(new BigUint64Array(whole.buffer, 16, 3));
    expect([...whole].map((id) => id === 7n)).toEqual([true, true, false, false, false, true, true, true]);
  });
});

function catching(run: () => unknown): IdsExhaustedError {
  try {
    run();
  } catch (error) {
    if (error instanceof IdsExhaustedError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}
