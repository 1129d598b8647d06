/**
 * Where the session with ZooKeeper stands. Session ids are 16 hex digits, lower case.
 *
 * `connecting` → `connected` → `suspended` → `connected` (the same session) or `expired` → `connecting` (a new one) → …, and `closed` from
 * anywhere. That a session has expired is only learned from a server: one that is `suspended` may be gone already.
 */
export type SessionState =
  /** There has been no session yet, or the last one has expired. */
  | {
      readonly status: 'connecting';
      /** What went wrong last, for people; undefined while nothing did. */
      readonly problem?: string | undefined;
    }
  | {
      readonly status: 'connected';
      readonly sessionId: string;
      /** What the server granted, in milliseconds. */
      readonly timeoutMs: number;
      /** Host and port of the server. */
      readonly server: string;
    }
  /** The connection is lost, the session may live on at the servers; the client looks for another one by itself. */
  | { readonly status: 'suspended'; readonly sessionId: string; readonly timeoutMs: number; readonly problem?: string | undefined }
  /** The servers have ended the session, and removed its ephemeral znodes. A new one follows by itself. */
  | { readonly status: 'expired'; readonly sessionId: string }
  | { readonly status: 'closed' };
