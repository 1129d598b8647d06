import { clockTime } from '../format.js';
import type { PageClock } from '../page-clock.js';
import type { WireEvent } from '../wire.js';
import { make, mark } from './dom.js';

/** Events that are shown. */
const EVENTS = 200;

/** What the events can be filtered by. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  'take-overs': ['taken-over'],
  losses: ['overdue', 'evicted', 'damaged'],
  leases: ['acquired', 'taken-over', 'released'],
  cluster: ['retired', 'restored', 'resized', 'store-failed', 'store-ok'],
};

/** What happened, newest first. */
export class EventList {
  #kind = '';
  #text = '';
  readonly #items: { readonly event: WireEvent; readonly element: HTMLElement }[] = [];

  constructor(
    private readonly list: HTMLElement,
    private readonly none: HTMLElement,
    private readonly onSelect: (id: number) => void,
  ) {}

  /** Puts new events, oldest first, on top of those there are, or in their place. */
  add(events: readonly WireEvent[], reset: boolean): void {
    if (reset) this.#items.splice(0);
    const added = events.map((event) => ({ event, element: this.#item(event, !reset) }));
    this.#items.push(...added);
    for (const { element } of this.#items.splice(0, Math.max(0, this.#items.length - EVENTS))) element.remove();
    if (reset) this.list.replaceChildren();
    this.list.prepend(...added.map(({ element }) => element).reverse());
    this.#apply();
  }

  /** @param kind one of the values of the selection; empty for all */
  filter(kind: string, text: string): void {
    this.#kind = kind;
    this.#text = text.trim().toLowerCase();
    this.#apply();
  }

  #apply(): void {
    const kinds = KINDS[this.#kind];
    let shown = 0;
    for (const { event, element } of this.#items) {
      const fits = (kinds === undefined || kinds.includes(event.kind)) && event.text.toLowerCase().includes(this.#text);
      element.hidden = !fits;
      if (fits) shown += 1;
    }
    this.none.hidden = shown > 0;
    this.none.textContent = this.#items.length > 0 ? 'No event fits the filter.' : 'Nothing has happened since this console began to look.';
  }

  #item({ at, kind, nodeId, text }: WireEvent, isNew: boolean): HTMLElement {
    const time = make('time', { text: clockTime(at), attributes: { datetime: new Date(at).toISOString() } });
    const attributes = { type: 'button', title: `Show node id ${nodeId}` };
    const said = make('span', { class: 'event-text', text });
    const content =
      nodeId === null ? said : make('button', { class: 'event-link', attributes, onClick: () => this.onSelect(nodeId) }, said);
    return make('li', { class: 'event', attributes: { 'data-kind': kind, ...(isNew && { 'data-new': '' }) } }, time, mark(kind), content);
  }
}

/** What is said one by one; more than that at once is counted. */
const ONE_BY_ONE = 3;
/** From one thing that is said to the next, in milliseconds. */
const PAUSE_MS = 1_500;

/** Tells screen readers what happens, with pauses. */
export class Announcer {
  #waiting: string[] = [];
  #isTalking = false;

  constructor(
    private readonly region: HTMLElement,
    private readonly clock: PageClock,
  ) {}

  say(text: string): void {
    this.#waiting.push(text);
    if (!this.#isTalking) void this.#talk();
  }

  async #talk(): Promise<void> {
    this.#isTalking = true;
    while (this.#waiting.length > 0) {
      const texts = this.#waiting.splice(0);
      const count = texts.length - ONE_BY_ONE;
      const rest = count > 0 ? [`and ${count} more events`] : [];
      this.region.textContent = [...texts.slice(0, ONE_BY_ONE), ...rest].join('. ');
      await this.clock.sleep(PAUSE_MS);
    }
    this.#isTalking = false;
  }
}
