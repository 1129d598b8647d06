/** The time that a generator puts into its ids, and its bounds. Uniqueness rests on the bounds alone: any other generator with the node's number stays outside them. */
export interface IdTime {
  /** Now, in milliseconds since the Unix epoch. It may step either way: ids never go back. */
  now(): number;

  /** Ids are stamped later than this, in milliseconds since the Unix epoch. */
  readonly after: number;

  /** Ids are stamped earlier than this, in milliseconds since the Unix epoch. It may grow, and never shrinks. */
  before(): number;

  /** Takes note, before it happens, that ids may be stamped up to and including this millisecond. */
  stamp?(untilMs: number): void;

  /** @throws when no ids may be made any more */
  check(): void;

  /** Aborts when no ids may be made any more, where somebody hears of it. */
  readonly signal?: AbortSignal | undefined;
}
