import { describe, expect, it } from 'vitest';
import { type DiscoveryEntry, entryOf, parsePath } from '../../node/monitor/discovery/discovery-snapshot.js';
import { changeReport, changeText, discoveryChange } from './discovery-watch.js';

function entry(
  path: string,
  data: unknown,
  { zxid = 1n, owner = '01' }: { zxid?: bigint; owner?: string } = {},
): DiscoveryEntry {
  const parsed = parsePath(path);
  if (parsed.kind === 'folder' || parsed.kind === 'internal' || parsed.kind === 'foreign')
    throw new Error(`${path} is no place for an entry`);
  const stat = {
    version: 0,
    childrenVersion: 0,
    createdZxid: zxid,
    modifiedZxid: zxid,
    createdAt: 0,
    modifiedAt: 0,
    owner,
    childCount: 0,
  };
  return entryOf(path, parsed, { data: Buffer.from(JSON.stringify(data)), stat });
}

const PATH = '/discovery/nodes/00/08';
const first = entry(PATH, { taskId: 'a', nodeId: 0, version: 1, address: 'host', port: 80 });

/** The text about a change. */
function textOf(previous: DiscoveryEntry | undefined, now: DiscoveryEntry | undefined): string | undefined {
  const change = discoveryChange(previous, now);
  return change && changeText(change);
}

describe('a change in the discovery tree', () => {
  it('is reported in one line', () => {
    expect(textOf(undefined, first)).toBe(
      'node 0 (00/08) joined: version 1, task a, address host:80, session 01',
    );
    expect(textOf(first, undefined)).toBe(
      'node 0 (00/08) left: version 1, task a, address host:80, session 01',
    );
    const successor = entry(
      PATH,
      { taskId: 'b', nodeId: 0, version: 2, service: 'orders' },
      { zxid: 2n, owner: '02' },
    );
    expect(textOf(first, successor)).toBe(
      'node 0 (00/08) changed: version 1 → 2, task a → b, service none → orders, address host:80 → none, session 01 → 02',
    );
    expect(
      textOf(
        first,
        entry(PATH, { taskId: 'a', nodeId: 0, version: 1, address: 'host', port: 80, idWidth: 9 }),
      ),
    ).toBe(
      'node 0 (00/08) changed: version 1, task a, address host:80, session 01, other fields of its data are new',
    );
    expect(
      textOf(undefined, entry('/discovery/servicetypes/orders/7', { taskId: 'a', nodeId: 7, version: 1 })),
    ).toMatch(/^service orders of node 7 joined: version 1, task a,/);
    expect(textOf(undefined, entry('/discovery/endpoints/pay/_/orders:7', 'x'))).toMatch(
      /^endpoint pay key _ of orders:7 joined: .*unreadable: "x"$/,
    );
  });

  it('is none when the same data is written again, as heartbeats do', () => {
    expect(textOf(first, { ...first })).toBeUndefined();
    expect(textOf(undefined, undefined)).toBeUndefined();
  });

  it('is one when a znode was made again with the same data: it goes with another session', () => {
    expect(
      textOf(
        first,
        entry(
          PATH,
          { taskId: 'a', nodeId: 0, version: 1, address: 'host', port: 80 },
          { zxid: 9n, owner: '09' },
        ),
      ),
    ).toBe('node 0 (00/08) changed: version 1, task a, address host:80, session 01 → 09');
  });

  it('gives JSON in which no field is ever left out', () => {
    const left = discoveryChange(first, undefined);
    expect(left && changeReport(left)).toEqual({
      change: 'left',
      kind: 'node',
      clusterNodeId: 8,
      endpoint: null,
      key: null,
      ref: null,
      path: PATH,
      nodeId: 0,
      version: 1,
      taskId: 'a',
      service: null,
      address: 'host',
      port: 80,
      sessionId: '01',
      data: { taskId: 'a', nodeId: 0, version: 1, address: 'host', port: 80 },
      problem: null,
      previous: expect.objectContaining({ version: 1, path: PATH }),
    });
    const joined = discoveryChange(
      undefined,
      entry('/discovery/endpoints/pay/blue/orders:7', { taskId: 'a', nodeId: 7, version: 1 }),
    );
    expect(joined && changeReport(joined)).toMatchObject({
      change: 'joined',
      kind: 'endpoint',
      clusterNodeId: null,
      endpoint: 'pay',
      key: 'blue',
      ref: 'orders:7',
      nodeId: 7,
      previous: null,
    });
  });
});
