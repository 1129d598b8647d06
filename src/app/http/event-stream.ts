import { WakeUp } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';

/** What one client is sent. */
interface EventSource {
  readonly clock: Clock;
  /** Calls `wake` whenever there may be news, until the returned function is called. */
  readonly follow: (wake: () => void) => () => void;
  /** What the stream waits for before it sends anything. */
  readonly begin?: () => Promise<unknown>;
  /**
   * What the client has not been sent yet. Called whenever there may be news, and once a second: no event
   * reports that a deadline has passed.
   */
  readonly news: () => Iterable<Uint8Array>;
  /**
   * The minimum time between two calls of `news`, in milliseconds: quick changes are sent together.
   * @default 0
   */
  readonly pauseMs?: number;
}

/** How often `news` is called without a wake-up, in milliseconds. */
const TICK_MS = 1_000;
/**
 * Time without a message after which a client is sent a comment with the next tick, in milliseconds: at least
 * every ten seconds.
 */
const HEARTBEAT_MS = 9_000;
const HEARTBEAT = Buffer.from(':\n\n');
export const NULL = Buffer.from('null');

/**
 * How long a browser is to wait before it connects again, in milliseconds: the field with which a stream
 * begins.
 */
export const RETRY = 'retry: 1000\n';

/**
 * Server-sent events for one client, which is sent what there is when it is ready for more: a slow one misses
 * what has changed again, and nothing is kept for it. The source is followed until the generator ends, as it
 * does with the reason of `gone` as its error.
 */
export async function* eventStream(
  { clock, follow, begin, news, pauseMs = 0 }: EventSource,
  gone: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const wakeUp = new WakeUp();
  const unfollow = follow(wakeUp.wake);
  try {
    await begin?.();
    for (let sentAt = clock.monotonic(); ; ) {
      for (const chunk of news()) {
        yield chunk;
        sentAt = clock.monotonic();
      }
      if (clock.monotonic() - sentAt >= HEARTBEAT_MS) {
        yield HEARTBEAT;
        sentAt = clock.monotonic();
      }
      if (pauseMs > 0) await clock.sleep(pauseMs, gone);
      await wakeUp.wait({ clock, timeoutMs: TICK_MS }, gone);
    }
  } finally {
    unfollow();
  }
}

/** One event, in pieces. */
export function* message(event: string, data: object | null, field = ''): Generator<Uint8Array> {
  yield Buffer.from(`${field}event: ${event}\ndata: `);
  yield data ? jsonOf(data) : NULL;
  yield Buffer.from('\n\n');
}

/**
 * JSON as bytes, which all clients share: that of a large cluster takes hundreds of kilobytes. What it is
 * made from must not change.
 */
export const jsonOf = onceEach((data: object): Uint8Array => Buffer.from(JSON.stringify(data)));

/** Makes the value of each object once. */
export function onceEach<K extends object, V>(make: (from: K) => V): (from: K) => V {
  const made = new WeakMap<K, V>();
  return (from) => {
    const value = made.get(from) ?? make(from);
    made.set(from, value);
    return value;
  };
}
