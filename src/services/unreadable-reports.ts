/** Told of an instance that is left out, with the rest of the sentence "<path> …". Must not throw and must not block. */
export type OnUnreadable = (path: string, problem: string) => void;

/** How many znodes are remembered at the most: whoever fills a service with others' znodes must not fill the memory, nor the log. */
const MAX_REPORTS = 1_000;

/**
 * Reports each znode that cannot be understood once, again when its problem is another or when it was readable in between. Several who look at
 * the same znodes may share one.
 */
export class UnreadableReports {
  readonly #problems = new Map<string, string>();

  constructor(private readonly onUnreadable: OnUnreadable | undefined) {}

  /** Those that are shared, or of one's own. */
  static of(told: OnUnreadable | UnreadableReports | undefined): UnreadableReports {
    return told instanceof UnreadableReports ? told : new UnreadableReports(told);
  }

  /** It cannot be understood, for this reason. */
  report(path: string, problem: string): void {
    const known = this.#problems.get(path);
    if (known === problem || (known === undefined && this.#problems.size >= MAX_REPORTS)) return;
    this.#problems.set(path, problem);
    this.onUnreadable?.(path, problem);
  }

  /** It can be understood, or has gone. */
  clear(path: string): void {
    this.#problems.delete(path);
  }
}
