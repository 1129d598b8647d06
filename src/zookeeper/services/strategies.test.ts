import { describe, expect, it } from 'vitest';
import {
  chiSquare,
  chiSquareLimit,
  instanceOf,
  instancesOf,
} from '../../../test/support/service-instances.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { ServiceInstance } from './instance/service-instance.js';
import {
  parseStrategy,
  QuickRandom,
  random,
  roundRobin,
  STRATEGY_NAMES,
  type StrategyFactory,
  sticky,
  weighted,
} from './strategies.js';

const DRAWS = 100_000;

function made<P>(factory: StrategyFactory<P>, seed = 1) {
  const clock = new VirtualClock();
  return { clock, strategy: factory({ clock, random: new QuickRandom(seededRandom(seed)) }) };
}

/** How often each of the candidates is picked. */
function counts<P>(
  factory: StrategyFactory<P>,
  candidates: readonly ServiceInstance<P>[],
  seed = 1,
): number[] {
  const { strategy } = made(factory, seed);
  const counted = new Map(candidates.map((candidate) => [candidate, 0]));
  for (let i = 0; i < DRAWS; i += 1) {
    const picked = strategy.pick(candidates);
    counted.set(picked, (counted.get(picked) as number) + 1);
  }
  return [...counted.values()];
}

const ids = (picked: readonly ServiceInstance[]) => picked.map(({ id }) => id).join('');
const times = <T>(count: number, act: () => T): T[] => Array.from({ length: count }, act);

describe('round robin', () => {
  it('picks one after the other, each as often as the others', () => {
    const candidates = instancesOf(3);
    const { strategy } = made(roundRobin());
    const picked = ids(times(9, () => strategy.pick(candidates)));
    expect(['012012012', '120120120', '201201201']).toContain(picked);
  });

  it('does not begin with the same one in every process', () => {
    const candidates = instancesOf(10);
    const firsts = Array.from({ length: 1_000 }, (_, seed) =>
      Number(made(roundRobin(), seed).strategy.pick(candidates).id),
    );
    const counted = candidates.map((_, id) => firsts.filter((first) => first === id).length);
    expect(chiSquare(counted, Array(10).fill(100))).toBeLessThan(chiSquareLimit(9));
  });

  it('continues when some have gone or come, and reaches every one', () => {
    const { strategy } = made(roundRobin());
    times(7, () => strategy.pick(instancesOf(10)));
    for (const count of [1, 3, 2, 10]) {
      const candidates = instancesOf(count);
      expect(new Set(times(count, () => strategy.pick(candidates))).size).toBe(count);
    }
  });
});

describe('random', () => {
  it('picks each as often as the others, in no order', () => {
    for (const count of [2, 10, 1_000]) {
      const counted = counts(random(), instancesOf(count), count);
      expect(chiSquare(counted, Array(count).fill(DRAWS / count))).toBeLessThan(chiSquareLimit(count - 1));
    }
    const { strategy } = made(random());
    const candidates = instancesOf(2);
    const picked = ids(times(10_000, () => strategy.pick(candidates)));
    const pairs = ['00', '01', '10', '11'].map(
      (pair) => [...picked.matchAll(new RegExp(`(?=${pair})`, 'g'))].length,
    );
    expect(chiSquare(pairs, Array(4).fill(9_999 / 4))).toBeLessThan(chiSquareLimit(3));
  });
});

describe('sticky', () => {
  it('stays with one, and the processes do not all stay with the same', () => {
    const candidates = instancesOf(10);
    const { strategy } = made(sticky());
    expect(new Set(times(100, () => strategy.pick(candidates))).size).toBe(1);
    expect(
      new Set(Array.from({ length: 100 }, (_, seed) => made(sticky(), seed).strategy.pick(candidates).id))
        .size,
    ).toBe(10);
  });

  it('stays with it while others come and go, and when it is updated', () => {
    const { strategy } = made(sticky());
    const { id } = strategy.pick(instancesOf(10));
    for (const count of [40, 11, 30]) expect(strategy.pick(instancesOf(count).reverse()).id).toBe(id);
    const updated = instancesOf(10, { payload: { weight: 3 } });
    expect(strategy.pick(updated)).toBe(updated[Number(id)]);
  });

  it('chooses another one when that has gone, and stays with it when the first comes back', () => {
    const { strategy } = made(sticky());
    const all = instancesOf(10);
    const first = strategy.pick(all);
    const second = strategy.pick(all.filter((candidate) => candidate !== first));
    expect(second).not.toBe(first);
    expect(strategy.pick([...all])).toBe(second);
  });

  it('does not take one for the same that has its id and was registered again', () => {
    const { strategy } = made(sticky(() => ({ pick: (candidates) => candidates[0] as ServiceInstance })));
    const before = strategy.pick([instanceOf('a')]);
    const reregistered = instanceOf('a', { registrationTimeUTC: before.registrationTimeUTC + 1 });
    expect(strategy.pick([instanceOf('b'), reregistered]).id).toBe('b');
  });
});

describe('weighted', () => {
  const of = (...weights: unknown[]) =>
    weights.map((weight, index) => instanceOf(String(index), { payload: { weight } }));

  it('picks each as often as its weight says', () => {
    const weights = [1, 2, 3.5, 0.5, 10, 83];
    const expected = weights.map((weight) => weight * 1_000);
    expect(chiSquare(counts(weighted(), of(...weights)), expected)).toBeLessThan(chiSquareLimit(5));
  });

  it('is as fair with a thousand instances of a thousand weights', () => {
    const weights = Array.from({ length: 1_000 }, (_, index) => 1 + ((index * 7_919) % 1_000));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    const enough = weights
      .map((weight, index) => ({ index, expected: (weight * DRAWS) / sum }))
      .filter(({ expected }) => expected >= 5);
    const counted = counts(weighted(), of(...weights));
    const statistic = chiSquare(
      enough.map(({ index }) => counted[index] as number),
      enough.map(({ expected }) => expected),
    );
    expect(statistic).toBeLessThan(chiSquareLimit(enough.length));
  });

  it('never picks one of weight 0, unless all are', () => {
    expect(counts(weighted(), of(0, 1, 0, 4)).map((count) => count > 0)).toEqual([false, true, false, true]);
    expect(chiSquare(counts(weighted(), of(0, 0, 0, 0)), Array(4).fill(DRAWS / 4))).toBeLessThan(
      chiSquareLimit(3),
    );
  });

  it('counts an instance without a weight as 1', () => {
    const candidates = [
      instanceOf('a'),
      instanceOf('b', { payload: { other: 1 } }),
      instanceOf('c', { payload: 'text' }),
      ...of(null, 1, '2'),
    ];
    const expected = [1, 1, 1, 1, 1, 2].map((share) => (share * DRAWS) / 7);
    expect(chiSquare(counts(weighted(), candidates), expected)).toBeLessThan(chiSquareLimit(5));
  });

  it('reports an invalid weight once, and picks the instance even so', () => {
    const bad: unknown[] = [];
    const candidates = of(1, -1, Number.NaN, Number.POSITIVE_INFINITY, 'many', [2], {});
    const factory = weighted({ onBadWeight: ({ id }, weight) => bad.push([id, weight]) });
    const { strategy } = made(factory);
    const picked = new Set(times(1_000, () => strategy.pick(candidates).id));
    strategy.pick([...candidates]);
    expect(bad).toEqual([
      ['1', -1],
      ['2', Number.NaN],
      ['3', Number.POSITIVE_INFINITY],
      ['4', 'many'],
      ['5', [2]],
      ['6', {}],
    ]);
    // Too large is the largest weight, which leaves next to nothing for the others.
    expect([...picked]).toEqual(['3']);
    const rest = of(-1, Number.NaN, 'many');
    expect(chiSquare(counts(weighted(), rest), Array(3).fill(DRAWS / 3))).toBeLessThan(chiSquareLimit(2));
  });

  it('is not brought down by a function of one’s own that throws, or by a payload that is made to mislead', () => {
    const bad: unknown[] = [];
    const candidates = [
      instanceOf('a'),
      instanceOf<{ size: number }>('b', { payload: { size: 9 } }),
    ] as ServiceInstance<{
      size: number;
    }>[];
    const weightOf = ({ payload }: ServiceInstance<{ size: number }>) => (payload as { size: number }).size;
    const counted = counts(
      weighted({ weightOf, onBadWeight: ({ id }, error) => bad.push(id, error) }),
      candidates,
    );
    expect(bad).toEqual(['a', expect.any(TypeError)]);
    expect(chiSquare(counted, [DRAWS / 10, (DRAWS * 9) / 10])).toBeLessThan(chiSquareLimit(1));
    const hostile = instanceOf('p', { payload: JSON.parse('{"__proto__":{"weight":1000000}}') });
    expect(chiSquare(counts(weighted(), [hostile, instanceOf('q')]), Array(2).fill(DRAWS / 2))).toBeLessThan(
      chiSquareLimit(1),
    );
  });

  it('weighs again when something has changed', () => {
    const { strategy } = made(weighted());
    strategy.pick(of(1, 0));
    const candidates = of(0, 1);
    expect(new Set(times(100, () => strategy.pick(candidates).id))).toEqual(new Set(['1']));
  });
});

describe('the name of a strategy', () => {
  it('selects it', () => {
    for (const name of STRATEGY_NAMES)
      expect(made(parseStrategy(name)).strategy.pick(instancesOf(1)).id).toBe('0');
    expect(STRATEGY_NAMES).toEqual(['round-robin', 'random', 'sticky', 'weighted']);
  });

  it('that is not known is refused, with the known ones', () => {
    for (const name of ['', 'roundrobin', 'ROUND-ROBIN', 'toString', '__proto__'])
      expect(() => parseStrategy(name)).toThrow(
        `strategy: expected one of round-robin, random, sticky, weighted, got ${JSON.stringify(name)}`,
      );
  });
});
