import type { CreateMode, MultiOperation } from '../../../../src/zookeeper/client/zookeeper.js';

/** What a session asks of a server. Paths are those on the servers. */
export type Request =
  | { readonly type: 'create'; readonly path: string; readonly data: Buffer; readonly mode: CreateMode }
  | { readonly type: 'set'; readonly path: string; readonly data: Buffer; readonly version: number }
  | { readonly type: 'remove'; readonly path: string; readonly version: number }
  | { readonly type: 'multi'; readonly operations: readonly MultiOperation[] }
  | { readonly type: 'read' | 'children' | 'exists'; readonly path: string; readonly watch: boolean }
  | { readonly type: 'close' };

/** What a server answers: a code (0 for success), and of a refused transaction which operation it was. */
export interface Reply {
  readonly zxid: number;
  readonly code: number;
  readonly index?: number | undefined;
  /** The path that was made, a stat, a znode, names: as the request has it. */
  readonly value?: unknown;
}

export type ClientMessage =
  | { readonly kind: 'open' }
  /** Asks for a session: a new one, or to go on with one. */
  | {
      readonly kind: 'connect';
      readonly sessionId: string | undefined;
      readonly zxid: number;
      readonly timeoutMs: number;
    }
  | { readonly kind: 'request'; readonly request: Request }
  | { readonly kind: 'closed' };

export type ServerMessage =
  | { readonly kind: 'opened' }
  | { readonly kind: 'session'; readonly sessionId: string; readonly timeoutMs: number }
  | { readonly kind: 'expired' }
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'changed'; readonly path: string; readonly isGone: boolean }
  | { readonly kind: 'closed' };

/** Whether the leader has to decide it. */
export function isWrite(request: Request): boolean {
  return request.type !== 'read' && request.type !== 'children' && request.type !== 'exists';
}

/** The operations of a write; none for the end of a session. */
export function operationsOf(request: Request): readonly MultiOperation[] {
  if (request.type === 'multi') return request.operations;
  if (request.type === 'create' || request.type === 'set' || request.type === 'remove')
    return [request as unknown as MultiOperation];
  return [];
}
