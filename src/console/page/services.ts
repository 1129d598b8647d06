import { authorization, Feed, type FeedState, refusalOf } from '../feed.js';
import { browserClock, browserRandom, type PageClock } from '../page-clock.js';
import { ServicesModel } from '../services-model.js';
import type { WireService } from '../services-wire.js';
import { ConnectionBadge, TokenDialog } from './connection.js';
import { listenToKeys, offerThemes } from './controls.js';
import { find, setText } from './dom.js';
import { Announcer } from './event-list.js';
import { keepDrawing } from './keep-drawing.js';
import { type Act, ServiceList } from './service-list.js';

/** Relative to the page: the app may be mounted below some path. */
const API = 'api/services';

const WARNING =
  'Whoever uses it finds it no more. A task of nodelease that is alive registers it again at once; another program may do so only in its next session.';

/** The page of services: takes in what the stream tells, draws it, and asks for changes. */
class ServicesPage {
  readonly #clock: PageClock = browserClock;
  readonly #model = new ServicesModel(this.#clock);
  readonly #list = new ServiceList(this.#model, (act, entry) => this.#confirm(act, entry));
  readonly #announcer = new Announcer(this.#clock);
  readonly #badge = new ConnectionBadge(this.#model, this.#clock, 'the services');
  readonly #dialog = new TokenDialog((token) => this.#onToken(token));
  readonly #filter = find('filter', HTMLInputElement);
  readonly #notice = find('notice');
  readonly #feed = new Feed({
    open: (token, signal) => fetch(API, { signal, cache: 'no-store', headers: { accept: 'text/event-stream', ...authorization(token) } }),
    clock: this.#clock,
    random: browserRandom,
    onState: (state) => this.#connection(state),
    onEvent: (event) => this.#model.apply(event),
  });
  #token: string | undefined;
  #wasWhole = false;
  /** What waits for a token. */
  #pending: (() => Promise<void>) | undefined;

  /** Goes on for as long as the page is open. */
  start(): void {
    find('pages').hidden = !location.pathname.endsWith('/services');
    find('retry').addEventListener('click', () => this.#feed.retry());
    this.#filter.addEventListener('input', () => this.#filterBy(this.#filter.value));
    // What was given up is not to be done when a token is given later.
    find('token').addEventListener('cancel', () => {
      this.#pending = undefined;
    });
    offerThemes();
    const first = () => find('services').querySelector<HTMLElement>('details:not([hidden]) summary')?.focus();
    listenToKeys({ filter: this.#filter, grid: first, clear: () => this.#filterBy('') });
    void this.#feed.run();
    void keepDrawing(this.#clock, () => this.#draw());
  }

  #draw(): void {
    this.#badge.tick();
    const { services, spoken } = this.#model.takeChanges();
    for (const text of spoken) this.#announcer.say(text);
    if (services.size > 0) this.#list.draw(services);
    const { about, store: status, count } = this.#model;
    if (about === undefined) return;
    // How many there are decides what is open at first.
    if (status.isWhole && !this.#wasWhole) this.#filterBy(this.#filter.value);
    this.#wasWhole ||= status.isWhole;
    const more = status.isPartial ? ' There are more: only 10,000 are followed.' : '';
    const sum = `${this.#model.services.size.toLocaleString('en')} services, ${count.toLocaleString('en')} instances`;
    setText(find('settings'), `${about.zookeeper} ${about.path} · ${status.isWhole ? sum : 'reading …'}${more}`);
    setText(find('access'), about.writes ? 'Changes need the token' : 'Read-only: started without --allow-writes');
    const isEmpty = status.isWhole && this.#model.services.size === 0;
    find('empty').hidden = !isEmpty;
    if (isEmpty) setText(find('empty'), `There are no services below ${about.path}.`);
  }

  #connection(state: FeedState): void {
    this.#model.connection(state.kind === 'live');
    this.#badge.show(state);
    if (state.kind === 'token') this.#dialog.ask(state.refused);
  }

  #filterBy(text: string): void {
    if (this.#filter.value !== text) this.#filter.value = text;
    this.#list.filter(text.toLowerCase().split(/\s+/).filter(Boolean));
  }

  #onToken(token: string): void {
    this.#token = token;
    this.#feed.retry(token);
    void this.#pending?.();
  }

  #confirm(act: Act, entry: WireService): void {
    if (act !== 'remove' || confirm(`Remove ${entry.service} ${entry.id}? ${WARNING}`)) void this.#change(act, entry);
  }

  async #change(act: Act, entry: WireService): Promise<void> {
    const place = `${API}/${encodeURIComponent(entry.service)}/${encodeURIComponent(entry.id ?? '')}`;
    this.#pending = undefined;
    setText(this.#notice, '');
    if (this.#token === undefined) return this.#askFor(() => this.#change(act, entry), false);
    const headers = { 'content-type': 'application/json', ...authorization(this.#token) };
    const request = act === 'remove' ? { method: 'DELETE' } : { method: 'PUT', body: JSON.stringify(act === 'enable') };
    try {
      const response = await fetch(act === 'remove' ? place : `${place}/enabled`, { ...request, headers });
      if (response.status === 401) return this.#askFor(() => this.#change(act, entry), true);
      if (!response.ok) setText(this.#notice, `Not done: ${await refusalOf(response)}`);
    } catch {
      setText(this.#notice, 'Nobody knows whether that was done: the server has not answered.');
    }
  }

  #askFor(pending: () => Promise<void>, refused: boolean): void {
    this.#pending = pending;
    this.#dialog.ask(refused);
  }
}

new ServicesPage().start();
