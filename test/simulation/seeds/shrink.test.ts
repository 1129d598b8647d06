import { describe, expect, it } from 'vitest';
import { shrink } from './shrink.js';

const names = Array.from({ length: 200 }, (_, index) => `fault ${index}`);

/** Fails where all of these happen, and counts how often it is asked. */
function failing(...needed: string[]) {
  const asked: (readonly string[])[] = [];
  const attempt = async (allowed: readonly string[]) => {
    asked.push(allowed);
    return needed.every((name) => allowed.includes(name)) ? allowed : undefined;
  };
  return { asked, attempt };
}

describe('shrinking', () => {
  it.each([
    [[]],
    [['fault 0']],
    [['fault 199']],
    [['fault 3', 'fault 4']],
    [['fault 0', 'fault 77', 'fault 78', 'fault 150', 'fault 199']],
  ])('finds that of 200 faults it takes %j, in fewer runs than there are faults', async (needed) => {
    const { asked, attempt } = failing(...needed);
    const shrunk = await shrink({ names, attempt, maxRuns: 400 });
    expect(shrunk).toEqual({ names: needed, runs: asked.length, minimal: true });
    expect(asked.length).toBeLessThan(150);
  });

  it('never asks the same thing twice', async () => {
    const { asked, attempt } = failing('fault 20', 'fault 50', 'fault 110');
    await shrink({
      names,
      attempt,
      maxRuns: 1_000,
      groups: [(name) => name.endsWith('0'), (name) => !name.endsWith('0')],
    });
    expect(new Set(asked.map((each) => each.join())).size).toBe(asked.length);
  });

  it('leaves out what only mattered because of something else that is out by now', async () => {
    // Either both of 1 and 2 are there, or neither: one at a time, the second can go once the first has gone
    // along with 3.
    const attempt = async (allowed: readonly string[]) => {
      const has = (index: number) => allowed.includes(`fault ${index}`);
      return has(9) && (!has(3) || has(1)) ? allowed : undefined;
    };
    const shrunk = await shrink({ names: ['fault 1', 'fault 3', 'fault 9'], attempt, maxRuns: 100 });
    expect(shrunk).toMatchObject({ names: ['fault 9'], minimal: true });
  });

  it('drops at once what did not happen any more in a smaller run', async () => {
    const { asked, attempt } = failing('fault 7');
    const shrunk = await shrink({
      names,
      attempt: async (allowed) => (await attempt(allowed)) && ['fault 7'],
      maxRuns: 400,
    });
    expect(shrunk).toMatchObject({ names: ['fault 7'], minimal: true });
    expect(asked.length).toBeLessThan(5);
  });

  it('takes the groups in their order, the rest staying, so that what drags much along goes first', async () => {
    const hosts = ['host 0', 'host 1', 'host 2'];
    const { asked, attempt } = failing('host 1', 'fault 150');
    const isHost = (name: string) => name.startsWith('host');
    const shrunk = await shrink({
      names: [...hosts, ...names],
      attempt,
      maxRuns: 400,
      groups: [isHost, (name) => !isHost(name)],
    });
    expect(shrunk).toMatchObject({ names: ['host 1', 'fault 150'], minimal: true });
    const firstWithoutFaults = asked.findIndex((allowed) => allowed.length < names.length);
    expect(asked.slice(0, firstWithoutFaults).at(-1)?.filter(isHost)).toEqual(['host 1']);
  });

  it('ends at the bound with the smallest set so far, and says that it may not be the smallest', async () => {
    const { asked, attempt } = failing('fault 3', 'fault 150');
    const shrunk = await shrink({ names, attempt, maxRuns: 10 });
    expect(asked).toHaveLength(10);
    expect(shrunk).toMatchObject({ runs: 10, minimal: false });
    expect(shrunk.names).toEqual(expect.arrayContaining(['fault 3', 'fault 150']));
    expect(shrunk.names.length).toBeLessThan(names.length);
  });

  it('ends when it is asked to', async () => {
    const { asked, attempt } = failing('fault 3', 'fault 150');
    expect(await shrink({ names, attempt, maxRuns: 400, stopped: () => asked.length === 4 })).toMatchObject({
      runs: 4,
      minimal: false,
    });
  });
});
