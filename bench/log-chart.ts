/** One line of a panel. */
export interface Series {
  readonly name: SeriesName;
  readonly title: string;
  readonly points: readonly Point[];
}

/** The baseline is dashed, and is drawn first. */
export type SeriesName = 'plain' | 'shipped';

export interface Point {
  readonly x: number;
  readonly min: number;
  readonly mean: number;
  readonly max: number;
}

/** Both axes are logarithmic. */
export interface Panel {
  readonly title: string;
  /** Ends of the vertical axis: powers of ten. */
  readonly from: number;
  readonly to: number;
  readonly show: (value: number) => string;
  readonly series: readonly Series[];
}

export interface LogChart {
  readonly title: string;
  /** What the horizontal axis counts. */
  readonly axis: string;
  /** The same after a number, in the description. */
  readonly unit: string;
  readonly panels: readonly Panel[];
}

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

/** An SVG document of two panels, for light and dark pages: each series is a line in a band of min and max. */
export function drawLogChart(chart: LogChart): string {
  const { width, height } = SIZE;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title desc">
  <title id="title">${chart.title}</title>
  <desc id="desc">${description(chart)}</desc>
  <style>${STYLE}
  </style>
  <rect class="ground" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>
${chart.panels.map((panel, index) => drawPanel(panel, chart.axis, PLOT.lefts[index] as number)).join('\n')}
</svg>
`;
}

/** The chart in words, for readers who do not see it. */
function description({ panels, unit }: LogChart): string {
  return panels
    .flatMap((panel) =>
      panel.series.toReversed().map(({ title, points }) => {
        const values = points.map(({ x, mean }) => `${panel.show(rounded(mean))} with ${x} ${unit}`);
        return `${panel.title}, ${title}: ${values.join(', ')}.`;
      }),
    )
    .join(' ');
}

function drawPanel(panel: Panel, axis: string, left: number): string {
  const { width, height, top } = PLOT;
  const counts = [...new Set(panel.series.flatMap(({ points }) => points.map(({ x }) => x)))].sort(
    (a, b) => a - b,
  );
  const [fewest, most] = [counts[0] ?? 1, counts.at(-1) ?? 1];
  const x = (count: number) => left + width * share(count, fewest, most);
  const y = (value: number) => top + height * (1 - share(value, panel.from, panel.to));
  const parts = [
    `<text class="title" x="${left - 50}" y="${top - 40}">${panel.title}</text>`,
    ...ticks(panel).map(
      (tick) => line(left, left + width, y(tick)) + label(left - 8, y(tick) + 4, 'end', panel.show(tick)),
    ),
    ...counts.map((count) => label(x(count), top + height + 22, 'middle', count.toLocaleString('en-US'))),
    label(left + width / 2, top + height + 46, 'middle', axis),
    ...panel.series.map((series) => drawSeries(series, x, y)),
  ];
  return `  <g>\n${parts.map((part) => `    ${part}`).join('\n')}\n  </g>`;
}

function drawSeries(
  { name, title, points }: Series,
  x: (count: number) => number,
  y: (value: number) => number,
): string {
  const at = (value: (point: Point) => number) =>
    points.map((point) => `${tenth(x(point.x))},${tenth(y(value(point)))}`);
  // Each name on its own side, where the other's line never is.
  const nextTo = ({ min, max }: Point) => (name === 'plain' ? y(max) - 24 : y(min) + 24);
  const upper = at(({ max }) => max);
  const lower = at(({ min }) => min).toReversed();
  const [, middle] = points;
  const named = middle === undefined ? '' : label(x(middle.x), nextTo(middle), 'middle', title, name);
  const dots = points.map(
    (point) => `<circle class="${name}" cx="${tenth(x(point.x))}" cy="${tenth(y(point.mean))}" r="3.5"/>`,
  );
  return (
    `<polygon class="band ${name}" points="${[...upper, ...lower].join(' ')}"/>` +
    `<polyline class="line ${name}" points="${at(({ mean }) => mean).join(' ')}"/>${dots.join('')}${named}`
  );
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
