/** One that holds a lock, or waits for it. */
export interface Contender {
  /** What it says of itself; with Curator its host's address by default. */
  readonly data: string;
  /** 16 hex digits; null for a znode that no session keeps. */
  readonly sessionId: string | null;
  /** The czxid of its znode, which is a holder's fencing token, in decimal. */
  readonly token: string;
  /**
   * Since when it has been in the queue, in milliseconds since the Unix epoch, by the clock of ZooKeeper's
   * leader.
   */
  readonly since: number;
}

/** A lock that a task holds, or waits for. JSON can represent all of it. */
export interface Standing {
  readonly path: string;
  readonly kind: 'lock' | 'election' | 'read-write lock' | 'semaphore';
  /** None while it changes hands. */
  readonly holders: readonly Contender[];
  /** In the order of their turns. */
  readonly waiting: readonly Contender[];
}
