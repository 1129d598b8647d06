/** The fields whose values are secret, wherever they stand. */
const SECRET_FIELDS = ['authorization', 'token', 'secret', 'password', 'credentials', 'zookeeper-auth', 'zookeeperAuth', 'auth'];

/** What is written in place of a secret. */
export const REDACTED = '[redacted]';

/** The paths of secret fields in what is logged: at its top, and two levels below. */
export const SECRET_PATHS: readonly string[] = SECRET_FIELDS.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]);

/** Credentials as they may stand within a text: of ZooKeeper, of a URL, of a request. A backslash takes the character after it along, as in JSON. */
const SECRET_TEXTS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/\b(digest:[^\s:"\\]*:)(?:[^\s"\\]|\\[^n])+/g, `$1${REDACTED}`],
  [/(\b[a-z][a-z0-9+.-]{0,20}:\/\/)(?:[^\s"\\/@]|\\[^n])*@/gi, `$1${REDACTED}@`],
  [/\b(Bearer +)[A-Za-z0-9._~+/-]{8,}=*/gi, `$1${REDACTED}`],
];

/**
 * A text without the credentials that are known by their form: `digest:user:password`, `scheme://user:password@host`, `Bearer token`.
 * A line of JSON stays one.
 */
export function withoutSecrets(text: string): string {
  return SECRET_TEXTS.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text);
}
