import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { newRoot, removeRoot } from '../../../../test/support/data-dirs.js';
import { runInProcess } from '../../../../test/support/in-process.js';
import { tenureScene } from '../../../../test/support/tenure-scene.js';
import { showHistory } from './history-command.js';

interface Report {
  readonly nodes: readonly {
    readonly id: number;
    readonly knownSince: number | null;
    readonly tenures: readonly {
      readonly version: number;
      readonly taskId: string;
      readonly acquiredAt: number;
      readonly endedAt: number | null;
      readonly end: string | null;
    }[];
  }[];
}

/** Forty tenures on five ids, and what the command shows of them. */
async function scene() {
  const tenures = await tenureScene();
  const { clock, session } = tenures;
  const history = async (request: Parameters<typeof showHistory>[1] = {}) => {
    const io = capturedIo(undefined, clock);
    expect(await showHistory(session, request, { options: { json: true }, io })).toBe(0);
    return (JSON.parse(io.answer()) as Report).nodes;
  };
  return { ...tenures, history };
}

describe('nodelease history', () => {
  it('shows the last tenures of each id, the newest first, and how they ended', async () => {
    const { seen, history } = await scene();
    const nodes = await history();
    expect(nodes.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4]);
    for (const { id, tenures } of nodes) {
      const all = seen.filter((each) => each.id === id).reverse();
      const kept = all.slice(0, all[0]?.end === null ? 9 : 8);
      expect(tenures.map(({ version, taskId, end }) => [version, taskId, end])).toEqual(
        kept.map(({ version, taskId, end }) => [version, taskId, end]),
      );
    }
    expect(await history({ only: 3 })).toEqual(nodes.filter(({ id }) => id === 3));
  });

  it('shows who held what at a hundred times', async () => {
    const { clock, random, seen, history } = await scene();
    const nodes = await history();
    const known = Math.max(...nodes.map(({ tenures }) => tenures.at(-1)?.acquiredAt ?? 0));
    let held = 0;
    for (let looks = 0; looks < 100; ) {
      const at = Math.floor(known + random.next() * (clock.now() - known));
      // Times of tenures are given to the second.
      const near = seen.some(
        ({ from, until, end }) =>
          Math.abs(at - from) < 1_000 || Math.abs(at - until - (end === 'expired' ? 3_000 : 0)) < 3_000,
      );
      if (near) continue;
      const expected = seen
        .filter(({ from, until, end }) => from <= at && at < until + (end === 'expired' ? 3_000 : 0))
        .map(({ id, version }) => [id, version])
        .sort();
      const found = (await history({ at })).flatMap(({ id, tenures }) =>
        tenures.map(({ version }) => [id, version]),
      );
      expect(found.sort()).toEqual(expected);
      held += found.length;
      looks += 1;
    }
    expect(held).toBeGreaterThan(20);
  });

  it('says of each id from when on no tenure of it is missing', async () => {
    const { history } = await scene();
    for (const { tenures, knownSince } of await history()) {
      const { version, acquiredAt } = tenures.at(-1) ?? {};
      expect(knownSince).toBe(version === 1 ? 0 : acquiredAt);
    }
    const then = await history({ at: 5 });
    expect(then).toHaveLength(5);
    expect(then.flatMap(({ tenures }) => tenures)).toEqual([]);
    // Not free, but forgotten.
    expect(then.some(({ knownSince }) => knownSince !== null && knownSince > 5)).toBe(true);
  });

  it('is a table for people', async () => {
    const { session } = await scene();
    const io = capturedIo();
    await showHistory(session, { only: 0 }, { options: {}, io });
    expect(io.answer()).toMatch(/^ID +VERSION +TASK +FROM +UNTIL +END\n 0 +\d+ +task-\d+ +20\d\d-.*Z/);
    const nothing = capturedIo();
    await showHistory(session, { at: 5 }, { options: {}, io: nothing });
    expect(nothing.answer()).toMatch(
      /^no tenure is known at 1970-01-01T00:00:00.005Z\nnode id \d: earlier tenures are forgotten; what is known begins at 20.*Z, version \d+\n/,
    );
    await expect(showHistory(session, { only: 5 }, { options: {}, io })).rejects.toThrow(
      /^node id: expected a node id from 0 to 4, got 5$/,
    );
  });

  it.each([
    [['--at', '25:00'], /--at: expected a time such as 02:14 in UTC, or 2026-.*, got "25:00"/],
    [['--at', 'yesterday'], /--at: expected a time/],
    [['--at', '5'], /--at: expected a time/],
    [['--at', '2026-02-30T00:00:00Z'], /--at: expected a time/],
    [['--at', '2999-01-01T00:00:00Z'], /--at: expected a time that has passed/],
    [['x'], /node id: expected a whole number/],
  ])('refuses %j', async (args, complaint) => {
    expect(await runInProcess(['history', ...args, '--store', 'memory:'], {})).toMatchObject({
      code: 64,
      complaints: expect.stringMatching(complaint),
    });
  });

  it.each([
    ['2024-02-29T02:14', '2024-02-29T02:14:00.000Z'],
    ['2024-02-29 02:14:30', '2024-02-29T02:14:30.000Z'],
    ['2024-02-29T02:14:00+02:00', '2024-02-29T00:14:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ])('takes %s as %s, whatever the zone of the host', async (at, utc) => {
    vi.stubEnv('TZ', 'America/New_York');
    const folder = newRoot();
    onTestFinished(() => removeRoot(folder));
    await runInProcess(['init', '--nodes', '1', '--store', `file:${folder}`]);
    const { answer } = await runInProcess(['history', '--at', at, '--store', `file:${folder}`]);
    expect(answer).toBe(`no tenure is known at ${utc}\n`);
  });

  it('ends with 69 where there is no cluster', async () => {
    expect(await runInProcess(['history', '--json', '--store', 'memory:'], {})).toEqual({
      code: 69,
      answer: '',
      complaints: 'nodelease: there is no cluster at memory: [CLUSTER_MISSING]\n',
    });
  });
});
