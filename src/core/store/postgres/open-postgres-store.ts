import { homedir } from 'node:os';
import { join } from 'node:path';
import { checked, listOf, NAME, OBJECT } from '../../base/arguments.js';
import { ConfigError } from '../../base/errors.js';
import { readFollowing } from '../../base/files.js';
import { ensureHome } from '../../base/host/facts.js';
import { prepareTlsFiles } from '../../base/tls.js';
import { type LeaseStore, StoreError } from '../lease-store.js';
import { observedAge } from '../observed-age.js';
import { requiredBy } from '../optional-package.js';
import type { ObjectStoreOptions } from '../store-driver.js';
import { passwordIn } from './password-file.js';
import { PostgresCluster } from './postgres-cluster.js';
import { PostgresLeaseStore } from './postgres-lease-store.js';

/**
 * Settings of {@link openPostgresStore}. What they do not say is taken from the variables `PG…`. The prefix is not
 * empty.
 */
export interface PostgresStoreOptions extends Omit<ObjectStoreOptions, 'endpoint'> {
  /** The store: `postgres://USER@HOST:5432/DB/prefix`. */
  readonly url: string;
  /** The servers of one cluster, at least one. The one that takes writes is used. */
  readonly servers: readonly { readonly host: string; readonly port: number }[];
  /** @default PGUSER */
  readonly user?: string | undefined;
  readonly database: string;
}

/**
 * Makes a store with its own connections, of which none is opened yet. Passwords come from PGPASSWORD or from the
 * password file, which is read for each connection; TLS from PGSSLMODE and its like. Where the server does not know
 * ages, this process observes them.
 *
 * @throws {ConfigError} when `pg` is missing, and for variables that cannot be used
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<LeaseStore> {
  const { url, servers, database, requestTimeoutMs, clock } = checked(options, {
    prefix: NAME,
    servers: listOf(OBJECT),
  });
  const user = options.user || process.env.PGUSER;
  if (!user) throw new ConfigError('store', url, 'a user: postgres://USER@HOST/…, or PGUSER');
  ensureHome(process.env);
  const ssl = await tlsOf(process.env.PGSSLMODE || 'disable');
  const { Pool } = (await import('pg').catch(requiredBy(url, 'pg'))).default;
  const pools = servers.map(({ host, port }) =>
    new Pool({
      host,
      port,
      database,
      user,
      ssl,
      fallback_application_name: 'nodelease',
      // They are opened as they are needed, and closed when they were idle for 10 s. One is for notifications.
      max: 5,
      allowExitOnIdle: true,
      connectionTimeoutMillis: requestTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      password: () => passwordFor(url, [host, String(port), database, user]),
    })
      // Without listeners a connection that ends would end the process.
      .on('error', () => undefined)
      .on('connect', (client) => client.on('error', () => undefined)),
  );
  return observedAge(new PostgresLeaseStore(url, options, new PostgresCluster(options, pools)), clock);
}

/** A server asks for it. @throws {StoreError} where there is none */
async function passwordFor(url: string, connection: readonly string[]): Promise<string> {
  const { PGPASSWORD, PGPASSFILE = join(homedir(), '.pgpass') } = process.env;
  const password = PGPASSWORD || passwordIn(await textOf(PGPASSFILE), connection);
  if (password) return password;
  const detail = `the server wants a password: PGPASSWORD, or a line for ${connection.join(':')} in ${PGPASSFILE}`;
  throw new StoreError(`${url}: ${detail}`, { fault: 'denied', outcome: 'not-applied' });
}

/** More bytes than all CAs that an operating system trusts have. */
const MAX_BYTES = 2 ** 20;

/** The text of a file; nothing where it cannot be read. A pipe could keep the process from ending. */
const textOf = (path: string) => readFollowing(path, MAX_BYTES).then(String, () => '');

const TLS_FILES = { ca: 'PGSSLROOTCERT', cert: 'PGSSLCERT', key: 'PGSSLKEY' } as const;

/** Certificates are checked, unless the mode says plainly that they are not. @throws {ConfigError} */
async function tlsOf(mode: string) {
  if (mode === 'disable') return false;
  if (!['require', 'verify-ca', 'verify-full', 'no-verify'].includes(mode))
    throw new ConfigError(
      'PGSSLMODE',
      mode,
      'disable, verify-full (require and verify-ca are the same here), or no-verify, which checks no certificate',
    );
  const files: Record<string, string> = {};
  for (const [part, name] of Object.entries(TLS_FILES)) {
    const path = process.env[name];
    if (path) files[part] = await textOf(path);
  }
  const secureContext = prepareTlsFiles(files, '', (part) => {
    const label = TLS_FILES[part];
    return { label, text: process.env[label] ?? 'none' };
  });
  return { secureContext, rejectUnauthorized: mode !== 'no-verify' };
}
