import { execFile } from 'node:child_process';
import { chmod, copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { installed } from '../installed.js';
import { freePort } from './free-ports.js';
import { type LocalServer, localServer } from './local-server.js';

const run = promisify(execFile);

/** The superuser of each server, and who runs it where tests are run by root. */
const ADMIN = 'postgres';
const DATABASE = 'nodelease';

/** How to start a server. */
export interface PostgresProcessOptions {
  /** Such as `{ fsync: 'off' }`. @default none */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of pg_hba.conf before the one that lets everybody in. @default none */
  readonly access?: readonly string[];
  /** Files in PEM. @default without TLS */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** The server of which it is a standby, with all that is in it. @default none */
  readonly primary?: PostgresProcess;
  /** As a standby: its name for `synchronous_standby_names`. @default 'standby' */
  readonly name?: string;
  /** @default a free one */
  readonly port?: number;
}

/**
 * A server under a test's control. It has a user `nodelease`, who may create tables in the database of the same name
 * and nothing else. Its data is kept from `stop()` or `kill()` to `start()`.
 */
export interface PostgresProcess extends Omit<LocalServer, 'folder'> {
  readonly port: number;
  /** `127.0.0.1:PORT`. */
  readonly address: string;
  readonly description: string;
  /** The rows of a statement in the database `nodelease`, as its superuser. */
  query(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Makes a primary of a standby. */
  promote(): Promise<void>;
}

/** Starts a server on 127.0.0.1. @throws Error when it cannot be installed or started */
export async function startPostgresProcess({
  settings = {},
  access = [],
  tls,
  primary,
  name = 'standby',
  port: givenPort,
}: PostgresProcessOptions = {}): Promise<PostgresProcess> {
  const programs = await installed('install-postgres.sh', [], 'install Debian’s package postgresql');
  const port = givenPort ?? (await freePort());
  // It refuses to be run by root.
  const owner = process.getuid?.() === 0 ? ADMIN : undefined;
  const command = (program: string, ...args: string[]): [string, string[]] => {
    const path = join(programs, program);
    return owner === undefined
      ? [path, args]
      : ['setpriv', ['--reuid', owner, '--regid', owner, '--clear-groups', path, ...args]];
  };
  const query = async (sql: string, database = DATABASE) => {
    const client = new pg.Client({ host: '127.0.0.1', port, user: ADMIN, database });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return (await client.query(sql)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  };
  const server = await localServer({
    name: 'PostgreSQL',
    launch: (folder) => {
      const files = tls
        ? { ssl: 'on', ssl_cert_file: join(folder, 'cert'), ssl_key_file: join(folder, 'key') }
        : {};
      const where = { listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: '' };
      const all = Object.entries({ ...where, ...files, ...settings });
      const flags = all.flatMap(([key, value]) => ['-c', `${key}=${value}`]);
      const [program, args] = command('postgres', '-D', join(folder, 'data'), ...flags);
      return { command: program, args };
    },
    isReady: () =>
      query('SELECT', ADMIN).then(
        () => true,
        () => false,
      ),
  });
  const { folder, start, pause, resume, dispose } = server;
  const data = join(folder, 'data');
  const make = (program: string, ...args: string[]) => run(...command(program, ...args), { cwd: folder });
  try {
    for (const [file, from] of Object.entries({ cert: tls?.cert, key: tls?.key })) {
      if (from !== undefined) await copyFile(from, join(folder, file));
      if (from !== undefined) await chmod(join(folder, file), 0o600);
    }
    if (owner !== undefined) await run('chown', ['-R', `${owner}:`, folder]);
    if (primary === undefined) {
      await make('initdb', '-D', data, '-U', ADMIN, '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync');
    } else {
      const from = `host=127.0.0.1 port=${primary.port} user=${ADMIN} application_name=${name}`;
      await make('pg_basebackup', '-D', data, '-d', from, '-R', '-c', 'fast', '--no-sync');
    }
    const hba = join(data, 'pg_hba.conf');
    await writeFile(hba, `${access.join('\n')}\n${await readFile(hba, 'utf8')}`);
    await start();
    if (primary === undefined) {
      await query(`CREATE ROLE ${DATABASE} LOGIN`, ADMIN);
      await query(`CREATE DATABASE ${DATABASE} OWNER ${DATABASE}`, ADMIN);
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    ...{ port, address: `127.0.0.1:${port}`, query: (sql) => query(sql), start, pause, resume, dispose },
    get pid() {
      return server.pid;
    },
    get description() {
      return `127.0.0.1:${port}, process ${server.pid ?? '(ended)'} of ${programs}`;
    },
    stop: async () => {
      // SIGTERM would wait for the clients.
      if (server.pid !== undefined) await make('pg_ctl', 'stop', '-D', data, '-m', 'fast');
      await server.stop();
    },
    kill: async () => {
      const { pid } = server;
      if (pid === undefined) return;
      const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
      await server.kill();
      // They would notice it a moment later, and keep a new server from starting.
      for (const child of children.trim().split(' '))
        await run('kill', ['-KILL', child]).catch(() => undefined);
    },
    promote: async () => {
      await query('SELECT pg_promote()');
    },
  };
}
