import { addressText, countText, fits, leaseText, type ServicesModel, stateOf } from '../services-model.js';
import type { WireService } from '../services-wire.js';
import { button, find, make, mark, setText } from './dom.js';

/** What may be done with an instance. */
export type Act = 'enable' | 'disable' | 'remove';

/** Instances of one service that are drawn; the filter finds the others. */
const MAX_ROWS = 1_000;
/** With more instances than this altogether the services are closed at first. */
const MAX_OPEN = 100;
/** A text that is shown without having to be opened, in characters. */
const SHORT = 60;

const MARKS = { enabled: 'held', disabled: 'free', 'out of service': 'overdue', damaged: 'damaged' } as const;

interface Folder {
  readonly details: HTMLDetailsElement;
  readonly name: string;
  readonly count: HTMLElement;
  readonly problem: HTMLElement;
  readonly list: HTMLElement;
  readonly more: HTMLElement;
  readonly rows: Map<string, { readonly entry: WireService; readonly element: HTMLElement }>;
}

/** The services, each with its instances. Rows are drawn for what is open, and drawn anew only where they are different. */
export class ServiceList {
  readonly #root = find('services');
  readonly #folders = new Map<string, Folder>();
  #words: readonly string[] = [];

  constructor(
    private readonly model: ServicesModel,
    private readonly onAct: (act: Act, entry: WireService) => void,
  ) {}

  /** Shows only what has all of these words, in lower case, and opens it; without words what there was at first. */
  filter(words: readonly string[]): void {
    this.#words = words;
    for (const folder of this.#folders.values()) folder.details.open = this.#isOpenAtFirst;
    this.draw(new Set(this.model.services.keys()));
  }

  /** Draws the services that have changed. */
  draw(services: ReadonlySet<string>): void {
    const isNew = [...services].some((name) => this.model.services.has(name) !== this.#folders.has(name));
    for (const name of services) {
      if (this.model.services.has(name)) continue;
      this.#folders.get(name)?.details.remove();
      this.#folders.delete(name);
    }
    for (const name of services) if (this.model.services.has(name)) this.#drawFolder(this.#folders.get(name) ?? this.#open(name));
    const inOrder = [...this.#folders.values()].sort((a, b) => compare(a.name, b.name));
    if (isNew)
      arrange(
        this.#root,
        inOrder.map(({ details }) => details),
      );
  }

  get #isOpenAtFirst(): boolean {
    return this.#words.length > 0 || this.model.count <= MAX_OPEN;
  }

  #open(name: string): Folder {
    const count = make('span', { class: 'count' });
    const problem = make('p', { class: 'bad' });
    const list = make('ul', { class: 'instances', 'aria-label': `Instances of ${name}` });
    const more = make('p', { class: 'quiet' });
    const details = make('details', { class: 'panel service' }, make('summary', {}, make('h2', {}, name), count), problem, list, more);
    const folder = { details, name, count, problem, list, more, rows: new Map() };
    details.open = this.#isOpenAtFirst;
    details.addEventListener('toggle', () => this.#drawFolder(folder));
    this.#folders.set(name, folder);
    return folder;
  }

  #drawFolder({ details, name, count, problem, list, more, rows }: Folder): void {
    const service = this.model.services.get(name);
    if (service === undefined) return;
    const { instances: all, problem: wrong } = service;
    const fitting = [...all].filter(([, entry]) => fits(entry, this.#words)).sort(([a], [b]) => compare(a, b));
    details.hidden = fitting.length === 0 && this.#words.length > 0;
    setText(count, `${countText(fitting.map(([, entry]) => entry))}${fitting.length < all.size ? ` of ${all.size}` : ''}`);
    setText(problem, wrong === null ? '' : `This service ${wrong}.`);
    const shown = details.open ? fitting.slice(0, MAX_ROWS) : [];
    setText(more, details.open && fitting.length > shown.length ? `And ${fitting.length - shown.length} more: the filter finds them.` : '');
    const focused = document.activeElement?.closest<HTMLElement>('[data-key]')?.dataset.key;
    const wanted = new Map(shown);
    for (const path of rows.keys()) if (!wanted.has(path)) rows.delete(path);
    const elements = shown.map(([path, entry]) => {
      const row = rows.get(path);
      if (row?.entry === entry) return row.element;
      const element = this.#row(path, entry, row !== undefined);
      rows.set(path, { entry, element });
      return element;
    });
    arrange(list, elements);
    // A row that is drawn anew keeps the keyboard focus.
    if (focused !== undefined && document.activeElement === document.body)
      list.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  #row(path: string, entry: WireService, isChanged: boolean): HTMLElement {
    const { id, instance, text, sessionId, problem } = entry;
    const state = stateOf(entry);
    const type = instance ? `${instance.serviceType}${sessionId === null ? '' : `, session ${sessionId}`}` : '';
    return make(
      'li',
      { class: 'instance', 'data-state': state, ...(isChanged && { 'data-new': '' }) },
      make('div', { class: 'instance-name' }, mark(MARKS[state]), make('b', {}, id), make('span', { class: 'quiet' }, state)),
      make('div', {}, make('span', {}, addressText(entry)), make('span', { class: 'quiet' }, type)),
      make('div', {}, leaseText(entry)),
      make('div', {}, problem !== null && make('span', { class: 'bad' }, `It ${problem}`), text !== null && shownText(path, text)),
      this.model.about?.writes === true && this.#tools(path, entry),
    );
  }

  #tools(path: string, entry: WireService): HTMLElement {
    const name = `${entry.service} ${entry.id}`;
    const tool = (act: Act, label: string) =>
      button({ 'aria-label': `${label} ${name}`, 'data-key': `${act} ${path}` }, () => this.onAct(act, entry), label);
    const isEnabled = entry.instance?.state !== 'disabled';
    const toggle = entry.instance && (isEnabled ? tool('disable', 'Disable') : tool('enable', 'Enable'));
    return make('div', { class: 'instance-tools' }, toggle, tool('remove', 'Remove'));
  }
}

/** Others' text: at once where it is short, else behind its beginning. */
function shownText(path: string, text: string): HTMLElement {
  if (text.length <= SHORT) return make('code', {}, text);
  const summary = make('summary', { 'data-key': `text ${path}` }, make('code', {}, `${text.slice(0, SHORT)}…`));
  return make('details', {}, summary, make('code', {}, text));
}

/** Gives an element these children in this order, and moves none that stands right: one that is moved loses the keyboard focus. */
function arrange(parent: HTMLElement, children: readonly HTMLElement[]): void {
  const wanted = new Set<Element>(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of children) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
