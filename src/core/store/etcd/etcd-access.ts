import { checkPlain } from '../../base/arguments.js';
import { ConfigError } from '../../base/errors.js';
import type { TlsFiles } from '../../base/tls.js';

/** How to get into an etcd cluster. Certificates and keys are for `etcds:` and the contents of PEM files. */
export interface EtcdAccess extends TlsFiles {
  /**
   * `USER:PASSWORD` of a user of the cluster.
   * @default none: it lets everybody in, or knows the client by its certificate
   */
  readonly auth?: string | undefined;
}

/**
 * Takes `USER:PASSWORD` apart.
 *
 * @throws {ConfigError} that does not show it
 */
export function parseEtcdAuth(
  auth: string,
  setting: string,
): { readonly user: string; readonly password: string } {
  checkPlain(auth, setting, '…');
  const [, user = '', password = ''] = /^([^:]+):(.+)$/s.exec(auth) ?? [];
  if (user === '') throw new ConfigError(setting, '…', 'USER:PASSWORD of a user of the etcd cluster');
  return { user, password };
}
