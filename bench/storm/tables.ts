import { grouped, markdownTable } from '../markdown.js';
import type { Cell } from './cell.js';
import { CLUSTERS } from './clusters.js';
import { CONTESTANTS } from './contestants.js';
import type { ServerCell } from './parts.js';
import { total } from './request-count.js';
import { DURATION_MS } from './storm.js';
import type { Surplus } from './surplus.js';

/** nodelease and the plain scan next to each other, a line for each cluster and number of starters. */
export function comparisonTable(cells: readonly Cell[]): string {
  const pairs = cells
    .filter(({ contestant }) => contestant === 'shipped')
    .map((ours) => ({ ours, plain: plainFor(ours, cells) }));
  const { shipped, plain } = CONTESTANTS;
  const nextTo = (what: string) => [`${what}: ${shipped.title}`, plain.title];
  const head = [
    'cluster',
    'tasks',
    ...nextTo('requests a task'),
    'ratio',
    ...nextTo('most of one'),
    ...nextTo('first id'),
    ...nextTo('last id'),
    ...nextTo('cost'),
  ];
  return markdownTable(
    head,
    pairs.map(({ ours, plain }) => [
      CLUSTERS[ours.cluster].title,
      grouped(ours.starters),
      ...both(ours, plain, ({ requests }) => quantity(total(requests))),
      plain === undefined ? '' : `${quantity(total(plain.requests) / total(ours.requests))} ×`,
      ...both(ours, plain, ({ mostRequests }) => grouped(mostRequests)),
      ...both(ours, plain, ({ firstMs }) => seconds(firstMs)),
      ...both(ours, plain, ({ lastMs }) => seconds(lastMs)),
      ...both(ours, plain, (cell) => price(cell.dollars)),
    ]),
  );
}

/** What kinds of requests they are; with a column for the contestants where there are several. */
export function kindTable(cells: readonly Cell[]): string {
  const several = new Set(cells.map(({ contestant }) => contestant)).size > 1;
  const columns = [
    'GET',
    'PUT',
    'LIST',
    'DELETE',
    'together',
    'most of one',
    'first id',
    'last id',
    'afterwards',
  ];
  return markdownTable(
    ['cluster', ...(several ? ['by'] : []), 'tasks', ...columns],
    cells.map(({ cluster, contestant, starters, requests, mostRequests, firstMs, lastMs, afterwards }) => [
      CLUSTERS[cluster].title,
      ...(several ? [CONTESTANTS[contestant].title] : []),
      grouped(starters),
      ...[requests.get, requests.put, requests.list, requests.delete, total(requests)].map((count) =>
        count.toFixed(2),
      ),
      ...[grouped(mostRequests), seconds(firstMs), seconds(lastMs), total(afterwards).toFixed(2)],
    ]),
  );
}

/** Storms of nodelease on servers of several kinds, next to those on S3. */
export function serverTable(cells: readonly ServerCell[]): string {
  return markdownTable(
    ['store', 'cluster', 'tasks', 'requests a task', '× S3', 'most of one', 'first id', 'last id', '× S3'],
    cells.map(({ server, cell }) => {
      const s3 = cells.find((one) => one.server === 's3' && one.cell.cluster === cell.cluster)?.cell ?? cell;
      return [
        ...[server, CLUSTERS[cell.cluster].title, grouped(cell.starters)],
        ...[
          quantity(total(cell.requests)),
          quantity(total(cell.requests) / total(s3.requests)),
          grouped(cell.mostRequests),
        ],
        ...[seconds(cell.firstMs), seconds(cell.lastMs), quantity(cell.lastMs / s3.lastMs)],
      ];
    }),
  );
}

/** Waiting tasks. */
export function surplusTable(rows: readonly Surplus[]): string {
  return markdownTable(
    [
      '',
      'waiting tasks',
      'requests a task and duration',
      'most of one task',
      'release → next holder: median',
      'worst',
      'last renewal → next holder: median',
      'worst',
      'expiry → next holder: median',
      'worst',
      'many crash at once: expiry → last next holder',
    ],
    rows.map(
      ({ contestant, waiting, perDuration, mostPerDuration, afterRelease, afterCrash, afterCrashOfAll }) => [
        CONTESTANTS[contestant].title,
        grouped(waiting),
        ...[perDuration, mostPerDuration].map(quantity),
        ...[afterRelease.medianMs, afterRelease.maxMs, afterCrash.medianMs, afterCrash.maxMs].map(seconds),
        ...[afterCrash.medianMs, afterCrash.maxMs, afterCrashOfAll.maxMs].map((ms) =>
          seconds(ms - DURATION_MS),
        ),
      ],
    ),
  );
}

function plainFor({ cluster, starters }: Cell, cells: readonly Cell[]): Cell | undefined {
  return cells.find(
    (cell) => cell.contestant === 'plain' && cell.cluster === cluster && cell.starters === starters,
  );
}

function both(ours: Cell, plain: Cell | undefined, describe: (cell: Cell) => string): readonly string[] {
  return [`**${describe(ours)}**`, plain === undefined ? '' : describe(plain)];
}

function quantity(value: number): string {
  return value >= 100 ? grouped(value) : value.toFixed(value >= 10 ? 1 : 2);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(ms >= 10_000 ? 1 : 2)} s`;
}

function price(dollars: number): string {
  return `$${dollars >= 1 ? dollars.toFixed(2) : dollars.toPrecision(2)}`;
}
