import { Feed, type FeedState, refusalOf, type StreamEvent } from '../feed.js';
import { browserClock, browserRandom } from '../page-clock.js';
import { Announcer } from './announcer.js';
import { ConnectionBadge, type Known, TokenDialog } from './connection.js';
import { listenToKeys, offerThemes } from './controls.js';
import { find, make } from './dom.js';

/** What a page is besides its frame. */
export interface FramedPage {
  /** The path of its stream, relative to the page: the app may be mounted below some path. */
  readonly stream: string;
  /** What the stream tells of, for people: `the leases`. */
  readonly what: string;
  readonly model: Known & {
    connection(isLive: boolean): void;
    apply(event: StreamEvent): void;
  };
  /** Called ten times a second at most. */
  readonly draw: () => void;
  /** Shows only what fits the filter. */
  readonly onFilter: (text: string) => void;
  /** Gives the keyboard focus to what the filter has found. */
  readonly focusFound: () => void;
  /** What Escape does. */
  readonly onEscape: () => void;
}

/** From one drawing to the next at least, in milliseconds. */
const DRAW_MS = 100;

/** What each page has: its connection and its token, the filter, keys and colours, and what is said aloud. */
export class Frame {
  readonly announcer = new Announcer(browserClock);
  readonly #filter = find('filter', HTMLInputElement);
  readonly #badge: ConnectionBadge;
  readonly #dialog = new TokenDialog();
  readonly #feed: Feed;
  #token: string | undefined;
  #wasLive = false;

  constructor(private readonly page: FramedPage) {
    const { model, what, stream } = page;
    this.#badge = new ConnectionBadge(model, browserClock, what);
    this.#feed = new Feed({
      open: (token, signal) =>
        fetch(stream, {
          signal,
          cache: 'no-store',
          headers: { accept: 'text/event-stream', ...authorization(token) },
        }),
      clock: browserClock,
      random: browserRandom,
      onState: (state) => this.#connection(state),
      onEvent: (event) => model.apply(event),
    });
  }

  /** Goes on while the page is open. */
  start(): void {
    const { onFilter, focusFound, onEscape } = this.page;
    find('connection').addEventListener('click', () => void this.#askForToken(false));
    find('retry').addEventListener('click', () => this.#feed.retry());
    this.#filter.addEventListener('input', () => onFilter(this.#filter.value));
    offerThemes();
    listenToKeys({ filter: this.#filter, grid: focusFound, clear: onEscape });
    void this.#feed.run();
    void this.#keepDrawing();
  }

  get filter(): string {
    return this.#filter.value;
  }

  /** Filters by a text that was not typed. */
  set filter(text: string) {
    this.#filter.value = text;
    this.page.onFilter(text);
  }

  /** Leads to another page, once. */
  link(href: string, text: string): void {
    const pages = find('pages');
    if (pages.childElementCount === 0) pages.append(make('a', { href }, text));
  }

  /**
   * Asks the server for a change, with the token. Resolves to what is to be said of it, nothing where it is
   * done, or where the reader gives no token.
   */
  async change(path: string, request: RequestInit): Promise<string> {
    try {
      const response = await this.#ask(path, request);
      return response === undefined || response.ok ? '' : `Not done: ${await refusalOf(response)}`;
    } catch {
      return 'It is not known whether that was done: the server has not answered.';
    }
  }

  async #ask(path: string, request: RequestInit): Promise<Response | undefined> {
    for (let token = this.#token, refused = false; ; refused = true) {
      if (refused || token === undefined) token = await this.#askForToken(refused);
      if (token === undefined) return undefined;
      const response = await fetch(path, {
        ...request,
        headers: { 'content-type': 'application/json', ...authorization(token) },
      });
      if (response.status !== 401) return response;
    }
  }

  #connection(state: FeedState): void {
    this.page.model.connection(state.kind === 'live');
    this.#badge.show(state);
    if (state.kind === 'token') void this.#askForToken(state.refused);
    if (state.kind === 'waiting' && this.#wasLive)
      this.announcer.say('The connection to the console is lost');
    if (state.kind === 'waiting' || state.kind === 'live') this.#wasLive = state.kind === 'live';
  }

  async #askForToken(refused: boolean): Promise<string | undefined> {
    const token = await this.#dialog.ask(refused);
    if (token === undefined) return undefined;
    this.#token = token;
    this.#feed.retry(token);
    return token;
  }

  /** Not at all while the page is hidden: browsers draw no frames of hidden ones. */
  async #keepDrawing(): Promise<never> {
    for (;;) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      try {
        this.#badge.tick();
        this.page.draw();
      } catch (error) {
        reportError(error);
      }
      await browserClock.sleep(DRAW_MS);
    }
  }
}

function authorization(token: string | undefined): Readonly<Record<string, string>> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}
