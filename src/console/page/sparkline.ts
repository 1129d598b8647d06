const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 120;
const HEIGHT = 24;
/** How many values the whole width has room for. */
const ROOM = 60;

/** The last values as a line, the newest at the right end; 0 is at the bottom. Decoration: says nothing aloud. */
export function sparkline(values: readonly number[]): SVGElement {
  const most = Math.max(...values, 1);
  const x = (index: number) => WIDTH - 1 - ((values.length - 1 - index) * (WIDTH - 2)) / (ROOM - 1);
  const y = (value: number) => HEIGHT - 1 - (value / most) * (HEIGHT - 3);
  const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const line = element('polyline', { points, fill: 'none', 'vector-effect': 'non-scaling-stroke' });
  return element(
    'svg',
    { class: 'sparkline', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: `${WIDTH}`, height: `${HEIGHT}`, 'aria-hidden': 'true' },
    line,
  );
}

function element(name: string, attributes: Readonly<Record<string, string>>, ...children: readonly SVGElement[]): SVGElement {
  const made = document.createElementNS(SVG, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
