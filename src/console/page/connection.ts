import type { FeedState } from '../feed.js';
import { formatDuration } from '../format.js';
import type { PageClock } from '../page-clock.js';
import { find, setData, setText } from './dom.js';

/** What a page knows, and how good that is. */
export interface Known {
  readonly isKnown: boolean;
  /** Since when it has not been renewed, on the page's monotonic clock; undefined while it is fresh. */
  readonly staleSince: number | undefined;
  /** What the server says of where it reads. */
  readonly store: { readonly state: string; readonly problem: string | null };
}

/** How the connection is doing, and how old what one sees is when it does not do well. */
export class ConnectionBadge {
  readonly #badge = find('connection');
  readonly #banner = find('banner');
  readonly #text = find('banner-text');
  readonly #retry = find('retry');
  #state: FeedState = { kind: 'connecting' };
  /** Why the last connection ended. */
  #reason = '';

  constructor(
    private readonly model: Known,
    private readonly clock: PageClock,
    private readonly what: string,
  ) {}

  show(state: FeedState): void {
    this.#state = state;
    if (state.kind === 'waiting') this.#reason = state.reason;
    if (state.kind === 'live') this.#reason = '';
    this.tick();
  }

  /** Lets the times run. */
  tick(): void {
    const state = this.#state;
    const { staleSince, isKnown, store } = this.model;
    const isFailing = state.kind === 'live' && store.state === 'failing';
    setData(this.#badge, 'connection', state.kind);
    setText(this.#badge, isFailing ? 'not live' : this.#word(state));
    const isStale = isKnown && staleSince !== undefined;
    setData(document.documentElement, 'stale', isStale ? '' : undefined);
    const isBad = isFailing || (this.#reason !== '' && state.kind !== 'live') || state.kind === 'token';
    this.#banner.hidden = !isBad;
    this.#retry.hidden = state.kind !== 'waiting';
    if (!isBad) return;
    const age = isStale
      ? `What you see is ${formatDuration(this.clock.monotonic() - staleSince)} old`
      : 'Nothing has been read yet';
    const why = isFailing
      ? `${this.what} cannot be read: ${store.problem ?? 'no reason is known'}`
      : this.#reason;
    setText(this.#text, `${age}: ${state.kind === 'token' ? 'the server asks for a token' : why}.`);
  }

  #word(state: FeedState): string {
    if (state.kind === 'waiting')
      return `reconnecting in ${Math.max(0, Math.ceil((state.retryAt - this.clock.monotonic()) / 1_000))} s`;
    return { live: 'live', connecting: 'connecting …', token: 'locked' }[state.kind];
  }
}

/** Asks for the bearer token that the server wants. It is kept nowhere but in the page's memory. */
export class TokenDialog {
  readonly #dialog = find('token', HTMLDialogElement);
  readonly #input = find('token-input', HTMLInputElement);
  readonly #problem = find('token-problem');
  #given: string | undefined;

  constructor() {
    find('token-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const token = this.#input.value.trim();
      if (!/^[\x21-\x7e]+$/.test(token))
        return this.#complain('A token has visible ASCII characters and no spaces.');
      this.#input.value = '';
      this.#given = token;
      this.#dialog.close();
    });
  }

  /**
   * Resolves with what the reader gives; undefined when the reader closes the dialog without.
   *
   * @param refused there was a token, and it was not the right one
   */
  async ask(refused: boolean): Promise<string | undefined> {
    this.#complain(refused ? 'That is not the right token.' : '');
    this.#given = undefined;
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#input.focus();
    await new Promise((resolve) => this.#dialog.addEventListener('close', resolve, { once: true }));
    return this.#given;
  }

  #complain(text: string): void {
    this.#problem.textContent = text;
    this.#input.setAttribute('aria-invalid', String(text !== ''));
  }
}
