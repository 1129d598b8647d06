import { afterEach, describe, expect, it } from 'vitest';
import { type SeedResult, type SimulationOptions, simulate } from '../simulation.js';
import { useQuickAbort } from '../world/quick-abort.js';

const SEEDS = Array.from({ length: 12 }, (_, index) => 11 + index);

async function run(options: SimulationOptions): Promise<SeedResult[]> {
  const results: SeedResult[] = [];
  for (const seed of SEEDS) results.push(await simulate(seed, options));
  return results;
}

let first: Promise<SeedResult[]> | undefined;
/** The seeds with their histories, simulated once for all tests. */
const recorded = () => {
  first ??= run({ recording: true });
  return first;
};

let undo: (() => void) | undefined;
afterEach(() => {
  undo?.();
  undo = undefined;
});

describe('a seed', () => {
  it('in which two machines go on in the same instant: what a guard was late with comes before any check', async () => {
    // Fails where a machine's guards and its commands go on in one step.
    const { violation, counts } = await simulate(160, { only: new Set(['freeze']) });
    expect(counts.faults.get('freeze')).toBeGreaterThan(1);
    expect(violation).toBeUndefined();
  });

  it('has the same history to the byte every time, with other seeds before it or not', async () => {
    const all = await recorded();
    expect(all.some(({ history }) => history.length > 100)).toBe(true);
    // One in which the cluster grows, and ids are made, is among them.
    const grows = ({ history }: SeedResult) =>
      history.some((line) => /makes \d+ ids of node id 256 \(9 bits\)/.test(line));
    expect(all.some(grows)).toBe(true);
    expect(await run({ recording: true })).toEqual(all);
    const [last] = all.slice(-1);
    expect(await simulate(SEEDS.at(-1) ?? 0, { recording: true })).toEqual(last);
  });

  it('has its own history', async () => {
    const histories = (await recorded()).map(({ history }) => history.join('\n'));
    expect(new Set(histories).size).toBe(SEEDS.length);
  });

  it('has that history with the abort controllers of the platform as with the quick ones', async () => {
    const platform = AbortController;
    const all = await recorded();
    undo = useQuickAbort();
    expect(AbortController).not.toBe(platform);
    expect(await run({ recording: true })).toEqual(all);
    undo();
    expect(AbortController).toBe(platform);
  });

  it('comes to the same whether its history is kept or not', async () => {
    const kept = await recorded();
    expect(await run({})).toEqual(kept.map((result) => ({ ...result, history: [] })));
  });

  it('has the same history when everything that happened in it may happen, and nothing else', async () => {
    for (const whole of await recorded()) {
      expect(await simulate(whole.seed, { recording: true, allowed: new Set(whole.happened) })).toEqual(
        whole,
      );
    }
  });

  it('can be had without some of its faults, the same every time, and with no others instead', async () => {
    for (const whole of await recorded()) {
      const half = new Set(whole.happened.filter((_, index) => index % 2 === 0));
      const one = await simulate(whole.seed, { recording: true, allowed: half });
      expect(one.happened.every((name) => half.has(name))).toBe(true);
      expect(await simulate(whole.seed, { recording: true, allowed: half })).toEqual(one);
      // What was allowed and did not happen makes no difference.
      expect(await simulate(whole.seed, { recording: true, allowed: new Set(one.happened) })).toEqual(one);
    }
  });
});
