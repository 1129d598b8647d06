import type { EntriesHello, EntriesStatus, EntryChanges } from '../../../node/wire/entries-wire.js';
import type { StreamEvent } from '../feed.js';
import type { PageClock } from '../page-clock.js';

/** What a page knows of a tree in ZooKeeper, from the events of its stream. */
export class EntriesModel<Entry> {
  about: EntriesHello | undefined;
  store: EntriesStatus = { state: 'ok', problem: null, isWhole: false, isPartial: false };
  /**
   * Since when what there is has not been renewed, on the page's monotonic clock; undefined while it is
   * fresh.
   */
  staleSince: number | undefined;
  /** By their paths. What is no different stays the same object. */
  readonly entries = new Map<string, Entry>();
  /** The paths of the last connection that this one has not confirmed. */
  #unconfirmed = new Set<string>();
  #isChanged = true;
  #spoken: string[] = [];

  /** @param changeText what has happened to an entry, for screen readers; undefined where it is not announced */
  constructor(
    private readonly clock: PageClock,
    private readonly changeText: (before: Entry | undefined, after: Entry | undefined) => string | undefined,
  ) {}

  get isKnown(): boolean {
    return this.about !== undefined;
  }

  /** Called when the connection comes and goes. What it has not confirmed is as old as before. */
  connection(isLive: boolean): void {
    const isFresh = isLive && this.store.state === 'ok' && this.#unconfirmed.size === 0;
    this.staleSince = isFresh ? undefined : (this.staleSince ?? this.clock.monotonic());
  }

  /** Takes in an event of the stream. @throws {SyntaxError} when its data is no JSON */
  apply({ event, data }: StreamEvent): void {
    const json: unknown = JSON.parse(data);
    if (event === 'hello') {
      this.about = json as EntriesHello;
      this.#unconfirmed = new Set(this.entries.keys());
    } else if (event === 'status') {
      this.store = json as EntriesStatus;
      this.#isChanged = true;
      if (this.store.isWhole) for (const path of this.#unconfirmed) this.#put(path, undefined);
    } else if (event === 'entries') {
      const { set, gone } = json as EntryChanges<Entry>;
      for (const [path, entry] of set) this.#put(path, entry);
      for (const path of gone) this.#put(path, undefined);
    }
    this.connection(true);
  }

  /** Whether anything is different since the last call. */
  takeChange(): boolean {
    const isChanged = this.#isChanged;
    this.#isChanged = false;
    return isChanged;
  }

  /**
   * What has happened since the last call, for screen readers: nothing of what was there when the page began.
   */
  takeSpoken(): readonly string[] {
    return this.#spoken.splice(0);
  }

  #put(path: string, entry: Entry | undefined) {
    const before = this.entries.get(path);
    this.#unconfirmed.delete(path);
    if (JSON.stringify(entry) === JSON.stringify(before)) return;
    this.#isChanged = true;
    if (entry === undefined) this.entries.delete(path);
    else this.entries.set(path, entry);
    const text = this.store.isWhole ? this.changeText(before, entry) : undefined;
    if (text !== undefined) this.#spoken.push(text);
  }
}
