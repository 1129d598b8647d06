/**
 * Answers all requests for the same thing at one time by one query: many requests for something large cost
 * ZooKeeper one reading. An answer is never older than its request: a request while a query is under way
 * waits, with the others that do, for the next one.
 */
export class SharedQueries<T> {
  readonly #running = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<T>>();

  /**
   * Resolves, or rejects, as the query does that answers it: this one, or that of another request for the
   * same key.
   */
  ask(key: string, query: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running === undefined) return this.#start(key, query);
    const startNext = () => {
      this.#next.delete(key);
      return this.#start(key, query);
    };
    const next = this.#next.get(key) ?? running.then(startNext);
    this.#next.set(key, next);
    return next;
  }

  /** How many keys are being asked for. */
  get size(): number {
    return this.#running.size;
  }

  #start(key: string, query: () => Promise<T>): Promise<T> {
    const answer = query();
    // While requests wait for the next one it stays, for requests that come before that has begun.
    const ended = () => void (this.#next.has(key) || this.#running.delete(key));
    this.#running.set(key, answer.then(ended, ended));
    return answer;
  }
}
