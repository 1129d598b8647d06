/**
 * The state of the session with ZooKeeper. Session ids are 16 hex digits, lower case.
 *
 * `connecting` → `connected` → `suspended` → `connected` (the same session) or `expired` → `connecting` (a
 * new one) → …, and `closed` from anywhere. Only a server shows that a session has expired: a `suspended` one
 * may have ended already. `timeoutMs` is the time-out that the server granted, `server` its host and port,
 * and `problem` the last problem, for people.
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
   * The connection is lost, and the session may still exist at the servers. The client looks for another
   * connection by itself.
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

/** The state with a connection. */
export type ConnectedState = Extract<SessionState, { status: 'connected' }>;

/** Whether that session is over: it has expired, the client has another one, or is closed. */
export const isSessionOver = (state: SessionState, sessionId: string) =>
  !('sessionId' in state) || state.status === 'expired' || state.sessionId !== sessionId;
