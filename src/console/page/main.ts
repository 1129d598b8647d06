import { Feed } from '../feed.js';
import { browserClock, browserRandom } from './browser-clock.js';
import { Console } from './console.js';

const console = new Console(browserClock);
const feed: Feed = new Feed({
  // Relative to the page: the app may be mounted below some path.
  open: (token, signal) =>
    fetch('api/events', {
      signal,
      cache: 'no-store',
      credentials: 'same-origin',
      headers: { accept: 'text/event-stream', ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    }),
  clock: browserClock,
  random: browserRandom,
  onState: (state) => console.connection(state),
  onEvent: (event) => console.receive(event),
});
console.start((token) => feed.retry(token));
void feed.run(new AbortController().signal);
