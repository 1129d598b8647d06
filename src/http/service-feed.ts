import type { Clock } from '../base/clock.js';
import type { ServiceChanges, ServiceEntry, ServicesHello } from '../console/services-wire.js';
import type { ServiceTree } from '../monitor/discovery/service-tree.js';
import { eventStream, message, RETRY } from './event-stream.js';

/** Entries in one message at most: the memory that a slow client takes, at some 3 KB each. */
const ENTRIES = 200;
/** A tree that is being read has news all the time. */
const PAUSE_MS = 100;

/**
 * The services as server-sent events, for one client: `hello`, then `entries` and `status` whenever they are
 * different.
 */
export function serviceEvents(
  {
    clock,
    tree,
    hello,
  }: { readonly clock: Clock; readonly tree: ServiceTree; readonly hello: ServicesHello },
  gone: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const sent = new Map<string, ServiceEntry>();
  let sentStatus: string | undefined;
  function* news() {
    if (sentStatus === undefined) yield* message('hello', hello, RETRY);
    // As of before the entries, and sent after them: that all has been read is reported once all is sent.
    const { status } = tree;
    for (const changes of changesSince(sent, tree.entries)) yield* message('entries', changes);
    if (JSON.stringify(status) !== sentStatus) yield* message('status', status);
    sentStatus = JSON.stringify(status);
  }
  return eventStream({ clock, follow: (wake) => tree.follow(wake), news, pauseMs: PAUSE_MS }, gone);
}

/** Notes in `sent` what is yielded. */
export function* changesSince(
  sent: Map<string, ServiceEntry>,
  entries: ReadonlyMap<string, ServiceEntry>,
): Generator<ServiceChanges> {
  const gone = [...sent.keys()].filter((path) => !entries.has(path));
  for (const path of gone) sent.delete(path);
  if (gone.length > 0) yield { set: [], gone };
  const news = [...entries].filter(([path, entry]) => sent.get(path) !== entry);
  for (let from = 0; from < news.length; from += ENTRIES) {
    const set = news.slice(from, from + ENTRIES);
    for (const [path, entry] of set) sent.set(path, entry);
    yield { set, gone: [] };
  }
}
