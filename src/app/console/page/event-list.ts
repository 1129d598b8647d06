import { type ComponentChildren, h } from 'preact';
import type { ClusterEvent } from '../../../node/wire/cluster-snapshot.js';
import type { ClusterModel } from '../model/cluster-model.js';
import { clockTime, eventText, shortName } from '../model/format.js';
import { flag, mark, memo, panel, quiet, search } from './ui.js';

/** More events of one kind in one scan are one entry, which can be opened. */
const MAX_ALONE = 3;
/** What the events can be filtered by. */
const KINDS: Readonly<Record<string, readonly ClusterEvent['kind'][]>> = {
  'take-overs': ['taken-over'],
  losses: ['overdue', 'evicted', 'damaged', 'version-repeated'],
  'acquired, released': ['acquired', 'taken-over', 'released'],
  'cluster and store': ['retired', 'restored', 'resized', 'store-failed', 'store-ok'],
};

/** A key of `KINDS`, or an empty text for all, and what the events contain. */
export interface EventFilter {
  readonly kind: string;
  readonly text: string;
}

/** What happened, newest first. */
export function eventList(
  { events, lastOld }: ClusterModel,
  filter: EventFilter,
  onFilter: (filter: EventFilter) => void,
) {
  const draw = () => {
    const kinds = KINDS[filter.kind];
    const text = filter.text.trim().toLowerCase();
    const fits = (event: ClusterEvent) =>
      (kinds?.includes(event.kind) ?? true) && event.text.toLowerCase().includes(text);
    const onChange = ({ target }: Event) =>
      onFilter({ ...filter, kind: (target as HTMLSelectElement).value });
    const options = Object.keys(KINDS).map((kind) => h('option', { key: kind }, kind));
    const choice = h('select', { value: filter.kind, onChange }, h('option', { value: '' }, 'all'), options);
    const onText = (text: string) => onFilter({ ...filter, text });
    const none =
      events.length > 0
        ? 'No event fits the filter.'
        : 'Nothing has happened since this console began to look.';
    const row = ({ id, at, kind }: ClusterEvent, key: string, hidden: boolean, content: ComponentChildren) =>
      h(
        'li',
        { key, class: 'event', 'data-kind': kind, 'data-new': flag(id > lastOld), hidden },
        h('time', { datetime: new Date(at).toISOString() }, clockTime(at)),
        mark(kind),
        content,
      );
    const item = (event: ClusterEvent) => {
      const { id, nodeId } = event;
      const text = h(
        'span',
        { class: 'event-text', title: event.text },
        eventText(event).replace(/\S{21,}/g, shortName),
      );
      const link = {
        type: 'button',
        class: 'event-link',
        title: `Show node id ${nodeId}`,
        'data-node': nodeId,
      } as const;
      return row(event, `${id}`, !fits(event), nodeId === null ? text : h('button', link, text));
    };
    const group = ([key, all]: [string, readonly ClusterEvent[]]) => {
      const { length } = all.filter(fits);
      const [first] = all;
      if (first === undefined || length <= MAX_ALONE) return all.map(item);
      const text = `${length} node ids: ${first.kind.replace('-', ' ')}`;
      const summary = h('summary', { class: 'event-text' }, text);
      return row(first, key, false, h('details', null, summary, h('ol', null, all.map(item))));
    };
    const sameScan = ({ at, kind }: ClusterEvent) => `${at} ${kind}`;
    return panel(
      'events',
      'Events',
      [
        h('label', null, h('span', { class: 'hidden-label' }, 'Which events'), choice),
        search('Events that contain', 'containing …', filter.text, onText),
      ],
      !events.some(fits) && quiet(none),
      h(
        'ol',
        { class: 'event-list', reversed: true, 'aria-label': 'Events, newest first' },
        [...Map.groupBy(events, sameScan)].flatMap(group),
      ),
    );
  };
  return memo(draw, [events, filter]);
}
