import type {
  DataEntry,
  DataReport,
  DatumReport,
  Kind,
} from '../../src/zookeeper/shared-data/data-report.js';

const ROOT = '/monastery/root';

function datum(
  name: string,
  kind: Kind,
  entries: readonly Partial<DataEntry>[],
  facts: Partial<DatumReport> = {},
): DatumReport {
  const path = `${ROOT}/data/${name}`;
  const nothing = {
    key: null,
    scalar: null,
    place: null,
    owner: null,
    node: null,
    version: '1.0',
    bytes: 30,
    problem: null,
  };
  const all = entries.map((entry, at): DataEntry => ({ ...nothing, path: `${path}/${at}`, ...entry }));
  const head = { path, name, scope: '', kind, lifespan: 'persistent', problem: null } as const;
  return { ...head, size: all.length, bytes: 30 * all.length, entries: all, ...facts };
}

const scalar = (type: string, value: string) => ({ type, value });
const text = (value: string) => scalar('String', value);

/** Shared data of every kind, with a collision, an unknown type and a foreign znode. */
export function scriptedData(): DataReport {
  const online = [7, 8, 11].map((n) => ({
    scalar: text(`orders-${n}`),
    place: 0,
    node: `node-00000000${String(n).padStart(2, '0')}`,
  }));
  const weights = Object.entries({ Frankfurt: '4', Ireland: '2', Virginia: '10' }).map(([key, value]) => {
    return { key: text(key), scalar: scalar('Integer', value), place: 0 };
  });
  const ids = ['Integer', 'String', 'Instant'].map((type, place) => {
    return { scalar: scalar(type, '3'), place, problem: type === 'Instant' ? 'unknown type Instant' : null };
  });
  const data = [
    datum('ids', 'set', ids),
    datum('maintenance', 'scalar', [{ scalar: scalar('Boolean', 'false') }]),
    datum('online', 'set', online, { lifespan: 'ephemeral' }),
    datum('weights', 'map', weights, { scope: 'eu' }),
    datum('other', 'set', [], {
      name: null,
      scope: null,
      kind: null,
      lifespan: null,
      problem: 'no shared data: hello',
    }),
  ];
  return { zookeeper: 'zk-1:2181,zk-2:2181,zk-3:2181/prod', root: ROOT, exists: true, data };
}
