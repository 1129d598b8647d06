import { describe, expect, it } from 'vitest';
import { settled } from '../../../../test/support/virtual-clock.js';
import { SharedQueries } from './shared-queries.js';

function setUp() {
  const queries = new SharedQueries<number>();
  const begun: { resolve(answer: number): void; reject(error: Error): void }[] = [];
  const ask = (key = 'orders') =>
    queries.ask(key, () => new Promise<number>((resolve, reject) => void begun.push({ resolve, reject })));
  return { queries, begun, ask };
}

describe('questions that many ask', () => {
  it('are asked once, and once more for callers that came while it was under way', async () => {
    const { queries, begun, ask } = setUp();
    const [first, ...later] = [ask(), ask(), ask(), ask()];
    expect(begun).toHaveLength(1);
    begun[0]?.resolve(1);
    expect(await first).toBe(1);
    await settled();
    expect(begun).toHaveLength(2);
    begun[1]?.resolve(2);
    expect(await Promise.all(later)).toEqual([2, 2, 2]);
    await settled();
    expect(queries.size).toBe(0);
  });

  it('are never answered from before they were asked', async () => {
    const { begun, ask } = setUp();
    const answers = [ask()];
    for (let round = 0; round < 5; round += 1) {
      answers.push(ask());
      begun[round]?.resolve(round);
      expect(await answers[round]).toBe(round);
      await settled();
      expect(begun).toHaveLength(round + 2);
    }
  });

  it('are asked again after a failure, which only those hear of who asked for it', async () => {
    const { queries, begun, ask } = setUp();
    const first = ask();
    const second = ask();
    begun[0]?.reject(new Error('no'));
    await expect(first).rejects.toThrow('no');
    await settled();
    begun[1]?.resolve(2);
    expect(await second).toBe(2);
    await settled();
    expect(queries.size).toBe(0);
  });

  it('do not wait for others', () => {
    const { begun, ask } = setUp();
    void ask('orders');
    void ask('billing');
    expect(begun).toHaveLength(2);
  });

  it('are one at a time also for a caller in the moment between two', async () => {
    const { begun, ask } = setUp();
    const first = ask();
    void ask();
    const between = first.then(() => ask());
    begun[0]?.resolve(1);
    await settled();
    expect(begun).toHaveLength(2);
    begun[1]?.resolve(2);
    expect(await between).toBe(2);
  });
});
