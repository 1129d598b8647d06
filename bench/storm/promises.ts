import type { Cell, Place } from './cell.js';
import { CLUSTERS } from './clusters.js';
import type { ServerCell } from './parts.js';
import { total } from './request-count.js';
import { DURATION_MS } from './storm.js';
import type { Surplus } from './surplus.js';

/** Something that was promised, and what was measured of it. */
export interface Promised {
  readonly what: string;
  readonly value: number;
  readonly side: 'least' | 'most';
  readonly bound: number;
}

/**
 * Requests a task with 1,000 starters, without and with the proof of the store's conditions, and how many
 * times as long as 10 of them they may take.
 */
const REQUESTS_A_TASK = { unproven: 5.5, proving: 7.5 } as const;
const TIMES_AS_LONG = 3;
/** How many times the requests of nodelease a plain scan needs with 300 starters. */
const TIMES_AS_MANY = 20;
/** How many times the requests of a task on S3 one on another server may need. */
const TIMES_S3 = 1.5;
/** The grace of the clusters here, and what may pass until an expired id is found and taken. Milliseconds. */
const GRACE_MS = 1_000;
const FOUND_MS = 2_000;
/** Requests of a waiting task in the time of a lease's duration. */
const REQUESTS_A_DURATION = 3.3;

/**
 * Storms of 10 and of 1,000 tasks on the memory store, with and without the proof that it keeps its
 * conditions.
 */
export function memoryPromises(cells: readonly Cell[]): readonly Promised[] {
  return (['empty', 'initialised', 'just-released', 'half-full'] as const).flatMap((cluster) => {
    const few = find(cells, { contestant: 'shipped', cluster, starters: 10 });
    const many = find(cells, { contestant: 'shipped', cluster, starters: 1_000 });
    const fewProving = find(cells, { contestant: 'proving', cluster, starters: 10 });
    const manyProving = find(cells, { contestant: 'proving', cluster, starters: 1_000 });
    const { title } = CLUSTERS[cluster];
    return [
      {
        what: `memory, ${title}: requests a task, 1,000 tasks`,
        value: total(many.requests),
        side: 'most',
        bound: REQUESTS_A_TASK.unproven,
      },
      {
        what: `memory, ${title}, with the proof: requests a task, 1,000 tasks`,
        value: total(manyProving.requests),
        side: 'most',
        bound: REQUESTS_A_TASK.proving,
      },
      {
        what: `memory, ${title}: time of 1,000 tasks / of 10`,
        value: many.lastMs / few.lastMs,
        side: 'most',
        bound: TIMES_AS_LONG,
      },
      {
        what: `memory, ${title}, with the proof: time of 1,000 tasks / of 10`,
        value: manyProving.lastMs / fewProving.lastMs,
        side: 'most',
        bound: TIMES_AS_LONG,
      },
    ] as const;
  });
}

/** Storms of 300 tasks on the S3 server. */
export function s3Promises(cells: readonly Cell[]): readonly Promised[] {
  return (['empty', 'just-released'] as const).map((cluster) => {
    const [ours, plain] = (['shipped', 'plain'] as const).map((contestant) =>
      find(cells, { contestant, cluster, starters: 300 }),
    );
    const value = total((plain as Cell).requests) / total((ours as Cell).requests);
    return {
      what: `S3, ${CLUSTERS[cluster].title}: requests of the plain scan / of nodelease, 300 tasks`,
      value,
      side: 'least',
      bound: TIMES_AS_MANY,
    };
  });
}

/** Storms on servers of several kinds: each takes about as many requests as S3, however long they take. */
export function serverPromises(cells: readonly ServerCell[]): readonly Promised[] {
  return cells.flatMap(({ server, cell }) => {
    const s3 = cells.find((one) => one.server === 's3' && one.cell.cluster === cell.cluster)?.cell;
    if (server === 's3' || s3 === undefined) return [];
    const value = total(cell.requests) / total(s3.requests);
    const what = `${server}, ${CLUSTERS[cell.cluster].title}: requests a task / of one on S3, ${cell.starters} tasks`;
    return [{ what, value, side: 'most', bound: TIMES_S3 }] as const;
  });
}

/** Storms on the largest cluster that there can be: few starters or many, it is all the same. */
export function largePromises(cells: readonly Cell[]): readonly Promised[] {
  const ours = cells.filter(({ contestant, cluster }) => contestant === 'shipped' && cluster === 'few-free');
  const [few, many] = [ours.at(0), ours.at(-1)] as [Cell, Cell];
  const { title } = CLUSTERS['few-free'];
  const tasks = `${many.starters} tasks / of ${few.starters}`;
  return [
    {
      what: `memory, ${title}: requests a task of ${tasks}`,
      value: total(many.requests) / total(few.requests),
      side: 'most',
      bound: TIMES_AS_LONG,
    },
    {
      what: `memory, ${title}: time of ${tasks}`,
      value: many.lastMs / few.lastMs,
      side: 'most',
      bound: TIMES_AS_LONG,
    },
  ];
}

/** Waiting tasks. */
export function surplusPromises(rows: readonly Surplus[]): readonly Promised[] {
  return rows
    .filter(({ contestant }) => contestant === 'shipped')
    .flatMap(({ waiting, ...row }) => [
      {
        what: `${waiting} waiting: requests a task and duration`,
        value: row.perDuration,
        side: 'most',
        bound: REQUESTS_A_DURATION,
      } as const,
      {
        what: `${waiting} waiting: seconds from an expiry to the next holder, worst of single crashes`,
        value: (row.afterCrash.maxMs - DURATION_MS) / 1_000,
        side: 'most',
        bound: (DURATION_MS + GRACE_MS + FOUND_MS) / 1_000,
      } as const,
      {
        what: `${waiting} waiting: seconds from an expiry to the next holder, worst of many at once`,
        value: (row.afterCrashOfAll.maxMs - DURATION_MS) / 1_000,
        side: 'most',
        bound: (DURATION_MS + GRACE_MS + FOUND_MS) / 1_000,
      } as const,
    ]);
}

/** Whether it is kept. */
export function isKept({ value, side, bound }: Promised): boolean {
  return side === 'least' ? value >= bound : value <= bound;
}

function find(cells: readonly Cell[], { contestant, cluster, starters }: Place): Cell {
  const cell = cells.find(
    (one) => one.contestant === contestant && one.cluster === cluster && one.starters === starters,
  );
  if (cell === undefined) throw new Error(`${contestant}, ${cluster}, ${starters} tasks: not measured`);
  return cell;
}
