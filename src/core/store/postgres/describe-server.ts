import type { StoreFact } from '../lease-store.js';

/** What a server says of itself. */
export interface ServerRow {
  readonly version: string;
  readonly tls: string;
  readonly fsync: string;
  /** The default of `synchronous_commit` for this user. */
  readonly commit: string;
  /** The setting `synchronous_standby_names`. */
  readonly names: string;
  readonly standbys: number;
  /** `HOST:PORT`. */
  readonly server: string;
  /** Whether a pooler is in between. */
  readonly isPooled: boolean;
}

/** What of a server concerns leases. */
export function describeServer({
  version,
  tls,
  fsync,
  commit,
  names,
  standbys,
  server,
  isPooled,
}: ServerRow): readonly StoreFact[] {
  const facts: readonly (readonly [id: string, status: StoreFact['status'], detail: string])[] = [
    ['server', 'ok', `PostgreSQL ${version} at ${server}, ${tls}`],
    fsync === 'off'
      ? ['durability', 'fault', 'fsync = off: a crash of the host loses or damages leases']
      : /^(off|local)$/.test(commit)
        ? [
            'durability',
            'warning',
            `synchronous_commit = ${commit} for this user: only nodelease waits for the disk and for synchronous standbys all the same`,
          ]
        : ['durability', 'ok', `synchronous_commit = ${commit}`],
    names === '' && standbys > 0
      ? [
          'replication',
          'warning',
          `asynchronous, ${standbys} standby(s): a promotion loses the last writes, so leases go back in time; set synchronous_standby_names`,
        ]
      : /^\s*ANY\b/i.test(names)
        ? [
            'replication',
            'warning',
            `synchronous_standby_names = ${names}: after a promotion the old primary may acknowledge writes through another standby; use FIRST`,
          ]
        : ['replication', 'ok', names === '' ? 'no standby' : `synchronous_standby_names = ${names}`],
    isPooled
      ? ['notifications', 'warning', 'not used behind a pooler: waiting tasks poll']
      : ['notifications', 'ok', 'waiting tasks learn of a released id at once'],
  ];
  return facts.map(([id, status, detail]) => ({ id: `postgres-${id}`, title: id, status, detail }));
}
