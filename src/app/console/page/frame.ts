import { h, render } from 'preact';
import { authorization, Feed, type FeedState, refusalOf, type StreamEvent } from '../feed.js';
import { counted, formatDuration } from '../model/format.js';
import { browserClock, browserRandom, followServerClock } from '../page-clock.js';
import { askForToken } from './dialogs.js';
import { find } from './ui.js';

/** What a page knows, and how good that is. */
interface Freshness {
  readonly isKnown: boolean;
  /** Since when it has not been renewed, on the page's monotonic clock; undefined while it is fresh. */
  readonly staleSince: number | undefined;
  /** What the server says of where it reads. */
  readonly store: { readonly state: string; readonly problem: string | null };
}

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
  #state: FeedState = { kind: 'connecting' };
  /** Why the last connection ended; empty while there is one. */
  #reason = '';

  constructor(private readonly page: FramedPage) {
    const { model, stream } = page;
    this.#feed = new Feed({
      open: async (token, signal) => {
        const headers = { accept: 'text/event-stream', ...authorization(token) };
        const response = await fetch(stream, { signal, cache: 'no-store', headers });
        followServerClock(response.headers);
        return response;
      },
      clock: browserClock,
      random: browserRandom,
      onState: (state) => this.#connection(state),
      onEvent: (event) => model.apply(event),
    });
  }

  /** Continues while the page is open. */
  start(): void {
    find('connection').addEventListener('click', () => void this.#askForToken(false));
    // Its fragment would replace what the address says, such as a context.
    find('skip').addEventListener('click', (event) => {
      event.preventDefault();
      find('content').focus();
    });
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
   * Asks the server for a change, with the token unless none is needed. Resolves to a text about a failure,
   * empty where it is done, or where the reader gives no token.
   */
  async change(path: string, request: RequestInit, needsToken = true): Promise<string> {
    try {
      for (let { token } = this.#feed, refused = false; ; refused = true) {
        if (refused || (needsToken && token === undefined)) token = await this.#askForToken(refused);
        if (needsToken && token === undefined) return '';
        const response = await fetch(path, {
          ...request,
          headers: { 'content-type': 'application/json', ...authorization(token) },
        });
        if (response.ok) return '';
        if (response.status !== 401) return `Not done: ${await refusalOf(response)}`;
      }
    } catch {
      return 'It is not known whether that was done: the server has not answered.';
    }
  }

  /** Reads JSON, with the token. */
  async get<T>(path: string): Promise<T> {
    const response = await fetch(path, { headers: authorization(this.#feed.token) });
    return (await response.json()) as T;
  }

  #connection(state: FeedState) {
    this.page.model.connection(state.kind === 'live');
    this.#state = state;
    if (state.kind === 'token') void this.#askForToken(state.refused);
    if (state.kind === 'live') this.#reason = '';
    else if (state.kind === 'waiting') this.#reason = state.reason;
  }

  async #askForToken(refused: boolean) {
    const token = await askForToken(refused);
    if (token === undefined) return undefined;
    this.#feed.retry(token);
    return token;
  }

  /** Shows the state of the connection, and the age of what one sees when it is not well. */
  #showConnection() {
    const { model, what } = this.page;
    const { isKnown, staleSince, store } = model;
    const state = this.#state;
    const badge = find('connection');
    const isFailing = state.kind === 'live' && store.state === 'failing';
    badge.dataset.connection = state.kind;
    render(isFailing ? 'not live' : badgeText(state), badge);
    const isStale = isKnown && staleSince !== undefined;
    document.documentElement.toggleAttribute('data-stale', isStale);
    const isBad = isFailing || (this.#reason !== '' && state.kind !== 'live') || state.kind === 'token';
    const banner = find('banner');
    const isNews = isBad && banner.hidden;
    banner.hidden = !isBad;
    find('retry').hidden = state.kind !== 'waiting';
    if (!isBad) return;
    const age = isStale
      ? `What you see is ${formatDuration(browserClock.monotonic() - staleSince)} old`
      : 'Nothing has been read yet';
    const why = isFailing ? `${what} cannot be read: ${store.problem ?? 'no reason is known'}` : this.#reason;
    const text = `${age}: ${state.kind === 'token' ? 'the server asks for a token' : why}.`;
    render(text, find('banner-text'));
    // Once: the age is another one in each drawing.
    if (isNews) this.announcer.say(text);
  }

  /** Not at all while the page is hidden: browsers draw no frames of hidden ones. */
  async #keepDrawing() {
    for (;;) {
      try {
        this.#showConnection();
        this.page.draw();
      } catch (error) {
        reportError(error);
      }
      await browserClock.sleep(DRAW_MS);
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  }
}

function badgeText(state: FeedState) {
  if (state.kind === 'waiting')
    return `reconnecting in ${Math.max(0, Math.ceil((state.retryAt - browserClock.monotonic()) / 1_000))} s`;
  return { live: 'live', connecting: 'connecting …', token: 'locked' }[state.kind];
}

/**
 * The keys that work everywhere on the page, and the help about them; the grid has more.
 *
 * @param focusFound gives the focus to what the filter has found
 * @param onEscape closes what is open, else clears the filter
 */
function listenToKeys(focusFound: () => void, onEscape: () => void): void {
  const help = find('help', HTMLDialogElement);
  find('help-open').addEventListener('click', () => help.showModal());
  find('help-close').addEventListener('click', () => help.close());
  document.addEventListener('keydown', (event) => {
    const { target, key } = event;
    const filter = find('filter', HTMLInputElement);
    if (event.altKey || event.ctrlKey || event.metaKey || document.querySelector('dialog[open]')) return;
    if (key === 'Escape') return onEscape();
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    // From the filter straight to what it has found.
    if (target === filter && (key === 'Enter' || key === 'ArrowDown')) focusFound();
    else if (!isTyping && key === '?') help.showModal();
    else if (!isTyping && key === '/') {
      filter.focus();
      filter.select();
    } else return;
    event.preventDefault();
  });
}

const THEME_KEY = 'nodelease-theme';
/** Each one is followed by the next one. `system` is what the system has. */
const THEMES = ['system', 'light', 'dark'];

/** The choice of colours, which the browser keeps. */
function offerThemes(): void {
  const button = find('theme');
  let at = Math.max(0, THEMES.indexOf(storedTheme()));
  const show = () => {
    const theme = THEMES[at] ?? '';
    document.documentElement.dataset.theme = theme;
    button.title = `Colours: ${theme === 'system' ? 'as the system' : theme}`;
    button.setAttribute('aria-label', button.title);
    return theme;
  };
  button.addEventListener('click', () => {
    at = (at + 1) % THEMES.length;
    const theme = show();
    try {
      localStorage.setItem(THEME_KEY, theme);
    } catch {
      // It cannot be kept here, and is forgotten with the page.
    }
  });
  show();
}

function storedTheme() {
  try {
    return localStorage.getItem(THEME_KEY) ?? '';
  } catch {
    return '';
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

  async #talk() {
    this.#isTalking = true;
    while (this.#waiting.length > 0) {
      const texts = this.#waiting.splice(0);
      const count = texts.length - MAX_TEXTS;
      const rest = count > 0 ? [`and ${counted(count, 'more event')}`] : [];
      this.#region.textContent = [...texts.slice(0, MAX_TEXTS), ...rest].join('. ');
      await browserClock.sleep(PAUSE_MS);
    }
    this.#isTalking = false;
  }
}
