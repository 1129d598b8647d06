import { h, render } from 'preact';
import { authorization, Feed, type FeedState, refusalOf, type StreamEvent } from '../feed.js';
import { browserClock, browserRandom } from '../page-clock.js';
import { type Freshness, showConnection } from './connection.js';
import { listenToKeys, offerThemes } from './controls.js';
import { askForToken } from './dialogs.js';
import { find } from './find.js';

/** A page without its frame. */
export interface FramedPage {
  /** The path of its stream, relative to the page: the app may be mounted below some path. */
  readonly stream: string;
  /** What the stream is about, for people: `the leases`. */
  readonly what: string;
  readonly model: Freshness & {
    connection(isLive: boolean): void;
    apply(event: StreamEvent): void;
  };
  /** Called ten times a second, and for a new filter. */
  readonly draw: () => void;
  /** Gives the keyboard focus to what the filter has found. */
  readonly focusFound: () => void;
  /** What Escape does. */
  readonly onEscape: () => void;
}

/** Minimum time from one drawing to the next, in milliseconds. */
const DRAW_MS = 100;

/** What each page has: its connection and its token, the filter, keys and colours, and announcements. */
export class Frame {
  readonly announcer = new Announcer();
  /** What the page is filtered by. */
  filter = '';
  readonly #feed: Feed;
  #token: string | undefined;
  #wasLive = false;
  #state: FeedState = { kind: 'connecting' };
  /** Why the last connection ended; empty while there is one. */
  #reason = '';

  constructor(private readonly page: FramedPage) {
    const { model, stream } = page;
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

  /** Continues while the page is open. */
  start(): void {
    find('connection').addEventListener('click', () => void this.#askForToken(false));
    find('retry').addEventListener('click', () => this.#feed.retry());
    offerThemes();
    listenToKeys(this.page.focusFound, this.page.onEscape);
    void this.#feed.run();
    void this.#keepDrawing();
  }

  /** Filters by another text, and draws the page at once. */
  readonly filterBy = (text: string): void => {
    this.filter = text;
    this.page.draw();
  };

  /** Leads to other pages. */
  links(pages: readonly (readonly [href: string, text: string])[]): void {
    render(
      pages.map(([href, text]) => h('a', { href }, text)),
      find('pages'),
    );
  }

  /**
   * Asks the server for a change, with the token. Resolves to a text about a failure, empty where it is
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

  /** Reads JSON, with the token. */
  async get<T>(path: string): Promise<T> {
    const response = await fetch(path, { headers: authorization(this.#token) });
    return (await response.json()) as T;
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
    this.#state = state;
    if (state.kind === 'token') void this.#askForToken(state.refused);
    if (state.kind === 'live') {
      this.#reason = '';
      this.#wasLive = true;
    } else if (state.kind === 'waiting') {
      this.#reason = state.reason;
      if (this.#wasLive) this.announcer.say('The connection to the console is lost');
      this.#wasLive = false;
    }
  }

  async #askForToken(refused: boolean): Promise<string | undefined> {
    const token = await askForToken(refused);
    if (token === undefined) return undefined;
    this.#token = token;
    this.#feed.retry(token);
    return token;
  }

  /** Not at all while the page is hidden: browsers draw no frames of hidden ones. */
  async #keepDrawing(): Promise<never> {
    for (;;) {
      try {
        showConnection(this.page.model, this.page.what, this.#state, this.#reason);
        this.page.draw();
      } catch (error) {
        reportError(error);
      }
      await browserClock.sleep(DRAW_MS);
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  }
}

/** Maximum number of texts at once; the others are counted. */
const MAX_TEXTS = 3;
/** From one announcement to the next, in milliseconds. */
const PAUSE_MS = 1_500;

/** Announces to screen readers what happens, with pauses. */
class Announcer {
  readonly #region = find('announcer');
  #waiting: string[] = [];
  #isTalking = false;

  say(text: string): void {
    this.#waiting.push(text);
    if (!this.#isTalking) void this.#talk();
  }

  async #talk(): Promise<void> {
    this.#isTalking = true;
    while (this.#waiting.length > 0) {
      const texts = this.#waiting.splice(0);
      const count = texts.length - MAX_TEXTS;
      const rest = count > 0 ? [`and ${count} more events`] : [];
      this.#region.textContent = [...texts.slice(0, MAX_TEXTS), ...rest].join('. ');
      await browserClock.sleep(PAUSE_MS);
    }
    this.#isTalking = false;
  }
}
