import { ConfigError } from '../errors.js';

/** Who this client is, by a name and a password that it tells the servers. */
export interface DigestAuth {
  readonly scheme: 'digest';
  readonly user: string;
  readonly password: string;
}

/**
 * Takes credentials apart: `digest:USER:PASSWORD`. The password may contain colons.
 *
 * The servers accept any digest: a wrong one shows only when an access control list refuses an operation, as `no-auth`.
 *
 * @param label the setting that it comes from, as its user knows it
 * @throws {ConfigError} which never contains the password
 */
export function parseAuth(text: string, label: string): DigestAuth {
  const [scheme, user, ...rest] = text.split(':');
  const password = rest.join(':');
  if (scheme !== 'digest' || user === undefined || user === '' || password === '' || hasControl(text)) {
    throw new ConfigError(label, veiled(text), 'digest:USER:PASSWORD, the digest scheme being the only one');
  }
  return { scheme, user, password };
}

/** What the servers are told. */
export function authData({ user, password }: DigestAuth): Buffer {
  return Buffer.from(`${user}:${password}`, 'utf8');
}

/** Of credentials, what may be shown: the scheme, where there is one. */
function veiled(text: string): string {
  return text.startsWith('digest:') ? 'digest:…' : '…';
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) < 0x20 || text.charCodeAt(i) === 0x7f) return true;
  return false;
}
