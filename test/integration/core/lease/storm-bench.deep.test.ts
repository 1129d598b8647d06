import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Cell, cellOf, memoryCell } from '../../../../bench/storm/cell.js';
import { stormChart } from '../../../../bench/storm/chart.js';
import { CONTESTANTS } from '../../../../bench/storm/contestants.js';
import { withTables } from '../../../../bench/storm/page.js';
import { isKept, largePromises, memoryPromises, surplusPromises } from '../../../../bench/storm/promises.js';
import { total } from '../../../../bench/storm/request-count.js';
import { serverStorms } from '../../../../bench/storm/server-storm.js';
import { memorySurplus } from '../../../../bench/storm/surplus.js';
import { comparisonTable } from '../../../../bench/storm/tables.js';
import { useQuickAbort } from '../../../simulation/world/quick-abort.js';
import { harnessFile } from '../../../support/package-root.js';
import { killAll, runProcess } from '../../../support/processes.js';
import { s3StoreServer } from '../../../support/stores/s3-store-server.js';

// A share of `npm run bench:storm`. Virtual time: the numbers depend on the seed alone, however busy the
// machine is.

const ONE_SEED = { from: 1, seeds: 1 };

const broken = (promises: readonly Parameters<typeof isKept>[0][]) =>
  promises.filter((promised) => !isKept(promised));

describe('on a store in memory that is as far away as S3', () => {
  let undo: (() => void) | undefined;
  beforeAll(() => {
    undo = useQuickAbort();
  });
  afterAll(() => undo?.());

  const ours = (cluster: Cell['cluster'], starters: number, contestant: Cell['contestant'] = 'shipped') =>
    memoryCell({ contestant, cluster, starters }, ONE_SEED);

  it('1,000 tasks at once need at most 5.5 requests each, 7.5 with the proof, and 3 times as long as 10, whatever the cluster is like', async () => {
    const cells: Cell[] = [];
    for (const cluster of ['empty', 'initialised', 'just-released', 'half-full'] as const)
      for (const starters of [10, 1_000])
        cells.push(await ours(cluster, starters), await ours(cluster, starters, 'proving'));
    const promises = memoryPromises(cells);
    expect(promises).toHaveLength(16);
    expect(broken(promises)).toEqual([]);
  });

  it('100 tasks find the few free ids of 65,528 with about as many requests each as 10, and as soon', async () => {
    expect(broken(largePromises([await ours('few-free', 10), await ours('few-free', 100)]))).toEqual([]);
  });

  it.each([1, 10, 100])(
    '%i waiting tasks make at most 3.3 requests each per duration, and take the ids of crashed tasks in time',
    async (waiting) => {
      const promises = surplusPromises([await memorySurplus({ contestant: 'shipped', waiting, seed: 1 })]);
      expect(promises).toHaveLength(3);
      expect(broken(promises)).toEqual([]);
    },
  );

  it('the plain scan breaks each of these promises: they can be broken', async () => {
    const plain = async (starters: number): Promise<Cell> => ({
      ...(await memoryCell({ contestant: 'plain', cluster: 'just-released', starters }, ONE_SEED)),
      contestant: 'shipped',
    });
    const [few, many] = [await plain(10), { ...(await plain(100)), starters: 1_000 }];
    const everywhere = (['empty', 'initialised', 'just-released', 'half-full'] as const).flatMap((cluster) =>
      (['shipped', 'proving'] as const).flatMap((contestant) =>
        [few, many].map((cell) => ({ ...cell, contestant, cluster })),
      ),
    );
    expect(broken(memoryPromises(everywhere))).toHaveLength(16);
    expect(broken(largePromises([few, many].map((cell) => ({ ...cell, cluster: 'few-free' }))))).toHaveLength(
      2,
    );
    const waiting = {
      ...(await memorySurplus({ contestant: 'plain', waiting: 10, seed: 1, rounds: 1 })),
      contestant: 'shipped',
      waiting: 100,
    } as const;
    expect(broken(surplusPromises([waiting])).map(({ what }) => what)).toEqual([
      '100 waiting: requests a task and duration',
    ]);
  });

  it('the same seed gives the same storm, another one another', async () => {
    const measured = (from: number) =>
      memoryCell({ contestant: 'shipped', cluster: 'empty', starters: 20 }, { from, seeds: 1 });
    expect(await measured(7)).toEqual(await measured(7));
    expect(await measured(8)).not.toEqual(await measured(7));
  });
});

describe('on an S3 server', () => {
  it('300 tasks at once get distinct ids, with a twentieth of the requests of a plain scan at the most', async () => {
    const server = s3StoreServer(inject('s3'));
    // Distinct ids are looked at in there.
    const storms = await serverStorms({
      contestant: CONTESTANTS.shipped,
      server,
      starters: 300,
      initialised: true,
    });
    for (const storm of [storms.first, storms.released]) {
      const { requests } = cellOf({ contestant: 'shipped', cluster: 'empty', starters: 300 }, [storm]);
      // A plain scan begins with one request for each of the 300 objects, whatever it finds.
      expect(total(requests)).toBeLessThanOrEqual(300 / 20);
    }
  });
});

describe('what is made of the numbers', () => {
  const cell = (contestant: Cell['contestant'], starters: number, requests: number): Cell => ({
    ...{ contestant, starters, cluster: 'empty', storms: 1, mostRequests: 9 },
    ...{
      requests: { get: requests, put: 0, list: 0, delete: 0 },
      afterwards: { get: 0, put: 0, list: 0, delete: 0 },
    },
    ...{ firstMs: 100, lastMs: 1_000, dollars: 0.0123 },
  });
  const cells = [
    cell('shipped', 10, 5),
    cell('plain', 10, 20),
    cell('shipped', 1_000, 5),
    cell('plain', 1_000, 1_500),
  ];

  it('the table has the plain scan next to nodelease in every line', () => {
    const rows = comparisonTable(cells).split('\n').slice(2);
    expect(rows).toHaveLength(2);
    expect(rows[1]).toBe(
      '| empty bucket | 1,000 | **5.00** | 1,500 | 300 × | **9** | 9 | **0.10 s** | 0.10 s | **1.00 s** | 1.00 s | **$0.012** | $0.012 |',
    );
  });

  it('the chart says in words what it shows, and draws every point inside of its panel', () => {
    const chart = stormChart(cells);
    expect(chart).toContain('role="img" aria-labelledby="title desc"');
    expect(chart).toMatch(
      /<desc id="desc">Requests a task, nodelease: 5 with 10 tasks, 5 with 1000 tasks\. .*plain scan: 20 with 10 tasks/,
    );
    const points = [...chart.matchAll(/cx="([^"]+)" cy="([^"]+)"/g)].map(([, x, y]) => [
      Number(x),
      Number(y),
    ]);
    expect(points).toHaveLength(8);
    for (const [x = Number.NaN, y = Number.NaN] of points) {
      expect(x).toBeGreaterThanOrEqual(80);
      expect(x).toBeLessThanOrEqual(840);
      expect(y).toBeGreaterThanOrEqual(80);
      expect(y).toBeLessThanOrEqual(310);
    }
    expect(chart).toContain('prefers-color-scheme: dark');
    expect(chart).not.toMatch(/NaN|undefined|Infinity/);
  });

  it('a table goes where the page has a place for it, and nowhere else', () => {
    const page = 'a\n<!-- memory -->\n| old |\n<!-- end of memory -->\nb\n';
    expect(withTables(page, { memory: '| new |' })).toBe(
      'a\n<!-- memory -->\n| new |\n<!-- end of memory -->\nb\n',
    );
    expect(() => withTables(page, { other: '| new |' })).toThrow('there is no <!-- other -->');
  });
});

describe('the command', () => {
  afterEach(killAll);

  const storm = (...args: string[]) =>
    runProcess(process.execPath, [harnessFile('bench/storm/main.ts'), ...args]);

  it('measures what it is asked for', async () => {
    const run = storm(
      '--starters',
      '5,10',
      '--cluster',
      'just-released',
      '--contestant',
      'shipped,plain',
      '--seeds',
      '2',
    );
    expect(await run.exit).toEqual({ code: 0, signal: null });
    expect(run.stdout().trim().split('\n')).toHaveLength(2 + 4);
    expect(run.stdout()).not.toContain('NaN');
  });

  it.each([
    [['--starters', '0'], '--starters: expected a whole number from 1 to 10000, got "0"'],
    [
      ['--cluster', 'full'],
      '--cluster: expected some of empty, initialised, just-released, half-full, few-free, got "full"',
    ],
    [['--parts', 'memory,memory'], '--parts: expected each once, got "memory,memory"'],
    [['--parts', 'memory', '--write'], '--write: expected all parts'],
    [['--starters', '10', '--write'], '--parts, --write: not with --starters, --cluster, --contestant'],
    [['--seed', '1'], "Unknown option '--seed'"],
  ])('refuses %j and says why', async (args, reason) => {
    const refused = storm(...args);
    expect((await refused.exit).code).toBe(64);
    expect(refused.stderr()).toContain(`storm: ${reason}`);
    expect(refused.stdout()).toBe('');
  });
});
