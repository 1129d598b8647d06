import { Listeners } from '../../core/base/listeners.js';
import { ChildrenView, type ChildrenViewOptions } from './children-view.js';

/**
 * A {@link ChildrenView} for readers and listeners. A subclass makes of it what they read, and starts it. The
 * last known state can still be read when it is closed.
 */
export abstract class FollowedZnodes<T, News> {
  /** @internal */
  protected readonly view: ChildrenView<T>;
  readonly #listeners = new Listeners<News>();

  /** @internal */
  constructor(options: ChildrenViewOptions<T>) {
    this.view = new ChildrenView(options);
  }

  /**
   * Resolves once everything has been read. Znodes that the servers refuse delay it by 5 seconds. Never
   * rejects, and never resolves when closed before.
   */
  get ready(): Promise<void> {
    return this.view.ready;
  }

  /**
   * Undefined while everything has been read since the last gap, so that every change is seen; otherwise the
   * beginning of the gap, in milliseconds on the monotonic clock. Meanwhile the state is the last known one.
   */
  get stale(): { readonly since: number } | undefined {
    return this.view.stale;
  }

  /**
   * Calls `listener` just before {@link ready} resolves, with whatever there is, and after changes from then
   * on, until the returned function is called. Changes in one packet of the servers are one call. Listeners
   * must not throw.
   */
  onChange(listener: (news: News) => void): () => void {
    return this.view.isClosed ? () => undefined : this.#listeners.add(listener);
  }

  /** Ends all watches. Idempotent. */
  close(): void {
    this.view.close();
    this.#listeners.clear();
  }

  /** @internal */
  protected notify(news: News): void {
    this.#listeners.notify(news);
  }
}
