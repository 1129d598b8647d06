import { drawLogChart } from '../log-chart.js';
import { grouped, markdownTable } from '../markdown.js';
import { dollars, type RequestCount, total } from '../storm/request-count.js';
import { CHANGES, type ChangeName, type SceneCosts } from './scene.js';
import { WAYS } from './ways.js';

/** What was measured for one number of shards. */
export interface CountCosts {
  readonly count: number;
  /** The same fleet without shards. */
  readonly leases: SceneCosts;
  readonly shards: SceneCosts;
  readonly leaseAShard: SceneCosts;
}

const MINUTES_A_MONTH = 30 * 24 * 60;
const TITLES: Readonly<Record<ChangeName, string>> = {
  join: 'a node joins',
  leave: 'a node leaves',
  crash: 'a node crashes',
  rolling: 'all restart, five at a time',
};

/** What the shards of a node cost in a minute, its node id left out. */
export function moreThanLeases({ shards, leases }: Pick<CountCosts, 'shards' | 'leases'>): RequestCount {
  const { get, put, list, delete: deleted } = leases.steady;
  const all = shards.steady;
  return { get: all.get - get, put: all.put - put, list: all.list - list, delete: all.delete - deleted };
}

/** The steady state. */
export function steadyTable(rows: readonly CountCosts[]): string {
  const { shards, 'lease-a-shard': plain } = WAYS;
  const head = [
    'shards',
    `${shards.title}: GET`,
    'PUT',
    'LIST',
    `${plain.title}: PUT`,
    'LIST',
    `dollars a month: ${shards.title}`,
    plain.title,
  ];
  return markdownTable(
    head,
    rows.map((row) => {
      const [ours, theirs] = [moreThanLeases(row), row.leaseAShard.steady];
      const month = (requests: RequestCount) =>
        grouped(dollars(requests) * row.shards.nodes * MINUTES_A_MONTH);
      return [
        grouped(row.count),
        ...[ours.get, ours.put, ours.list, theirs.put, theirs.list].map((value) => quantity(value)),
        ...[month(ours), month(theirs)],
      ];
    }),
  );
}

/** What happens when nodes come and go: both ways in each line. */
export function changeTable(rows: readonly CountCosts[]): string {
  const { shards, 'lease-a-shard': plain } = WAYS;
  const head = [
    '',
    'shards',
    ...[`writes: ${shards.title}`, plain.title],
    ...[`starts: ${shards.title}`, plain.title],
    ...[`until a shard runs again: ${shards.title}, median`, 'p99', 'worst'],
    ...[`${plain.title}, median`, 'p99', 'worst'],
    ...[`two owners for up to: ${shards.title}`, plain.title],
  ];
  return markdownTable(
    head,
    CHANGES.flatMap((name) =>
      rows.map(({ count, ...row }) => {
        const [ours, theirs] = [row.shards.changes[name], row.leaseAShard.changes[name]];
        return [
          TITLES[name],
          grouped(count),
          ...[ours.writes, theirs.writes, ours.starts, theirs.starts].map((value) => quantity(value)),
          ...[ours, theirs].flatMap(({ down }) => [down.medianMs, down.p99Ms, down.maxMs].map(seconds)),
          ...[ours.twiceMs, theirs.twiceMs].map(seconds),
        ];
      }),
    ),
  );
}

/** Requests in the steady state, and writes of a rolling restart, over the number of shards. */
export function shardChart(rows: readonly CountCosts[]): string {
  const panel = (
    title: string,
    [from, to]: readonly [number, number],
    ours: (row: CountCosts) => number,
    theirs: (row: CountCosts) => number,
  ) => {
    const points = (of: typeof ours) =>
      rows.map((row) => ({ x: row.count, min: of(row), mean: of(row), max: of(row) }));
    const show = (value: number) => value.toLocaleString('en-US');
    const series = [
      { name: 'plain' as const, title: WAYS['lease-a-shard'].title, points: points(theirs) },
      { name: 'shipped' as const, title: WAYS.shards.title, points: points(ours) },
    ];
    return { title, from, to, show, series };
  };
  return drawLogChart({
    title: 'Shards on 100 nodes: requests and writes, nodelease and a lease a shard',
    axis: 'shards',
    unit: 'shards',
    panels: [
      panel(
        'Requests a node and minute',
        [1, 1_000],
        (row) => total(moreThanLeases(row)),
        (row) => total(row.leaseAShard.steady),
      ),
      panel(
        'Writes of a rolling restart',
        [10, 100_000],
        (row) => row.shards.changes.rolling.writes,
        (row) => row.leaseAShard.changes.rolling.writes,
      ),
    ],
  });
}

function quantity(value: number): string {
  return value >= 100 || Number.isInteger(value) ? grouped(value) : value.toFixed(value >= 10 ? 1 : 2);
}

function seconds(ms: number): string {
  return Number.isNaN(ms) ? '–' : `${(ms / 1_000).toFixed(1)} s`;
}
