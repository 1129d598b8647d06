import type { Clock } from '../base/clock.js';
import type { ServiceChanges, ServiceEntry, ServicesHello } from '../console/services-wire.js';
import type { ServiceTree } from '../monitor/service-tree.js';
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
  const told = new Map<string, ServiceEntry>();
  let toldStatus: string | undefined;
  function* news() {
    if (toldStatus === undefined) yield* message('hello', hello, RETRY);
    // As of before the entries, and told behind them: that all has been read is told when all has been sent.
    const { status } = tree;
    for (const changes of changesSince(told, tree.entries)) yield* message('entries', changes);
    if (JSON.stringify(status) !== toldStatus) yield* message('status', status);
    toldStatus = JSON.stringify(status);
  }
  return eventStream({ clock, follow: (wake) => tree.follow(wake), news, pauseMs: PAUSE_MS }, gone);
}

/** Notes in `told` what is yielded. */
export function* changesSince(
  told: Map<string, ServiceEntry>,
  entries: ReadonlyMap<string, ServiceEntry>,
): Generator<ServiceChanges> {
  const gone = [...told.keys()].filter((path) => !entries.has(path));
  for (const path of gone) told.delete(path);
  if (gone.length > 0) yield { set: [], gone };
  const news = [...entries].filter(([path, entry]) => told.get(path) !== entry);
  for (let from = 0; from < news.length; from += ENTRIES) {
    const set = news.slice(from, from + ENTRIES);
    for (const [path, entry] of set) told.set(path, entry);
    yield { set, gone: [] };
  }
}
