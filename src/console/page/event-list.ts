import { h } from 'preact';
import type { ClusterModel } from '../cluster-model.js';
import { clockTime, eventText } from '../format.js';
import type { WireEvent } from '../wire.js';
import { flag, mark, memo, panel, quiet, search } from './ui.js';

/** What the events can be filtered by. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
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
    const fits = (event: WireEvent) =>
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
    const item = (event: WireEvent) => {
      const { id, at, kind, nodeId } = event;
      const text = h('span', { class: 'event-text' }, eventText(event));
      const link = {
        type: 'button',
        class: 'event-link',
        title: `Show node id ${nodeId}`,
        'data-node': nodeId,
      } as const;
      return h(
        'li',
        { key: id, class: 'event', 'data-kind': kind, 'data-new': flag(id > lastOld), hidden: !fits(event) },
        h('time', { datetime: new Date(at).toISOString() }, clockTime(at)),
        mark(kind),
        nodeId === null ? text : h('button', link, text),
      );
    };
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
        events.map(item),
      ),
    );
  };
  return memo(draw, [events, filter]);
}
