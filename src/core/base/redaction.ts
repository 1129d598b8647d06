/** The text in place of a secret. */
export const REDACTED = '[redacted]';

/**
 * Forms of credentials in a text: of ZooKeeper, of a URL, of an address without a scheme, by name, of a request. A
 * backslash includes the character after it, as in JSON. The word PASSWORD is a placeholder in our own texts.
 * Lengths are bounded, so that a long text is searched quickly.
 */
const SECRET_TEXTS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/\b(digest:[^\s:"\\]*:)(?!PASSWORD(?:[\s,)"]|$))(?:[^\s"\\]|\\[^n])+/g, `$1${REDACTED}`],
  // Before a server of PostgreSQL a name alone is no secret.
  [
    /(\b(?!postgres(?:ql)?:\/\/[^\s"\\:@/]{1,128}@(?![^\s"\\/]{0,256}@))[a-z][a-z0-9+.-]{0,20}:\/\/)(?:[^\s"\\/]|\\[^n])*@/gi,
    `$1${REDACTED}@`,
  ],
  // An AWS secret may contain a slash. A port is no secret.
  [
    /(\b[a-z][a-z0-9+.-]{0,20}:\/\/)[^\s"\\:@/]{1,128}:(?!\d{1,5}\/)(?:[^\s"\\]|\\[^n]){1,256}@/gi,
    `$1${REDACTED}@`,
  ],
  [
    /(^|[\s"'(=])(?!file:)[^\s"'\\:@/{}()=]{1,128}:(?!\/|\d{1,5}\/)(?:[^\s"\\]|\\[^n]){1,256}@/g,
    `$1${REDACTED}@`,
  ],
  // Of connection strings, of the parameters of a URL, of signed URLs.
  [
    /((?:passw(?:or)?d|client_secret|secret_access_key|security-token|(?:account|access)_?key|signature|[?&]sig)=)(?:'[^'"\\]*'|(?:[^\s&;"\\]|\\[^n])+)/gi,
    `$1${REDACTED}`,
  ],
  [/\b(Bearer +)[A-Za-z0-9._~+/-]{8,}=*/gi, `$1${REDACTED}`],
];

/** A text without the credentials that are known by their form; a line of JSON stays one. */
export function withoutSecrets(text: string): string {
  return SECRET_TEXTS.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text);
}

/** User and password at the beginning of a value, which may be quoted. A URL's user may have blanks, or be absent. */
const OWN_SECRET =
  /^(["'\s]*)(?:([a-z][a-z0-9+.-]{0,20}:\/\/)[^:/[]{0,128}|(?!file:)[^\s"'\\:@/{}()=[]{1,128}(?!:\/)):(?!\d{1,5}(?:[/,]|$)).*@/is;

/** The same for a value alone, whose password may have blanks and quotes: no other text is around it. */
export function valueWithoutSecrets(value: string): string {
  return withoutSecrets(value.replace(OWN_SECRET, `$1$2${REDACTED}@`));
}
