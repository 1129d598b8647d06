/**
 * Where the session with ZooKeeper stands. Session ids are 16 hex digits, lower case.
 *
 * `connecting` → `connected` → `suspended` → `connected` (the same session) or `expired` → `connecting` (a
 * new one) → …, and `closed` from anywhere. That a session has expired is only learned from a server: one
 * that is `suspended` may be gone already. `timeoutMs` is what the server granted, `server` its host and
 * port, and `problem` what went wrong last, for people.
 */
export type SessionState =
  /** There has been no session yet, or the last one has expired. */
  | { readonly status: 'connecting'; readonly problem?: string | undefined }
  | {
      readonly status: 'connected';
      readonly sessionId: string;
      readonly timeoutMs: number;
      readonly server: string;
    }
  /**
   * The connection is lost, the session may live on at the servers; the client looks for another one by
   * itself.
   */
  | {
      readonly status: 'suspended';
      readonly sessionId: string;
      readonly timeoutMs: number;
      readonly problem?: string | undefined;
    }
  /** The servers have ended the session, and removed its ephemeral znodes. A new one follows by itself. */
  | { readonly status: 'expired'; readonly sessionId: string }
  | { readonly status: 'closed' };
