import { expect, it } from 'vitest';
import { describeServer, type ServerRow } from './describe-server.js';

const SOUND: ServerRow = {
  ...{ version: '15.18', tls: 'TLSv1.3', fsync: 'on', commit: 'on', names: '', standbys: 0 },
  ...{ server: 'db-1:5432', isPooled: false },
};

it('a server without a standby is well', () => {
  expect(describeServer(SOUND)).toEqual([
    {
      id: 'postgres-server',
      title: 'server',
      status: 'ok',
      detail: 'PostgreSQL 15.18 at db-1:5432, TLSv1.3',
    },
    { id: 'postgres-durability', title: 'durability', status: 'ok', detail: 'synchronous_commit = on' },
    { id: 'postgres-replication', title: 'replication', status: 'ok', detail: 'no standby' },
    {
      id: 'postgres-notifications',
      title: 'notifications',
      status: 'ok',
      detail: 'waiting tasks learn of a released id at once',
    },
  ]);
});

it.each<[Partial<ServerRow>, string, string, RegExp]>([
  [{ fsync: 'off' }, 'durability', 'fault', /^fsync = off: a crash/],
  [{ commit: 'off' }, 'durability', 'warning', /^synchronous_commit = off for this user/],
  [{ commit: 'local' }, 'durability', 'warning', /^synchronous_commit = local for this user/],
  [{ commit: 'remote_write' }, 'durability', 'ok', /remote_write$/],
  [{ standbys: 2 }, 'replication', 'warning', /^asynchronous, 2 standby/],
  [{ standbys: 1, names: 'FIRST 1 (a, b)' }, 'replication', 'ok', /= FIRST 1 \(a, b\)$/],
  [{ standbys: 1, names: 'a' }, 'replication', 'ok', /= a$/],
  [{ standbys: 1, names: 'anyone' }, 'replication', 'ok', /= anyone$/],
  [
    { standbys: 2, names: ' any 1 (a, b)' },
    'replication',
    'warning',
    /may acknowledge writes through another standby/,
  ],
  [{ isPooled: true }, 'notifications', 'warning', /behind a pooler/],
])('with %j its %s is a %s', (more, id, status, detail) => {
  expect(describeServer({ ...SOUND, ...more }).find((fact) => fact.id === `postgres-${id}`)).toMatchObject({
    status,
    detail: expect.stringMatching(detail),
  });
});
