import { checkKnown } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import {
  checkListenAddress,
  DEFAULT_LISTEN_ADDRESS,
  isLoopback,
  type ListenAddress,
} from '../../core/settings/listen-address.js';
import { APP_OPTIONS, type NodeAppOptions, nodeApp } from './node-app.js';
import { BearerTokenFile } from './server/access.js';
import { type HttpListener, listen } from './server/listen.js';
import { OpenStreams } from './server/open-streams.js';

/** Settings of {@link startNodeServer}: what it answers from, and where. */
export interface NodeServerOptions extends Omit<NodeAppOptions, 'hosts' | 'streams' | 'token'> {
  readonly listen: ListenAddress;
  /**
   * A file with the token that clients must send, except for health and the console's own page. Read again
   * for every request.
   * @default none
   */
  readonly bearerTokenFile?: string | undefined;
  /** What the settings are called in errors. @default "listen" and "bearerTokenFile" */
  readonly labels?: { readonly listen: string; readonly bearerTokenFile: string } | undefined;
}

/** A server of a node that answers. */
export interface NodeServer extends HttpListener {
  /**
   * Whether it answers only this machine, or only clients with the token; false when every client that
   * reaches it can read everything.
   */
  readonly protected: boolean;
}

/**
 * Starts the server of a node: `nodeApp` on its own port. Resolves once it listens, whether a node id is
 * held or not. Closing it does not close the `ClusterView`, which belongs to the caller.
 *
 * @throws {ConfigError} when it cannot listen there, or the token file holds none
 */
export async function startNodeServer(options: NodeServerOptions): Promise<NodeServer> {
  const own = APP_OPTIONS.filter((name) => !['hosts', 'streams', 'token'].includes(name));
  checkKnown(options, [...own, 'listen', 'bearerTokenFile', 'labels']);
  const { listen: at, bearerTokenFile, labels, clock, ...rest } = options;
  checkListenAddress(at, 'listen');
  const token =
    bearerTokenFile === undefined
      ? undefined
      : await BearerTokenFile.open(bearerTokenFile, labels?.bearerTokenFile ?? 'bearerTokenFile');
  const hosts = isLoopback(at.host) ? new Set([at.host.toLowerCase()]) : undefined;
  const streams = new OpenStreams();
  const app = nodeApp({ ...rest, clock, token, hosts, streams });
  const isUrgent = (path: string) =>
    path === '/livez' || path === '/readyz' || rest.parts?.some((part) => part.isUrgent?.(path)) === true;
  const listener = await listen({
    fetch: (request, env) => app.fetch(request, env),
    at,
    label: labels?.listen,
    clock,
    isUrgent,
  });
  const close = () => {
    streams.endAll();
    return listener.close();
  };
  return { ...listener, close, protected: token !== undefined || isLoopback(listener.address.host) };
}

/**
 * The same for a console: where no address is given it is at 127.0.0.1:7070, or at any free port while that is
 * taken.
 */
export async function startConsoleServer(
  at: ListenAddress | undefined,
  options: Omit<NodeServerOptions, 'listen' | 'labels'>,
): Promise<NodeServer> {
  const labels = { listen: '--http', bearerTokenFile: '--bearer-token-file' };
  const start = (listen: ListenAddress) => startNodeServer({ ...options, labels, listen });
  return start(at ?? DEFAULT_LISTEN_ADDRESS).catch((error) => {
    if (at !== undefined || !(error instanceof ConfigError)) throw error;
    return start({ ...DEFAULT_LISTEN_ADDRESS, port: 0 });
  });
}
