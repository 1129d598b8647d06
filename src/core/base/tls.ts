import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { ConfigError } from './errors.js';

/** The files for a client's TLS: the contents of PEM files. */
export interface TlsFiles {
  /** The CAs that may have signed the servers' certificates. @default the CAs that Node trusts */
  readonly ca?: string | Buffer | undefined;
  /** The client's certificate, before the certificates that lead to its CA; needs `key`. @default none */
  readonly cert?: string | Buffer | undefined;
  /** The private key of the certificate, without a passphrase. */
  readonly key?: string | Buffer | undefined;
}

/** The setting that a part comes from, if any: errors show its value, never the part. */
type GivenTls = (part: keyof TlsFiles) => { readonly label: string; readonly text: string } | undefined;

/**
 * Checks and prepares the files for TLS.
 *
 * @param prefix the text before the name of a part in errors
 * @throws {ConfigError} that names the part
 */
export function prepareTlsFiles(
  { ca, cert, key }: TlsFiles,
  prefix: string,
  given: GivenTls = () => undefined,
): SecureContext {
  const check = <T>(part: keyof TlsFiles, content: unknown, expected: string, make: () => T): T => {
    try {
      return make();
    } catch {
      const { label, text } = given(part) ?? {
        label: prefix + part,
        text: content === undefined ? 'none' : '…',
      };
      throw new ConfigError(label, text, expected);
    }
  };
  if (ca !== undefined) check('ca', ca, 'certificates in PEM', () => parseCertificates(ca));
  const isPair = cert !== undefined || key !== undefined;
  if (isPair)
    check('cert', cert, 'the certificate of the private key, in PEM', () => parseCertificates(cert));
  return check('key', key, 'the private key of the certificate, in PEM and without a passphrase', () => {
    if (isPair) createPrivateKey(key ?? '');
    return createSecureContext({ ca, cert, key });
  });
}

/** @throws Error when one of them is malformed, or there is none: OpenSSL would ignore that */
function parseCertificates(pem: string | Buffer = '') {
  // A thread gets a plain array of bytes in place of a buffer.
  const text = typeof pem === 'string' ? pem : Buffer.from(pem).toString();
  const [, ...certificates] = text.split('-----BEGIN CERTIFICATE-----');
  for (const each of certificates.length > 0 ? certificates : [''])
    new X509Certificate(`-----BEGIN CERTIFICATE-----${each}`);
}

/**
 * Why the client does not accept the server, or the server the client; undefined for an error that is not
 * about TLS.
 */
export function tlsProblem(error: NodeJS.ErrnoException, hasCertificate: boolean): string | undefined {
  const { code = '', reason = error.message }: NodeJS.ErrnoException & { readonly reason?: string } = error;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'the server does not speak TLS';
  const refusal = (why: string) =>
    `the server ${hasCertificate ? 'refuses the' : 'wants a'} client certificate (${why})`;
  if (REFUSAL.test(code)) return refusal(reason);
  const [, why, alert] = (code === 'EPROTO' && WRITTEN_ALERT.exec(error.message)) || [];
  if (why !== undefined)
    return CERTIFICATE_ALERTS.includes(Number(alert)) ? refusal(why) : `the TLS handshake failed (${why})`;
  if (code.startsWith('ERR_SSL_')) return `the TLS handshake failed (${reason})`;
  const problem = UNTRUSTED.test(code)
    ? 'is signed by no CA that is trusted here'
    : CERTIFICATE_PROBLEMS[code];
  return problem && `the server's certificate ${problem} (${reason})`;
}

/** The codes of a server's alerts that are about the client's certificate. */
const REFUSAL = /_ALERT_(UNKNOWN_CA|ACCESS_DENIED|\w*CERTIFICATE\w*)$/;

/** The text of an alert, and its number: if it breaks a write, Node has them in this form only. */
const WRITTEN_ALERT = /:SSL routines:[^:]*:([^:]+):.*:SSL alert number (\d+)/;

/** Alerts about the client's certificate: RFC 8446, section 6.2. */
const CERTIFICATE_ALERTS = [42, 43, 44, 45, 46, 48, 49, 116];

const UNTRUSTED =
  /^(SELF_SIGNED|DEPTH_ZERO_SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|CERT_SIGNATURE_FAILURE)/;

const CERTIFICATE_PROBLEMS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has expired',
  CERT_NOT_YET_VALID: 'is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for another host',
};
