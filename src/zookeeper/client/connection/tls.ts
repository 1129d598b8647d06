import { isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect, type SecureContext } from 'node:tls';
import { prepareTlsFiles, tlsProblem as problemOfTls, type TlsFiles } from '../../../core/base/tls.js';
import type { ServerAddress } from '../connect-string.js';

/** The settings of TLS. Certificates and keys are the contents of PEM files. */
export interface ZooKeeperTls extends TlsFiles {
  /**
   * The host name or IP address that every server's certificate must have.
   * @default each server's host, as `connect` has it
   */
  readonly servername?: string | undefined;
}

/** The same, checked and ready. */
export type PreparedTls = Pick<ZooKeeperTls, 'cert' | 'servername'> & {
  readonly secureContext: SecureContext;
};

/** Checks the settings of TLS. @throws {ConfigError} that names the part, such as `tls.ca` */
export function prepareTls(tls: ZooKeeperTls): PreparedTls {
  const { cert, servername } = tls;
  return { cert, servername, secureContext: prepareTlsFiles(tls, 'tls.') };
}

/** Begins to connect. `secureConnect` shows that the server's certificate is valid. */
export function connectSecurely(
  { secureContext, servername }: PreparedTls,
  { host, port }: ServerAddress,
  address: string,
): Socket {
  // Java refuses a handshake for a name that ends with a dot.
  const name = (servername ?? host).replace(/\.$/, '');
  return connect({
    // Whatever the environment says.
    ...{ host: address, port, secureContext, rejectUnauthorized: true },
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
    ...(isIP(name) === 0 && { servername: name }),
  });
}

/**
 * The message for a connection without a session. Causes are a server without a quorum (even if it serves
 * readers, `readonlymode.enabled`), one that is behind this client or has enough clients on this host, or one that refuses a client after the
 * handshake.
 */
export function noSession(tls: PreparedTls | undefined): string {
  const other = !tls ? 'want TLS' : tls.cert ? 'refuse the client certificate' : 'want a client certificate';
  return `the server closed the connection without a session: it may have no quorum, be read-only, allow no more connections from this host (maxClientCnxns), or ${other}`;
}

/** The codes of errors of a connection that the other side has closed. */
export const CLOSED_BY_PEER: readonly unknown[] = ['ECONNRESET', 'EPIPE', 'ECONNABORTED'];

/** An error before the session, in the words of TLS; undefined for another error. */
export function tlsProblem(
  error: NodeJS.ErrnoException,
  tls: PreparedTls,
  isSecure: boolean,
): string | undefined {
  const { code, syscall } = error;
  const isClosed = CLOSED_BY_PEER.includes(code);
  if (isClosed && isSecure) return noSession(tls);
  if (isClosed && syscall !== 'connect')
    return 'the server closed the connection in the TLS handshake: it may not speak TLS';
  return problemOfTls(error, tls.cert !== undefined);
}
