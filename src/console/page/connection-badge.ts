import type { ClusterModel } from '../cluster-model.js';
import type { FeedState } from '../feed.js';
import { formatDuration } from '../format.js';
import type { PageClock } from '../page-clock.js';
import { setData, setText } from './dom.js';

/** How the connection is doing, and how old what one sees is when it does not do well. */
export class ConnectionBadge {
  #state: FeedState = { kind: 'connecting' };
  /** Why the last connection ended. */
  #reason = '';

  constructor(
    private readonly parts: {
      readonly badge: HTMLElement;
      readonly banner: HTMLElement;
      readonly bannerText: HTMLElement;
      readonly retry: HTMLElement;
    },
    private readonly model: ClusterModel,
    private readonly clock: PageClock,
  ) {}

  show(state: FeedState): void {
    this.#state = state;
    if (state.kind === 'waiting') this.#reason = state.reason;
    if (state.kind === 'live') this.#reason = '';
    this.tick();
  }

  /** Lets the times run. */
  tick(): void {
    const { badge, banner, bannerText, retry } = this.parts;
    const state = this.#state;
    setData(badge, 'connection', state.kind);
    setText(badge, this.#word());
    const { staleSince, isKnown, store } = this.model;
    const isStale = isKnown && staleSince !== undefined;
    setData(document.documentElement, 'stale', isStale ? '' : undefined);
    const isFailing = state.kind === 'live' && store.state === 'failing';
    const age = isStale ? `What you see is ${formatDuration(this.clock.monotonic() - staleSince)} old` : 'Nothing has been read yet';
    const why = isFailing ? `the leases cannot be read: ${store.problem ?? 'no reason is known'}` : this.#reason;
    const isBad = isFailing || (this.#reason !== '' && state.kind !== 'live') || state.kind === 'token';
    if (banner.hidden === isBad) banner.hidden = !isBad;
    if (retry.hidden === (state.kind === 'waiting')) retry.hidden = state.kind !== 'waiting';
    if (isBad) setText(bannerText, `${age}: ${state.kind === 'token' ? 'the server asks for a token' : why}.`);
  }

  #word(): string {
    const state = this.#state;
    switch (state.kind) {
      case 'live':
        return this.model.store.state === 'failing' ? 'not live' : 'live';
      case 'connecting':
        return 'connecting …';
      case 'token':
        return 'locked';
      case 'waiting':
        return `reconnecting in ${Math.max(0, Math.ceil((state.retryAt - this.clock.monotonic()) / 1_000))} s`;
    }
  }
}
