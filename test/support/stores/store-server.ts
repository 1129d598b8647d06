/** How a process reaches a store. */
export interface StoreAccess {
  readonly url: string;
  /** For `--endpoint`. */
  readonly endpoint?: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The kinds of stores that are servers. */
export const SERVER_KINDS = ['s3', 'etcd', 'azblob', 'gs', 'dynamodb'] as const;
export type ServerKind = (typeof SERVER_KINDS)[number];

/** A real server of lease stores. */
export interface StoreServer {
  readonly kind: ServerKind;
  /** Where it came from, for people. */
  readonly description: string;
  /** The URL at which it listens: a proxy may stand before it. */
  readonly endpoint: string;
  /**
   * Makes a store without objects. Resolves to how to reach it, at the endpoint of the server or at a
   * proxy's.
   */
  newPlace(): Promise<(endpoint?: string) => StoreAccess>;
  /**
   * Whether the line and the headers of an HTTP request are those of a write to the object of that key. Where
   * they do not show the key, of any write.
   */
  isWrite(head: string, key: string): boolean;
  /** Idempotent. */
  stop(): Promise<void>;
}
