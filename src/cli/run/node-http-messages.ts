import type { WireError } from '../../runtime/worker/messages.js';
import type { ListenAddress } from '../../settings/listen-address.js';
import type { MirrorSource } from './health-mirror.js';
import type { ClusterPlace } from './own-cluster-view.js';

/** What the thread that answers over HTTP is started with; everything in it can be cloned, or moved. */
export interface NodeHttpData {
  readonly listen: ListenAddress;
  readonly bearerTokenFile: string | undefined;
  readonly heldForOthers: boolean;
  /** Undefined where there is nothing to see. */
  readonly cluster: ClusterPlace | undefined;
  readonly mirror: MirrorSource;
  /** Whether debug lines are logged. */
  readonly debug: boolean;
}

/** To the thread that answers over HTTP. */
export type ToNodeHttp =
  | { readonly type: 'metrics'; readonly id: number; readonly contentType: string; readonly text: string }
  /** Answered by `closed`. */
  | { readonly type: 'close' };

/** From the thread that answers over HTTP. */
export type FromNodeHttp =
  /** Begins with one of these two. */
  | { readonly type: 'listening'; readonly address: ListenAddress; readonly url: string; readonly protected: boolean }
  | { readonly type: 'refused'; readonly error: WireError }
  | LogLine
  /** Wants the metrics of the process; the request is given up at `until`, on the monotonic clock. */
  | { readonly type: 'metrics'; readonly id: number; readonly until: number }
  | { readonly type: 'closed' };

/** Something for the log. */
export interface LogLine {
  readonly type: 'log';
  readonly level: 'debug' | 'warn' | 'error';
  readonly message: string;
  /** Of a fault. */
  readonly stack?: string | undefined;
}
