import { describe, expect, it } from 'vitest';
import { ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import {
  type DiscoveryEntry,
  type DiscoverySnapshot,
  discoveryReport,
  entryOf,
  parsePath,
  readDiscovery,
} from '../../node/monitor/discovery/discovery-snapshot.js';
import { BoundSession } from '../../zookeeper/client/bound-session.js';
import type { Znode } from '../../zookeeper/client/zookeeper.js';
import { tableLines } from '../kit/answer.js';
import { formatAddress } from '../kit/terminal/text.js';
import { shownTree } from './discovery-command.js';

const SESSION = '0100000000000001';

function znode(data: string, owner: string | undefined = SESSION): Znode {
  const stat = {
    version: 0,
    childrenVersion: 0,
    createdZxid: 1n,
    modifiedZxid: 1n,
    createdAt: 0,
    modifiedAt: 0,
    owner,
    childCount: 0,
  };
  return { data: Buffer.from(data), stat };
}

function entry(path: string, data: unknown, owner?: string | null): DiscoveryEntry {
  const parsed = parsePath(`/discovery/${path}`);
  if (parsed.kind === 'folder' || parsed.kind === 'internal' || parsed.kind === 'foreign')
    throw new Error(`${path} is no place for an entry`);
  const found = znode(typeof data === 'string' ? data : JSON.stringify(data), owner ?? undefined);
  return entryOf(
    `/discovery/${path}`,
    parsed,
    owner === null ? { ...found, stat: { ...found.stat, owner: undefined } } : found,
  );
}

function tables(snapshot: Partial<DiscoverySnapshot>, screen?: Parameters<typeof shownTree>[1]): string[] {
  const whole = { entries: [], emptyFolders: [], foreign: [], denied: [], ...snapshot };
  const shown = shownTree(discoveryReport('zk:2181/app', '/discovery', whole), screen);
  return tableLines(shown.tables, shown.lines, screen);
}

const entries = [
  entry('nodes/00/08', {
    taskId: 'a',
    nodeId: 0,
    version: 3,
    service: 'orders',
    address: '10.0.0.1',
    port: 80,
  }),
  entry('nodes/01/00', { taskId: 'b', nodeId: 248, version: 12 }),
  entry('servicetypes/orders/0', { taskId: 'a', nodeId: 0, version: 3, address: '10.0.0.1', port: 80 }),
  entry('endpoints/pay/_/orders:0', { taskId: 'a', nodeId: 0, version: 3 }),
];

describe('nodelease discovery ls', () => {
  it('shows nodes, services and endpoints, each in a table', () => {
    expect(tables({ entries })).toEqual([
      'NODE ID  ZNODE  VERSION  TASK  SERVICE  ADDRESS      SESSION           PROBLEM',
      '      0  00/08        3  a     orders   10.0.0.1:80  0100000000000001',
      '    248  01/00       12  b                           0100000000000001',
      '',
      'SERVICE  NODE ID  VERSION  TASK  ADDRESS      SESSION           PROBLEM',
      'orders         0        3  a     10.0.0.1:80  0100000000000001',
      '',
      'ENDPOINT  KEY  REF       VERSION  TASK  ADDRESS  SESSION           PROBLEM',
      'pay       _    orders:0        3  a              0100000000000001',
      '',
      '2 nodes, 1 service, 1 endpoint at /discovery of zk:2181/app',
    ]);
  });

  it('shows services and endpoints that no node offers any more', () => {
    const emptyFolders = [
      '/discovery/servicetypes/gone',
      '/discovery/endpoints/none',
      '/discovery/endpoints/pay/blue',
    ];
    const lines = tables({ emptyFolders: [...emptyFolders, '/discovery/nodes', '/discovery/nodes/00'] });
    expect(lines.map((line) => line.trimEnd())).toEqual([
      'SERVICE  NODE ID  VERSION  TASK  ADDRESS  SESSION  PROBLEM',
      'gone           -',
      '',
      'ENDPOINT  KEY   REF  VERSION  TASK  ADDRESS  SESSION  PROBLEM',
      'none      -',
      'pay       blue  -',
      '',
      '0 nodes, 1 service, 2 endpoints at /discovery of zk:2181/app',
    ]);
  });

  it.each([
    ['', 'no data'],
    ['not JSON', 'unreadable: not JSON'],
    ['{"taskId":"a","nodeId":0}', 'unreadable: {"taskId":"a","nodeId":0}'],
    ['x'.repeat(50), `unreadable: ${'x'.repeat(40)}…`],
    ['{"taskId":"a","nodeId":5,"version":1}', 'its data names node id 5'],
  ])('shows data that cannot be right as a problem: %j', (data, problem) => {
    const [, row, , summary] = tables({ entries: [entry('nodes/00/08', data)] });
    expect(row).toMatch(/^ {6}0 {2}00\/08 /);
    expect(row?.endsWith(`  ${problem}`)).toBe(true);
    expect(summary).toBe('1 node, 0 services, 0 endpoints, 1 problem at /discovery of zk:2181/app');
  });

  it('shows that a znode goes with no session', () => {
    expect(
      tables({ entries: [entry('nodes/00/08', { taskId: 'a', nodeId: 0, version: 3 }, null)] })[1],
    ).toMatch(/ none$/);
  });

  it('lists what does not belong there', () => {
    expect(tables({ foreign: ['/discovery/nodes/lock'] })).toEqual([
      'FOREIGN ZNODE',
      '/discovery/nodes/lock',
      '',
      '0 nodes, 0 services, 0 endpoints, 1 foreign znode at /discovery of zk:2181/app',
    ]);
  });

  it('lets nothing of a stranger reach the terminal as a command', () => {
    const lines = tables({
      entries: [
        entry('nodes/00/08', { taskId: '\x1b[2J', nodeId: 0, version: 1, service: '\u202e', address: '\n' }),
      ],
      foreign: ['/discovery/\x9b2J'],
    });
    expect(lines.join('')).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  it.each([80, 88, 120])(
    'keeps within a terminal of %d columns, and spares the column of problems where there are none',
    (columns) => {
      const wide = entry('nodes/00/08', {
        taskId: 't'.repeat(90),
        nodeId: 0,
        version: 1,
        service: 's'.repeat(50),
        address: 'h'.repeat(60),
      });
      const lines = tables({ entries: [wide] }, { columns, rows: 24, color: false }).slice(0, 2);
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(columns);
      expect(lines[0]).not.toContain('PROBLEM');
    },
  );

  it('shows an address whole rather than a task', () => {
    const long = entry('nodes/00/08', {
      taskId: 't'.repeat(32),
      nodeId: 0,
      version: 1,
      service: 'orders',
      address: '172.31.255.255',
      port: 65_535,
    });
    expect(tables({ entries: [long] }, { columns: 90, rows: 24, color: false })[1]).toMatch(
      / t+… .* 172\.31\.255\.255:65535 /,
    );
  });

  it('gives JSON in which no field is ever left out', () => {
    const none = {
      zookeeper: 'zk:2181',
      path: '/discovery',
      exists: false,
      nodes: [],
      services: [],
      endpoints: [],
      foreign: [],
    };
    expect(discoveryReport('zk:2181', '/discovery', undefined)).toEqual(none);
    const bad = entry('endpoints/pay/_/who', 'x', null);
    const denied = {
      ...bad,
      path: '/discovery/nodes/00/08',
      parsed: parsePath('/discovery/nodes/00/08'),
      text: undefined,
    } as DiscoveryEntry;
    const snapshot = { entries: [...entries, bad, denied], emptyFolders: [], foreign: [], denied: [] };
    const report = discoveryReport('zk:2181', '/discovery', snapshot);
    const nothing = {
      version: null,
      taskId: null,
      service: null,
      address: null,
      port: null,
      sessionId: null,
      data: null,
    };
    expect(report.nodes).toEqual([
      {
        clusterNodeId: 8,
        path: '/discovery/nodes/00/08',
        nodeId: 0,
        version: 3,
        taskId: 'a',
        service: 'orders',
        address: '10.0.0.1',
        port: 80,
        sessionId: SESSION,
        data: { taskId: 'a', nodeId: 0, version: 3, service: 'orders', address: '10.0.0.1', port: 80 },
        problem: null,
      },
      expect.objectContaining({ clusterNodeId: 256, nodeId: 248, service: null, address: null, port: null }),
      { clusterNodeId: 8, path: '/discovery/nodes/00/08', nodeId: 0, ...nothing, problem: 'unreadable: x' },
    ]);
    expect(report.services).toEqual([
      { service: 'orders', nodes: [expect.objectContaining({ nodeId: 0, service: 'orders', version: 3 })] },
    ]);
    expect(report.endpoints[0]?.keys[0]?.refs).toEqual([
      expect.objectContaining({ ref: 'orders:0', nodeId: 0, version: 3 }),
      {
        ref: 'who',
        path: '/discovery/endpoints/pay/_/who',
        nodeId: null,
        ...nothing,
        problem: 'unreadable: x',
      },
    ]);
  });

  it('orders references by their node ids', async () => {
    const zookeeper = new ScriptedZooKeeper(new VirtualClock());
    const folders = ['nodes', 'nodes/00', 'servicetypes', 'servicetypes/orders', 'servicetypes/billing'];
    const entries = ['nodes/00/09', 'nodes/00/0A', 'nodes/00/10', 'servicetypes/billing/100'];
    entries.push('servicetypes/orders/9', 'servicetypes/orders/10');
    for (const name of [...folders, ...entries.toReversed()])
      zookeeper.put(`/discovery/${name}`, '{}', undefined);
    const found = (await readDiscovery(new BoundSession(zookeeper, 'a')))?.entries ?? [];
    expect(found.map(({ path }) => path)).toEqual(entries.map((name) => `/discovery/${name}`));
  });
});

describe('an address', () => {
  it.each([
    ['10.0.0.1', 80, '10.0.0.1:80'],
    ['::1', 80, '[::1]:80'],
    ['::1', null, '::1'],
    [null, 80, ':80'],
    [null, null, ''],
  ])('%s with port %s is written %j', (address, port, text) => {
    expect(formatAddress({ address, port })).toBe(text);
  });
});
