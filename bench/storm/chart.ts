import type { Cell } from './cell.js';
import { CONTESTANTS, type ContestantName } from './contestants.js';
import { total } from './request-count.js';

/** What a panel shows of each cell, over the number of tasks. Both axes are logarithmic. */
interface Panel {
  readonly title: string;
  readonly of: (cell: Cell) => number;
  /** Ends of the vertical axis: powers of ten. */
  readonly from: number;
  readonly to: number;
  readonly tell: (value: number) => string;
}

interface Point {
  readonly starters: number;
  readonly least: number;
  readonly mean: number;
  readonly most: number;
}

const PANELS: readonly Panel[] = [
  {
    title: 'Requests a task',
    of: ({ requests }) => total(requests),
    from: 1,
    to: 10_000,
    tell: (value) => value.toLocaleString('en-US'),
  },
  {
    title: 'Time until the last task has its id',
    of: ({ lastMs }) => lastMs / 1_000,
    from: 0.1,
    to: 1_000,
    tell: (value) => `${value} s`,
  },
];
const SERIES: readonly ContestantName[] = ['plain', 'shipped'];

const SIZE = { width: 880, height: 380 };
const PLOT = { width: 320, height: 230, top: 80, lefts: [80, 520] } as const;

const STYLE = `
    .ground { fill: #ffffff; stroke: #d0d7de }
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-size: 15px; font-weight: 600 }
    .grid { stroke: #d8dee4 }
    .line { fill: none; stroke-width: 2.5 }
    .band { opacity: 0.2; stroke: none }
    .shipped { stroke: #0969da; fill: #0969da }
    .plain { stroke: #bc4c00; fill: #bc4c00 }
    text.shipped, text.plain { stroke: none; font-weight: 600 }
    .line.plain { stroke-dasharray: 7 4 }
    .line.shipped, .line.plain { fill: none }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #0d1117; stroke: #30363d }
      text { fill: #e6edf3 }
      .grid { stroke: #30363d }
      .shipped { stroke: #58a6ff; fill: #58a6ff }
      .plain { stroke: #f0883e; fill: #f0883e }
    }`;

/**
 * An SVG document of two panels, for light and dark pages: a line for each contestant, the geometric mean
 * over the clusters, in a band from the cluster where it was least to the one where it was most.
 *
 * @param cells both contestants on the same clusters, with the same numbers of starters
 */
export function stormChart(cells: readonly Cell[]): string {
  const { width, height } = SIZE;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title desc">
  <title id="title">A boot storm: requests a task and time, nodelease and a plain scan</title>
  <desc id="desc">${description(cells)}</desc>
  <style>${STYLE}
  </style>
  <rect class="ground" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>
${PANELS.map((panel, index) => drawPanel(panel, PLOT.lefts[index] as number, cells)).join('\n')}
</svg>
`;
}

/** The chart in words, for those who do not see it. */
function description(cells: readonly Cell[]): string {
  return PANELS.flatMap((panel) =>
    SERIES.toReversed().map((name) => {
      const told = points(cells, name, panel).map(
        ({ starters, mean }) => `${panel.tell(rounded(mean))} with ${starters} tasks`,
      );
      return `${panel.title}, ${CONTESTANTS[name].title}: ${told.join(', ')}.`;
    }),
  ).join(' ');
}

function drawPanel(panel: Panel, left: number, cells: readonly Cell[]): string {
  const { width, height, top } = PLOT;
  const counts = [...new Set(cells.map(({ starters }) => starters))].sort((a, b) => a - b);
  const [fewest, most] = [counts[0] ?? 1, counts.at(-1) ?? 1];
  const x = (count: number) => left + width * share(count, fewest, most);
  const y = (value: number) => top + height * (1 - share(value, panel.from, panel.to));
  const parts = [
    `<text class="title" x="${left - 50}" y="${top - 40}">${panel.title}</text>`,
    ...ticks(panel).map(
      (tick) => line(left, left + width, y(tick)) + label(left - 8, y(tick) + 4, 'end', panel.tell(tick)),
    ),
    ...counts.map((count) => label(x(count), top + height + 22, 'middle', count.toLocaleString('en-US'))),
    label(left + width / 2, top + height + 46, 'middle', 'tasks that start at once'),
    ...SERIES.map((name) => drawSeries(name, points(cells, name, panel), x, y)),
  ];
  return `  <g>\n${parts.map((part) => `    ${part}`).join('\n')}\n  </g>`;
}

function drawSeries(
  name: ContestantName,
  all: readonly Point[],
  x: (count: number) => number,
  y: (value: number) => number,
): string {
  const at = (value: (point: Point) => number) =>
    all.map((point) => `${tenth(x(point.starters))},${tenth(y(value(point)))}`);
  // Each name on its own side, where the other's line never is.
  const beside = ({ least, most }: Point) => (name === 'plain' ? y(most) - 24 : y(least) + 24);
  const upper = at(({ most }) => most);
  const lower = at(({ least }) => least).toReversed();
  const [, middle] = all;
  const title =
    middle === undefined
      ? ''
      : label(x(middle.starters), beside(middle), 'middle', CONTESTANTS[name].title, name);
  const dots = all.map(
    (point) =>
      `<circle class="${name}" cx="${tenth(x(point.starters))}" cy="${tenth(y(point.mean))}" r="3.5"/>`,
  );
  return (
    `<polygon class="band ${name}" points="${[...upper, ...lower].join(' ')}"/>` +
    `<polyline class="line ${name}" points="${at(({ mean }) => mean).join(' ')}"/>${dots.join('')}${title}`
  );
}

function points(cells: readonly Cell[], name: ContestantName, { of }: Panel): readonly Point[] {
  const own = cells.filter(({ contestant }) => contestant === name);
  const counts = [...new Set(own.map(({ starters }) => starters))].sort((a, b) => a - b);
  return counts.map((starters) => {
    const values = own.filter((cell) => cell.starters === starters).map(of);
    const mean = Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
    return { starters, least: Math.min(...values), mean, most: Math.max(...values) };
  });
}

function ticks({ from, to }: Panel): readonly number[] {
  const all: number[] = [];
  for (let tick = from; tick <= to * 1.001; tick *= 10) all.push(Number(tick.toPrecision(3)));
  return all;
}

/** Where a value lies between two others on a logarithmic scale, 0 … 1. */
function share(value: number, from: number, to: number): number {
  return Math.log(value / from) / Math.log(to / from);
}

function line(from: number, to: number, y: number): string {
  return `<line class="grid" x1="${from}" x2="${to}" y1="${tenth(y)}" y2="${tenth(y)}"/>`;
}

function label(x: number, y: number, anchor: string, text: string, name = ''): string {
  return `<text${name && ` class="${name}"`} x="${tenth(x)}" y="${tenth(y)}" text-anchor="${anchor}">${text}</text>`;
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
