import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AcquireOptions, acquire } from '../../../../src/index.js';
import { type PostgresProcess, startPostgresProcess } from '../../../support/servers/postgres-process.js';

// What docs/operate/costs.md says of PostgreSQL, by the server's own count.

let server: PostgresProcess;

beforeAll(async () => {
  server = await startPostgresProcess({ settings: { shared_preload_libraries: 'pg_stat_statements' } });
  await server.query('CREATE EXTENSION pg_stat_statements');
}, 600_000);

afterAll(() => server?.dispose());

const NAMES = {
  epoch: 'SELECT epoch',
  list: 'octet_length',
  read: 'o.body',
  create: 'INSERT INTO nodelease',
  replace: 'UPDATE nodelease',
  notify: 'pg_notify',
  listen: 'LISTEN',
};

/** Those of the tasks since the last call. */
async function statements(): Promise<Readonly<Record<string, number>>> {
  const rows = await server.query(
    `SELECT query, calls::int FROM pg_stat_statements WHERE userid = 'nodelease'::regrole`,
  );
  await server.query('SELECT pg_stat_statements_reset()');
  const counted: Record<string, number> = {};
  for (const { query, calls } of rows) {
    const [name = 'other'] = Object.entries(NAMES).find(([, text]) => String(query).includes(text)) ?? [];
    counted[name] = (counted[name] ?? 0) + Number(calls);
  }
  return counted;
}

type Events = NonNullable<AcquireOptions['onEvent']>;

/** A cluster of one node, and how a task of it begins. */
async function cluster() {
  const store = `postgres://nodelease@${server.address}/nodelease/${randomUUID()}`;
  const begin = (onEvent?: Events, signal?: AbortSignal) =>
    acquire({
      ...{ store, nodes: 1, durationMs: 3_000, onLost: 'signal' as const },
      ...(onEvent && { onEvent }),
      ...(signal && { signal }),
    });
  const [isWhole, onEvent] = eventually('bootstrapped', 1);
  const first = await begin(onEvent);
  await isWhole;
  return { first, begin };
}

/** Resolves at the nth event of a type. */
function eventually(type: Parameters<Events>[0]['type'], times: number): [Promise<void>, Events] {
  let onEvent: Events = () => undefined;
  const happened = new Promise<void>((resolve) => {
    let left = times;
    onEvent = (event) => {
      if (event.type === type && --left === 0) resolve();
    };
  });
  return [happened, onEvent];
}

it('a start takes 8 statements, a release 2, and a renewal 3', async () => {
  const { first, begin } = await cluster();
  await first.release();
  await statements();
  await (await begin()).release();
  // The second UPDATE is to be refused; the third is the release.
  expect(await statements()).toEqual({ list: 1, epoch: 2, read: 2, replace: 3, notify: 2 });
  const [renewed, onEvent] = eventually('renewed', 2);
  const holder = await begin(onEvent);
  await renewed;
  await holder.release();
  const { read, ...others } = await statements();
  expect(others).toEqual({ list: 1, epoch: 2, replace: 5, notify: 4 });
  // The last renewal's look at the settings may still have been to come.
  expect([3, 4]).toContain(read);
});

it('a waiting task listens, and lists once in a third of the duration', async () => {
  const { first, begin } = await cluster();
  await statements();
  const waiting = new AbortController();
  const [begun, onBegun] = eventually('waiting', 1);
  const [later, onLater] = eventually('waiting', 5);
  const waits = begin((event) => {
    onBegun(event);
    onLater(event);
  }, waiting.signal).catch((error: unknown) => error);
  await begun;
  const { listen } = await statements();
  expect(listen).toBe(1);
  await later;
  // The holder lists nothing.
  expect((await statements()).list).toBe(4);
  waiting.abort(new Error('enough'));
  await waits;
  await first.release();
});
