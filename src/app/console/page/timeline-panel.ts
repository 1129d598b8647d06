import { h } from 'preact';
import { useState } from 'preact/hooks';
import type { NodeNow } from '../model/cluster-model.js';
import { formatDuration } from '../model/format.js';
import { parseFilter } from '../model/node-state.js';
import {
  axisText,
  type Lane,
  laneParts,
  type Part,
  SPANS,
  spanEnd,
  spanSince,
  sumParts,
  timeText,
} from '../model/timeline.js';
import { flag, memo, panel } from './ui.js';

/** Maximum number of ids with a lane each; more of them share lanes. */
const MAX_LANES = 200;

interface TimelineProps {
  readonly lanes: ReadonlyMap<number, Lane>;
  readonly knownSince: ReadonlyMap<number, number | null>;
  readonly first: number;
  readonly nodes: readonly NodeNow[];
  readonly filter: string;
  readonly selected: number | undefined;
  /** Store time. */
  readonly now: number;
}

/** A line of the timeline: the take-overs, one id, or ids that share it. */
interface Row {
  readonly name: string;
  readonly id?: number;
  readonly parts: () => readonly Part[];
  /** It is drawn again when one of these is another one. */
  readonly on: readonly unknown[];
}

/** Who held which id when: a lane for each id, or for hundreds of them. */
export function Timeline({ lanes, knownSince, first, nodes, filter, selected, now }: TimelineProps) {
  /** The reader's choice. */
  const [span, setSpan] = useState<number>();
  const spanMs = span ?? spanSince(first, now);
  /** The end of the shown time, which moves with the time unless it is in the past. */
  const [end, setEnd] = useState(Number.POSITIVE_INFINITY);
  const [cursor, setCursor] = useState({ name: '', at: now });
  const to = Math.min(end, now);
  const from = to - spanMs;

  const laneOf = ({ node }: NodeNow) => lanes.get(node.id) ?? [];
  const fits = parseFilter(filter);
  const found = nodes.filter(({ node, state }) => fits(node, state));
  const own = found.length > MAX_LANES ? found.filter(({ node }) => node.id === selected) : found;
  const ownRows = own.map((each): Row => {
    const lane = laneOf(each);
    const { id } = each.node;
    return { name: `id ${id}`, id, parts: () => laneParts(lane, now, knownSince.get(id)), on: [lane] };
  });
  const size = 100 * Math.ceil(nodes.length / 2_000);
  const groups = Map.groupBy(nodes.length > MAX_LANES ? nodes : [], ({ node }) => Math.floor(node.id / size));
  const groupRows = [...groups.values()].map((members): Row => {
    const on = members.map(laneOf);
    const name = `ids ${members[0]?.node.id}–${members.at(-1)?.node.id}`;
    return { name, parts: () => sumParts(on, 'held', [from, to], now), on };
  });
  const churn = () => sumParts([...lanes.values()], 'taken over', [from, to], now);
  const rows: Row[] = [{ name: 'take-overs', parts: churn, on: [lanes] }, ...ownRows, ...groupRows];

  const { name, at } = cursor;
  const current = rows.findIndex((row) => row.name === name);
  const parts = rows[current]?.parts() ?? [];
  const part = parts.findLastIndex((each) => each.from <= at);
  const onKeyDown = (event: KeyboardEvent) => {
    const { key, altKey, metaKey } = event;
    if (!key.startsWith('Arrow') || altKey || metaKey) return;
    event.preventDefault();
    const step = key === 'ArrowDown' || key === 'ArrowRight' ? 1 : -1;
    const isVertical = key === 'ArrowDown' || key === 'ArrowUp';
    const row = rows[current + (isVertical ? step : 0)];
    const next = isVertical ? at : (parts[part + step]?.from ?? at);
    if (!row || next === 0) return;
    setCursor({ name: row.name, at: next });
    if (next < from || next > to) setEnd(spanEnd(next, spanMs, now));
    document.querySelector(`[data-lane="${row.name}"]`)?.scrollIntoView({ block: 'nearest' });
  };
  const onClick = ({ target, offsetX }: MouseEvent) => {
    const { dataset, offsetWidth } = target as HTMLElement;
    if (dataset.lane) setCursor({ name: dataset.lane, at: from + (offsetX / offsetWidth) * spanMs });
  };

  const place = (moment: number) => Math.min(100, Math.max(0, ((moment - from) / spanMs) * 100));
  const draw = ({ from: begin, to: until, kind, share, isTakeOver }: Part) => {
    const [left, right] = [place(begin), place(until)];
    const style = { left: `${left}%`, width: `${right - left}%`, height: `${share * 100}%` };
    const taken = flag(isTakeOver === true && left > 0);
    return (
      right > left && share > 0 && h('i', { class: 'span', 'data-kind': kind, 'data-taken': taken, style })
    );
  };
  const drawn = rows.map(({ name, id, parts, on }, index) => {
    const isAt = flag(index === current);
    const content = () => [
      h('span', { class: 'lane-name', 'data-node': id }, name),
      h('span', { class: 'track', 'data-lane': name, 'data-cursor': isAt }, parts().map(draw)),
    ];
    return memo(content, [from, to, isAt, ...on], name);
  });
  const onChange = ({ target }: Event) => {
    const next = Number((target as HTMLSelectElement).value);
    setSpan(next);
    if (current >= 0) setEnd(spanEnd(at, next, now));
  };
  const options = SPANS.map((value) => h('option', { value }, formatDuration(value)));
  const label = 'Timeline. Arrow keys lead from tenure to tenure, and from lane to lane.';
  const line = h('i', { class: 'cursor', hidden: current < 0, style: { left: `${place(at)}%` } });
  const moments = [0, 0.25, 0.5, 0.75, 1].map((share) => from + share * spanMs);
  const labels = moments.map((moment, index) => {
    const [time, date] = axisText(moment, moments[index - 1]);
    return h('span', null, time, h('small', null, date));
  });
  const text = `${name} at ${timeText(at)}: ${parts[part]?.text()}`;
  return panel(
    'timeline',
    'Timeline',
    h('select', { value: spanMs, 'aria-label': 'How much time', onChange }, options),
    h(
      'div',
      { class: 'lanes', role: 'application', tabIndex: 0, 'aria-label': label, onKeyDown, onClick },
      drawn,
      h('div', { class: 'over-tracks' }, line),
    ),
    h('div', { class: 'axis quiet', 'aria-hidden': 'true' }, labels),
    h(
      'p',
      { id: 'timeline-cursor', role: 'status' },
      part < 0 ? 'Click on a lane, or press arrow keys.' : text,
    ),
  );
}
