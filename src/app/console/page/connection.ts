import { render } from 'preact';
import type { FeedState } from '../feed.js';
import { formatDuration } from '../model/format.js';
import { browserClock } from '../page-clock.js';
import { find } from './find.js';

/** What a page knows, and how good that is. */
export interface Freshness {
  readonly isKnown: boolean;
  /** Since when it has not been renewed, on the page's monotonic clock; undefined while it is fresh. */
  readonly staleSince: number | undefined;
  /** What the server says of where it reads. */
  readonly store: { readonly state: string; readonly problem: string | null };
}

/**
 * Shows the state of the connection, and the age of what one sees when it is not well.
 *
 * @param what the subject of the page, for people: `the leases`
 * @param reason why the last connection ended; empty while there is one
 */
export function showConnection(
  { isKnown, staleSince, store }: Freshness,
  what: string,
  state: FeedState,
  reason: string,
): void {
  const badge = find('connection');
  const isFailing = state.kind === 'live' && store.state === 'failing';
  badge.dataset.connection = state.kind;
  render(isFailing ? 'not live' : badgeText(state), badge);
  const isStale = isKnown && staleSince !== undefined;
  document.documentElement.toggleAttribute('data-stale', isStale);
  const isBad = isFailing || (reason !== '' && state.kind !== 'live') || state.kind === 'token';
  find('banner').hidden = !isBad;
  find('retry').hidden = state.kind !== 'waiting';
  if (!isBad) return;
  const age = isStale
    ? `What you see is ${formatDuration(browserClock.monotonic() - staleSince)} old`
    : 'Nothing has been read yet';
  const why = isFailing ? `${what} cannot be read: ${store.problem ?? 'no reason is known'}` : reason;
  render(`${age}: ${state.kind === 'token' ? 'the server asks for a token' : why}.`, find('banner-text'));
}

function badgeText(state: FeedState): string {
  if (state.kind === 'waiting')
    return `reconnecting in ${Math.max(0, Math.ceil((state.retryAt - browserClock.monotonic()) / 1_000))} s`;
  return { live: 'live', connecting: 'connecting …', token: 'locked' }[state.kind];
}
