import { drawLogChart, type Point, type SeriesName } from '../log-chart.js';
import type { Cell } from './cell.js';
import { CONTESTANTS } from './contestants.js';
import { total } from './request-count.js';

const PANELS = [
  {
    title: 'Requests a task',
    of: ({ requests }: Cell) => total(requests),
    from: 1,
    to: 10_000,
    show: (value: number) => value.toLocaleString('en-US'),
  },
  {
    title: 'Time until the last task has its id',
    of: ({ lastMs }: Cell) => lastMs / 1_000,
    from: 0.1,
    to: 1_000,
    show: (value: number) => `${value} s`,
  },
];
const SERIES: readonly SeriesName[] = ['plain', 'shipped'];

/**
 * Requests and time over the number of tasks: for each contestant the geometric mean over the clusters, from
 * the cluster where it was least to the one where it was most.
 *
 * @param cells both contestants on the same clusters, with the same numbers of starters
 */
export function stormChart(cells: readonly Cell[]): string {
  return drawLogChart({
    title: 'A boot storm: requests a task and time, nodelease and a plain scan',
    axis: 'tasks that start at once',
    unit: 'tasks',
    panels: PANELS.map(({ of, ...panel }) => ({
      ...panel,
      series: SERIES.map((name) => ({
        name,
        title: CONTESTANTS[name].title,
        points: points(cells, name, of),
      })),
    })),
  });
}

function points(cells: readonly Cell[], name: SeriesName, of: (cell: Cell) => number): readonly Point[] {
  const own = cells.filter(({ contestant }) => contestant === name);
  const counts = [...new Set(own.map(({ starters }) => starters))].sort((a, b) => a - b);
  return counts.map((x) => {
    const values = own.filter(({ starters }) => starters === x).map(of);
    const mean = Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
    return { x, min: Math.min(...values), mean, max: Math.max(...values) };
  });
}
