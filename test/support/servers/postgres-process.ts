import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { installed } from '../installed.js';
import { freePort } from './free-ports.js';
import { type LocalServer, localServer } from './local-server.js';

const run = promisify(execFile);

/** The superuser of each server. */
const ADMIN = 'postgres';

/** How to start a server. */
export interface PostgresProcessOptions {
  /** Such as `{ fsync: 'off' }`. @default none */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of pg_hba.conf before the one that lets everybody in. @default none */
  readonly access?: readonly string[];
  /** The server of which it is a standby, with all that is in it. @default none */
  readonly primary?: PostgresProcess;
  /** As a standby: its name for `synchronous_standby_names`. @default 'standby' */
  readonly name?: string;
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
  primary,
  name = 'standby',
}: PostgresProcessOptions = {}): Promise<PostgresProcess> {
  const programs = await installed('install-postgres.sh', [], 'Install Debian’s package postgresql');
  const port = await freePort();
  const isRoot = process.getuid?.() === 0;
  // It refuses to be run by root.
  const asUser = (program: string, args: readonly string[]): [string, string[]] =>
    isRoot
      ? ['setpriv', ['--reuid', ADMIN, '--regid', ADMIN, '--clear-groups', join(programs, program), ...args]]
      : [join(programs, program), [...args]];
  const query = async (sql: string, database = 'nodelease') => {
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
      const all = {
        unix_socket_directories: '',
        listen_addresses: '127.0.0.1',
        port: String(port),
        ...settings,
      };
      const flags = Object.entries(all).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
      const [command, args] = asUser('postgres', ['-D', join(folder, 'data'), ...flags]);
      return { command, args };
    },
    isReady: () =>
      query('SELECT', ADMIN).then(
        () => true,
        () => false,
      ),
  });
  const data = join(server.folder, 'data');
  const backends = () => {
    const { pid } = server;
    return pid === undefined
      ? []
      : readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
  };
  try {
    if (isRoot) {
      const [uid, gid] = (await run('id', ['-u', ADMIN])).stdout
        .trim()
        .split('\n')
        .concat((await run('id', ['-g', ADMIN])).stdout.trim());
      await chown(server.folder, Number(uid), Number(gid));
    }
    const inData = { cwd: server.folder };
    if (primary === undefined) {
      await run(
        ...asUser('initdb', [
          '-D',
          data,
          '-U',
          ADMIN,
          '-A',
          'trust',
          '-E',
          'UTF8',
          '--no-locale',
          '--no-sync',
        ]),
        inData,
      );
    } else {
      const from = `host=127.0.0.1 port=${primary.port} user=${ADMIN} application_name=${name}`;
      await run(
        ...asUser('pg_basebackup', ['-D', data, '-d', from, '-R', '-c', 'fast', '--no-sync']),
        inData,
      );
    }
    const hba = join(data, 'pg_hba.conf');
    await writeFile(hba, [...access, readFileSync(hba, 'utf8')].join('\n'));
    await server.start();
    if (primary === undefined) {
      await query('CREATE ROLE nodelease LOGIN', ADMIN);
      await query('CREATE DATABASE nodelease OWNER nodelease', ADMIN);
    }
  } catch (error) {
    await server.dispose();
    throw error;
  }
  const { start, pause, resume, dispose } = server;
  return {
    ...{ port, address: `127.0.0.1:${port}`, query: (sql) => query(sql), start, pause, resume, dispose },
    get pid() {
      return server.pid;
    },
    get description() {
      return `127.0.0.1:${port}, process ${server.pid ?? '(ended)'} of ${programs}`;
    },
    stop: async () => {
      await run(...asUser('pg_ctl', ['stop', '-D', data, '-m', 'fast']), { cwd: server.folder });
      await server.stop();
    },
    // As the end of the host: the processes of its connections would go on for a moment.
    kill: async () => {
      const children = backends();
      await server.kill();
      for (const child of children) {
        try {
          process.kill(child, 'SIGKILL');
        } catch {
          // It has ended.
        }
      }
    },
    promote: async () => {
      await query('SELECT pg_promote()', ADMIN);
    },
  };
}
