import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect, createSecureContext, type SecureContext } from 'node:tls';
import { ConfigError } from '../base/errors.js';
import type { ServerAddress } from './connect-string.js';

/** What TLS is done with. Certificates and keys are the contents of PEM files. */
export interface ZooKeeperTls {
  /** The CAs that may have signed the servers' certificates. @default the CAs that Node trusts */
  readonly ca?: string | Buffer | undefined;
  /** The client's certificate, before the certificates that lead to its CA; needs `key`. @default none */
  readonly cert?: string | Buffer | undefined;
  /** The private key of the certificate, without a passphrase. */
  readonly key?: string | Buffer | undefined;
  /** The host name or IP address that every server's certificate must have. @default each server's host, as `connect` has it */
  readonly servername?: string | undefined;
}

/** The same, checked and ready. */
export type PreparedTls = Pick<ZooKeeperTls, 'cert' | 'servername'> & { readonly secureContext: SecureContext };

/**
 * Checks what TLS is done with.
 *
 * @param prefix what comes before the name of a part in errors
 * @param given the setting that a part comes from, if any: errors show its value, and never the part
 * @throws {ConfigError} that names the part
 */
export function prepareTls(
  tls: ZooKeeperTls,
  prefix: string,
  given: (part: keyof ZooKeeperTls) => { readonly label: string; readonly text: string } | undefined = () => undefined,
): PreparedTls {
  const { ca, cert, key, servername } = tls;
  const check = <T>(part: keyof ZooKeeperTls, expected: string, make: () => T): T => {
    try {
      return make();
    } catch {
      const { label, text } = given(part) ?? { label: prefix + part, text: tls[part] === undefined ? 'none' : '…' };
      throw new ConfigError(label, text, expected);
    }
  };
  if (ca !== undefined) check('ca', 'certificates in PEM', () => parseCertificates(ca));
  const isPair = cert !== undefined || key !== undefined;
  if (isPair) check('cert', 'the certificate of the private key, in PEM', () => parseCertificates(cert));
  const secureContext = check('key', 'the private key of the certificate, in PEM and without a passphrase', () => {
    if (isPair) createPrivateKey(key ?? '');
    return createSecureContext({ ca, cert, key });
  });
  return { cert, servername, secureContext };
}

/** @throws Error where one of them is malformed, or there is none: OpenSSL would pass over it */
function parseCertificates(pem: string | Buffer = ''): void {
  const [, ...certificates] = String(pem).split('-----BEGIN CERTIFICATE-----');
  for (const each of certificates.length > 0 ? certificates : ['']) new X509Certificate(`-----BEGIN CERTIFICATE-----${each}`);
}

/** Begins to connect. `secureConnect` tells that the server's certificate is good. */
export function connectSecurely({ secureContext, servername }: PreparedTls, { host, port }: ServerAddress, address: string): Socket {
  // Java refuses a handshake for a name that ends with a dot.
  const name = (servername ?? host).replace(/\.$/, '');
  return connect({
    // Whatever the environment says.
    ...{ host: address, port, secureContext, rejectUnauthorized: true },
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
    ...(isIP(name) === 0 && { servername: name }),
  });
}

/** What a server does that has lost its quorum, or that is behind what this client has seen, or that refuses a client after the handshake. */
export function noSession(tls: PreparedTls | undefined): string {
  const other = !tls ? 'want TLS' : tls.cert ? 'refuse the client certificate' : 'want a client certificate';
  return `the server closed the connection without a session: it may have no quorum, or ${other}`;
}

/** What an error before the session is, in the words of TLS; undefined where it is another one. */
export function tlsProblem(error: NodeJS.ErrnoException, tls: PreparedTls, isSecure: boolean): string | undefined {
  const { code = '', syscall, reason = error.message }: NodeJS.ErrnoException & { readonly reason?: string } = error;
  if (code === 'ECONNRESET' && isSecure) return noSession(tls);
  if (code === 'ECONNRESET' && syscall !== 'connect') return 'the server closed the connection in the TLS handshake: it may not speak TLS';
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'the server does not speak TLS';
  if (REFUSAL.test(code)) return `the server ${tls.cert ? 'refuses the' : 'wants a'} client certificate (${reason})`;
  if (code.startsWith('ERR_SSL_')) return `the TLS handshake failed (${reason})`;
  const problem = UNTRUSTED.test(code) ? 'is signed by no CA that is trusted here' : CERTIFICATE_PROBLEMS[code];
  return problem && `the server's certificate ${problem} (${reason})`;
}

/** The codes of a server's alerts that are about the client's certificate. */
const REFUSAL = /_ALERT_(UNKNOWN_CA|ACCESS_DENIED|\w*CERTIFICATE\w*)$/;

const UNTRUSTED = /^(SELF_SIGNED|DEPTH_ZERO_SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|CERT_SIGNATURE_FAILURE)/;

const CERTIFICATE_PROBLEMS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has expired',
  CERT_NOT_YET_VALID: 'is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for another host',
};
