import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os, { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { explain } from '../../../../src/core/base/errors.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { LeaseStore, WriteResult } from '../../../../src/core/store/lease-store.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { probeStore } from '../../../../src/core/store/probe/probe.js';
import { TestAuthority } from '../../../support/certificates.js';
import { freePort } from '../../../support/servers/free-ports.js';
import { type PostgresProcess, startPostgresProcess } from '../../../support/servers/postgres-process.js';

// A real PostgreSQL, reached as a user would: by URL and variables.

const base = { clock: systemClock, random: systemRandom, requestTimeoutMs: 5_000 };
const opened: LeaseStore[] = [];
const authority = new TestAuthority();
const folder = mkdtempSync(join(tmpdir(), 'nodelease-postgres-'));
let server: PostgresProcess;

beforeAll(async () => {
  const certificate = authority.issue({ name: 'postgres', hosts: 'IP:127.0.0.1' });
  server = await startPostgresProcess({
    tls: certificate,
    access: [
      'host all locked 127.0.0.1/32 scram-sha-256',
      'hostssl all secure 127.0.0.1/32 trust',
      'host all secure 127.0.0.1/32 reject',
    ],
  });
  await server.query(`CREATE ROLE locked LOGIN PASSWORD 'se:cret'; CREATE ROLE secure LOGIN; CREATE ROLE reader LOGIN;
    GRANT ALL ON SCHEMA public TO locked, secure`);
}, 600_000);

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const store of opened.splice(0)) await store.close();
});

afterAll(async () => {
  await server?.dispose();
  authority.dispose();
  rmSync(folder, { recursive: true });
});

const urlOf = ({ at = server.address, user = 'nodelease', prefix = randomUUID() as string } = {}) =>
  `postgres://${user}@${at}/nodelease/${prefix}`;

async function open(url = urlOf(), requestTimeoutMs = 5_000): Promise<LeaseStore> {
  const store = await openStore(url, { ...base, requestTimeoutMs });
  opened.push(store);
  return store;
}

async function failureOf(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  if (error === undefined) throw new Error('no failure');
  return { error, text: explain(error) };
}

const written = (result: WriteResult) => (result.status === 'written' ? result : expect.fail('a conflict'));

/** A transaction that holds the row of a key until it ends. */
async function holding(prefix: string, key: string) {
  const client = new pg.Client({
    host: '127.0.0.1',
    port: server.port,
    user: 'postgres',
    database: 'nodelease',
  });
  await client.connect();
  await client.query('BEGIN');
  await client.query('SELECT FROM nodelease WHERE prefix = $1 AND key = $2 FOR UPDATE', [prefix, key]);
  return client;
}

/** Resolves to the process that waits for a lock, once there is one. */
async function waitingProcess(): Promise<number> {
  for (;;) {
    const [row] = await server.query(
      `SELECT pid FROM pg_stat_activity WHERE application_name = 'nodelease' AND wait_event_type = 'Lock'`,
    );
    if (row) return Number(row.pid);
    await systemClock.sleep(10);
  }
}

describe('a store on a real PostgreSQL', () => {
  it('is a row for each object, for people to read', async () => {
    const prefix = randomUUID();
    const store = await open(urlOf({ prefix }));
    expect(store.url).toBe(`postgres://nodelease@${server.address}/nodelease/${prefix}`);
    await store.create('7.json', '{"taskId":"é"}', { taskid: 'task-a', version: '1' });
    expect(
      await server.query(
        `SELECT key, body, metadata->>'version' AS version FROM nodelease WHERE prefix = '${prefix}'`,
      ),
    ).toEqual([{ key: '7.json', body: '{"taskId":"é"}', version: '1' }]);
  });

  it('lists no object of the stores below it, unless it is asked for them', async () => {
    const prefix = randomUUID();
    const store = await open(urlOf({ prefix }));
    const lock = await open(urlOf({ prefix: `${prefix}/locks/nightly` }));
    const neighbour = await open(urlOf({ prefix: `${prefix}0` }));
    for (const each of [store, lock, neighbour]) await each.create('0.json', each.url, {});
    const keys = async (folders: boolean) =>
      (await store.list({ folders })).objects.map(({ key }) => key).sort();
    expect(await keys(false)).toEqual(['0.json']);
    expect(await keys(true)).toEqual(['0.json', 'locks/nightly/0.json']);
    expect(await store.read('locks/nightly/0.json')).toMatchObject({ body: lock.url });
  });

  it('passes the probe, and leaves nothing behind', async () => {
    const store = await open();
    const report = await probeStore(store, base);
    expect(report.checks.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect((await store.list()).objects).toEqual([]);
  });

  it('takes no etag for one of its own that is none', async () => {
    const store = await open();
    await store.create('0.json', 'x', {});
    expect(await store.replace('0.json', 'y', {}, "no uuid'")).toEqual({ status: 'conflict' });
  });

  it('takes a conflict of serializable transactions for one', async () => {
    const prefix = randomUUID();
    await server.query(`CREATE ROLE strict LOGIN; GRANT nodelease TO strict;
      ALTER ROLE strict SET default_transaction_isolation = 'repeatable read'`);
    const store = await open(urlOf({ prefix, user: 'strict' }));
    const { etag } = written(await store.create('0.json', 'x', {}));
    const holder = await holding(prefix, '0.json');
    const writing = store.replace('0.json', 'y', {}, etag);
    await waitingProcess();
    await holder.query('UPDATE nodelease SET body = body WHERE prefix = $1', [prefix]);
    await holder.query('COMMIT');
    await holder.end();
    expect(await writing).toEqual({ status: 'conflict' });
  });

  it('refuses a table made by hand whose times have no zone: sessions of two zones would see two ages', async () => {
    await (await open()).create('0.json', 'x', {});
    await server.query(`CREATE ROLE zoned LOGIN; CREATE SCHEMA zoned AUTHORIZATION zoned;
      CREATE TABLE zoned.nodelease (LIKE nodelease INCLUDING ALL); ALTER ROLE zoned SET search_path = zoned;
      ALTER TABLE zoned.nodelease ALTER written_at TYPE timestamp, OWNER TO zoned`);
    const { error, text } = await failureOf((await open(urlOf({ user: 'zoned' }))).create('0.json', 'x', {}));
    expect(error).toMatchObject({ fault: 'rejected', outcome: 'not-applied' });
    expect(text).toMatch(/timezone.* not supported for type timestamp without time zone\)$/);
  });

  it('shows an operator the server', async () => {
    const facts = (await (await open()).describe?.()) ?? [];
    expect(facts).toEqual([
      {
        ...{ id: 'postgres-server', status: 'ok' },
        detail: expect.stringMatching(
          /^PostgreSQL \d+\.\d+.*, without TLS, synchronous_commit = on, synchronous_standby_names = ''$/,
        ),
      },
      expect.objectContaining({ id: 'postgres-clock', status: 'ok' }),
    ]);
    await server.query('ALTER TABLE nodelease SET UNLOGGED');
    expect(await (await open()).describe?.()).toContainEqual({
      ...{ id: 'postgres-durability', status: 'fault' },
      detail: 'the table is unlogged: a crash of the server empties it, with all versions',
    });
    await server.query('ALTER TABLE nodelease SET LOGGED');
  });

  it('resolves a wait for changes when the server ends the connection that listens', async () => {
    const store = await open();
    const waiting = store.changed?.(new AbortController().signal, ({ key }) => {
      listened();
      return key === 'never';
    });
    let listened = () => {};
    await new Promise<void>((resolve) => {
      listened = resolve;
      // It is reported, whether the server listens already or not.
      void store.create('0.json', 'x', {});
    });
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'nodelease' AND query LIKE 'LISTEN%'`,
    );
    await waiting;
  });
});

describe('a write under way', () => {
  it.each([
    [
      'pg_cancel_backend',
      'not-applied',
      /cannot do it now \(57014: canceling statement due to user request\)$/,
    ],
    [
      'pg_terminate_backend',
      'unknown',
      /cannot do it now \(57P01: terminating connection due to administrator command\)$/,
    ],
  ])('that an operator ends by %s is %s', async (ended, outcome, said) => {
    const prefix = randomUUID();
    const store = await open(urlOf({ prefix }));
    const { etag } = written(await store.create('0.json', 'x', {}));
    const holder = await holding(prefix, '0.json');
    const writing = failureOf(store.replace('0.json', 'y', {}, etag));
    await server.query(`SELECT ${ended}(${await waitingProcess()})`);
    const { error, text } = await writing;
    expect(error).toMatchObject({ fault: 'unavailable', outcome });
    expect(text).toMatch(said);
    await holder.end();
    expect(await store.read('0.json')).toMatchObject({ body: 'x' });
  });

  it('that is given up may be applied later', async () => {
    const prefix = randomUUID();
    const store = await open(urlOf({ prefix }), 1_000);
    const { etag } = written(await store.create('0.json', 'x', {}));
    const holder = await holding(prefix, '0.json');
    const { error, text } = await failureOf(store.replace('0.json', 'y', {}, etag));
    expect(error).toMatchObject({ fault: 'unreachable', outcome: 'unknown' });
    expect(text).toMatch(/: replacing 0\.json: 127\.0\.0\.1:\d+: no answer within 1000 ms$/);
    await holder.query('COMMIT');
    await holder.end();
    await expect.poll(async () => (await store.read('0.json'))?.body).toBe('y');
  });
});

it('the epoch is another one once the server has started again, or has another table, and makes ages unknown', async () => {
  const restarted = await startPostgresProcess();
  try {
    const store = await open(urlOf({ at: restarted.address }));
    const epochs = [await store.epoch?.()];
    expect(epochs[0]).toMatch(/^\d+\.\d+\/00000001\/\d+$/);
    await store.create('0.json', 'x', {});
    expect(await store.epoch?.()).toBe(epochs[0]);
    expect((await store.list()).objects).toMatchObject([{ age: { max: expect.closeTo(0, -4) } }]);
    await restarted.stop();
    await restarted.start();
    epochs.push(await store.epoch?.());
    expect((await store.list()).objects).toMatchObject([{ age: { max: Number.POSITIVE_INFINITY } }]);
    await restarted.kill();
    await restarted.start();
    epochs.push(await store.epoch?.());
    await restarted.query('DROP TABLE nodelease');
    epochs.push(await store.epoch?.());
    expect(new Set(epochs).size).toBe(4);
  } finally {
    await restarted.dispose();
  }
});

it('a write that is confirmed survives the end of the server, whatever the default of its user is', async () => {
  // What `fsync` is for is the end of the host.
  const killed = await startPostgresProcess({ settings: { fsync: 'off' } });
  try {
    await killed.query('ALTER ROLE nodelease SET synchronous_commit = off');
    const store = await open(urlOf({ at: killed.address }));
    expect(await store.describe?.()).toMatchObject([
      { detail: expect.stringContaining('synchronous_commit = off') },
      { id: 'postgres-clock' },
      { id: 'postgres-durability', status: 'fault', detail: expect.stringMatching(/^fsync = off: /) },
    ]);
    let { etag } = written(await store.create('0.json', '', {}));
    for (let i = 1; i <= 20; i += 1) ({ etag } = written(await store.replace('0.json', String(i), {}, etag)));
    await killed.kill();
    await killed.start();
    expect(await store.read('0.json')).toMatchObject({ body: '20', etag });
  } finally {
    await killed.dispose();
  }
});

describe('a store that cannot be used says so in one line', () => {
  it('no server there', async () => {
    const port = await freePort();
    const url = urlOf({ at: `127.0.0.1:${port}`, prefix: 'p' });
    const { error, text } = await failureOf((await open(url)).create('0.json', 'x', {}));
    expect(error).toMatchObject({ fault: 'unreachable', outcome: 'not-applied' });
    expect(text).toBe(
      `${url}: creating 0.json: 127.0.0.1:${port}: cannot connect: connect ECONNREFUSED 127.0.0.1:${port}`,
    );
  });

  it('no user', async () => {
    await expect(open(`postgres://${server.address}/nodelease/p`)).rejects.toThrow(
      /^store: expected a user: postgres:\/\/USER@HOST\/…, or PGUSER, got /,
    );
    vi.stubEnv('PGUSER', 'nodelease');
    expect((await (await open(`postgres://${server.address}/nodelease/p`)).list()).objects).toEqual([]);
  });

  it('no database', async () => {
    const url = urlOf().replace('/nodelease/', '/nowhere/');
    const { error, text } = await failureOf((await open(url)).read('0.json'));
    expect(error).toMatchObject({ fault: 'missing', outcome: 'not-applied' });
    expect(text).toBe(`${url}: database does not exist (3D000: database "nowhere" does not exist)`);
  });

  it('no right', async () => {
    await (await open()).create('0.json', 'x', {});
    const url = urlOf({ user: 'reader' });
    const store = await open(url);
    for (const call of [() => store.read('0.json'), () => store.create('0.json', 'x', {})]) {
      const { error, text } = await failureOf(call());
      expect(error).toMatchObject({ fault: 'denied', outcome: 'not-applied' });
      expect(text).toMatch(
        /: access denied, needs SELECT, INSERT, UPDATE and DELETE on the table nodelease, and where there is none CREATE on the schema \(42501: permission denied for table nodelease\)$/,
      );
    }
  });

  it('no password, a wrong one; the right one is that of a variable, or of a file that may change', async () => {
    const file = join(folder, 'pgpass');
    vi.stubEnv('PGPASSFILE', file);
    const url = urlOf({ user: 'locked' });
    const store = await open(url);
    const { error, text } = await failureOf(store.read('0.json'));
    expect(error).toMatchObject({ fault: 'denied', outcome: 'not-applied' });
    expect(text).toBe(
      `${url}: the server wants a password: PGPASSWORD, or a line for 127.0.0.1:${server.port}:nodelease:locked in ${file}`,
    );
    writeFileSync(file, `127.0.0.1:*:nodelease:locked:wrong`);
    const wrong = await failureOf(store.read('0.json'));
    expect(wrong.error).toMatchObject({ fault: 'denied', outcome: 'not-applied' });
    expect(wrong.text).toBe(
      `${url}: reading 0.json: wrong user or password: see PGPASSWORD, and PGPASSFILE (28P01: password authentication failed for user "locked")`,
    );
    writeFileSync(file, `127.0.0.1:*:nodelease:locked:se\\:cret`);
    await server.query('GRANT nodelease TO locked');
    expect(await store.read('0.json')).toBeUndefined();
    vi.stubEnv('PGPASSFILE', '/nowhere');
    vi.stubEnv('PGPASSWORD', 'se:cret');
    expect(await (await open(url)).read('0.json')).toBeUndefined();
  });

  it('no home where a password file could be, and PGPASSWORD is used', async () => {
    const { homedir } = os;
    os.homedir = () => process.env.HOME || expect.fail('this user has no home');
    syncBuiltinESMExports();
    vi.stubEnv('HOME', '');
    vi.stubEnv('PGPASSWORD', 'se:cret');
    try {
      expect(await (await open(urlOf({ user: 'locked' }))).read('0.json')).toBeUndefined();
    } finally {
      os.homedir = homedir;
      syncBuiltinESMExports();
    }
  });

  it('too many connections', async () => {
    await server.query('CREATE ROLE narrow LOGIN CONNECTION LIMIT 0');
    const { error, text } = await failureOf((await open(urlOf({ user: 'narrow' }))).read('0.json'));
    expect(error).toMatchObject({ fault: 'unavailable', outcome: 'not-applied' });
    expect(text).toMatch(/ cannot do it now \(53300: too many connections for role "narrow"\)$/);
  });
});

describe('TLS', () => {
  const url = () => urlOf({ user: 'secure' });
  beforeAll(() => server.query('GRANT nodelease TO secure'));

  it('is as PGSSLMODE says, plainly', async () => {
    const plain = await failureOf((await open(url())).read('0.json'));
    expect(plain.error).toMatchObject({ fault: 'denied' });
    expect(plain.text).toMatch(
      /: access denied: see the user, pg_hba\.conf, and PGSSLMODE if \S+ wants TLS \(28000: pg_hba\.conf rejects connection .*no encryption\)$/,
    );
    for (const mode of ['require', 'verify-ca', 'verify-full']) {
      vi.stubEnv('PGSSLMODE', mode);
      const untrusted = await failureOf((await open(url())).read('0.json'));
      expect(untrusted.error).toMatchObject({ fault: 'rejected', outcome: 'not-applied' });
      expect(untrusted.text).toMatch(
        /: the server's certificate is not trusted: (self-signed|unable to verify) .*$/,
      );
    }
    vi.stubEnv('PGSSLMODE', 'no-verify');
    expect(await (await open(url())).read('0.json')).toBeUndefined();
    vi.stubEnv('PGSSLMODE', 'verify-full');
    vi.stubEnv('PGSSLROOTCERT', authority.ca);
    const store = await open(url());
    expect(await store.read('0.json')).toBeUndefined();
    expect((await store.describe?.())?.[0]?.detail).toMatch(/, TLSv1\.\d, /);
    const byName = await failureOf((await open(url().replace('127.0.0.1', 'localhost'))).read('0.json'));
    expect(byName.text).toMatch(/: the server's certificate is not trusted: Hostname\/IP does not match .*$/);
  });

  it.each([
    [{ PGSSLMODE: 'prefer' }, /^PGSSLMODE: expected disable, verify-full .*, got "prefer"$/],
    [
      { PGSSLMODE: 'require', PGSSLROOTCERT: '/nowhere' },
      /^PGSSLROOTCERT: expected certificates in PEM, got "\/nowhere"$/,
    ],
    [
      { PGSSLMODE: 'require', PGSSLCERT: authority.ca },
      /^PGSSLKEY: expected the private key of the certificate, .*, got "none"$/,
    ],
  ])('of variables %j is refused before anything is sent', async (variables, said) => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    await expect(open(url())).rejects.toThrow(said);
  });
});
