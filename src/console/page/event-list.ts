import { clockTime, eventText } from '../format.js';
import type { WireEvent } from '../wire.js';
import { button, find, make, mark } from './dom.js';

/** Events that are shown. */
const EVENTS = 200;

/** What the events can be filtered by. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  'take-overs': ['taken-over'],
  losses: ['overdue', 'evicted', 'damaged', 'version-repeated'],
  leases: ['acquired', 'taken-over', 'released'],
  cluster: ['retired', 'restored', 'resized', 'store-failed', 'store-ok'],
};

/** What happened, newest first. */
export class EventList {
  readonly #list = find('event-list');
  readonly #none = find('no-events');
  readonly #kind = find('event-kind', HTMLSelectElement);
  readonly #text = find('event-text', HTMLInputElement);
  #items: { readonly event: WireEvent; readonly element: HTMLElement }[] = [];

  constructor(private readonly onSelect: (id: number) => void) {
    this.#kind.addEventListener('change', () => this.#filter());
    this.#text.addEventListener('input', () => this.#filter());
  }

  /** Puts new events, oldest first, on top of those there are, or in their place. */
  add(events: readonly WireEvent[], reset: boolean): void {
    const added = events.map((event) => ({ event, element: this.#item(event, !reset) })).reverse();
    this.#items = [...added, ...(reset ? [] : this.#items)].slice(0, EVENTS);
    if (reset) this.#list.replaceChildren();
    this.#list.prepend(...added.map(({ element }) => element));
    while (this.#list.childElementCount > EVENTS) this.#list.lastElementChild?.remove();
    this.#filter();
  }

  #filter(): void {
    const kinds = KINDS[this.#kind.value];
    const text = this.#text.value.trim().toLowerCase();
    for (const { event, element } of this.#items)
      element.hidden =
        (kinds !== undefined && !kinds.includes(event.kind)) || !event.text.toLowerCase().includes(text);
    this.#none.hidden = this.#items.some(({ element }) => !element.hidden);
    this.#none.textContent =
      this.#items.length > 0
        ? 'No event fits the filter.'
        : 'Nothing has happened since this console began to look.';
  }

  #item(event: WireEvent, isNew: boolean): HTMLElement {
    const { at, kind, nodeId } = event;
    const time = make('time', { datetime: new Date(at).toISOString() }, clockTime(at));
    const said = make('span', { class: 'event-text' }, eventText(event));
    const attributes = { class: 'event-link', title: `Show node id ${nodeId}` };
    const content = nodeId === null ? said : button(attributes, () => this.onSelect(nodeId), said);
    return make(
      'li',
      { class: 'event', 'data-kind': kind, ...(isNew && { 'data-new': '' }) },
      time,
      mark(kind),
      content,
    );
  }
}
