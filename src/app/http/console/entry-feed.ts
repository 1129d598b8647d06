import type { Clock } from '../../../core/base/clock.js';
import type { EntriesHello, EntriesStatus, EntryChanges } from '../../../node/wire/entries-wire.js';
import { eventStream, message, RETRY } from '../event-stream.js';

/** Entries in one message at most: the memory that a slow client takes, at some 3 KB each. */
const ENTRIES = 200;
/** A tree that is being read has news all the time. */
const PAUSE_MS = 100;

/** What is followed: `follow` calls its listener whenever something may have changed. */
interface EntryTree<Entry> {
  /** By path. An entry that has not changed is the same object. */
  readonly entries: ReadonlyMap<string, Entry>;
  readonly status: EntriesStatus;
  follow(listener: () => void): () => void;
}

interface EntryFeedOptions<Entry> {
  readonly clock: Clock;
  readonly tree: EntryTree<Entry>;
  readonly hello: EntriesHello;
}

/**
 * The entries of a tree as server-sent events, for one client: `hello`, then `entries` and `status` whenever
 * they are different.
 */
export function entryEvents<Entry>(
  { clock, tree, hello }: EntryFeedOptions<Entry>,
  gone: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const sent = new Map<string, Entry>();
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
function* changesSince<Entry>(
  sent: Map<string, Entry>,
  entries: ReadonlyMap<string, Entry>,
): Generator<EntryChanges<Entry>> {
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
