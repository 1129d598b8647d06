import { describe, expect, it } from 'vitest';
import type { Znode } from '../../../zookeeper/client/zookeeper.js';
import { entryOf, entryReport, nodeIdOfRef, parseDiscoveryPath, parsePath } from './discovery-snapshot.js';

describe('a path in the discovery tree', () => {
  it.each([
    ['/discovery/nodes/00/08', { kind: 'node', nodeId: 0, clusterNodeId: 8 }],
    ['/discovery/nodes/0a/fF', { kind: 'node', nodeId: 0x0aff - 8, clusterNodeId: 0x0aff }],
    ['/discovery/servicetypes/orders/7', { kind: 'service', service: 'orders', ref: '7' }],
    ['/discovery/endpoints/pay/_/orders:7', { kind: 'endpoint', endpoint: 'pay', key: '_', ref: 'orders:7' }],
  ])('%s is that of an announcement', (path, parsed) => {
    expect(parsePath(path)).toEqual(parsed);
  });

  it.each([
    '/discovery',
    '/discovery/nodes',
    '/discovery/nodes/FF',
    '/discovery/servicetypes',
    '/discovery/servicetypes/orders',
    '/discovery/endpoints',
    '/discovery/endpoints/pay',
    '/discovery/endpoints/pay/_',
  ])('%s is a folder', (path) => {
    expect(parsePath(path)).toEqual({ kind: 'folder' });
  });

  it.each([
    '/discovery/stamps',
    '/discovery/stamps/00',
    '/discovery/stamps/00/08',
    '/discovery/stamps/gate-01',
  ])('%s is what nodelease keeps for itself', (path) => {
    expect(parsePath(path)).toEqual({ kind: 'internal' });
  });

  it.each([
    '/discovery/probe-1234',
    '/discovery/nodes/x',
    '/discovery/nodes/000',
    '/discovery/nodes/00/lock',
    '/discovery/nodes/00/08/more',
    '/discovery/servicetypes/orders/7/more',
    '/discovery/endpoints/pay/_/orders:7/more',
  ])('%s does not belong to the tree', (path) => {
    expect(parsePath(path)).toEqual({ kind: 'foreign' });
  });

  it('is none for the reserved cluster node ids 0 to 7, which are not leased', () => {
    expect(parsePath('/discovery/nodes/00/07')).toEqual({ kind: 'foreign' });
  });

  it.each([
    ['7', 7],
    ['orders:12', 12],
    ['a:b:3', 3],
    ['orders', undefined],
    ['orders7', undefined],
    ['123456', undefined],
    ['', undefined],
  ])('the reference %j is that of node %s', (ref, nodeId) => {
    expect(nodeIdOfRef(ref)).toBe(nodeId);
  });
});

describe('the requested path', () => {
  it.each([
    ['/discovery', '/discovery'],
    ['/discovery/', '/discovery'],
    ['/discovery/nodes/00/', '/discovery/nodes/00'],
    ['nodes', '/discovery/nodes'],
    ['endpoints/pay', '/discovery/endpoints/pay'],
  ])('%s means %s', (text, path) => {
    expect(parseDiscoveryPath(text)).toBe(path);
  });

  it.each([
    '/',
    '//',
    '',
    '/zookeeper',
    '/discoveryx',
    '/discovery//nodes',
    '/discovery/../zookeeper',
    '../../x',
    'no\u0007des',
  ])('is refused where it is not in the tree: %j', (text) => {
    expect(() => parseDiscoveryPath(text)).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        message: `path: expected /discovery or a path below it, such as /discovery/nodes, got ${JSON.stringify(text)}`,
      }),
    );
  });
});

it.each([
  [',"nonce":"x"', 4_294_967_297, undefined],
  ['', undefined, 'unreadable: {"taskId":"a","nodeId":0}'],
])('a node that names no version is a claim if it has a nonce: %j', (more, version, problem) => {
  const data = Buffer.from(`{"taskId":"a","nodeId":0${more}}`);
  const znode = { data, stat: { createdZxid: 4_294_967_297n } } as unknown as Znode;
  const entry = entryOf('/discovery/nodes/00/08', { kind: 'node', nodeId: 0, clusterNodeId: 8 }, znode);
  expect([entry.assignment?.version, entry.problem]).toEqual([version, problem]);
});

it.each(['{"taskId":"a","nodeId":0,"version":1,"more":', '{"more":'])(
  'the report on a znode can be written as JSON, however many levels its data have: %s',
  (begin) => {
    const deep = `${begin}${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const znode = { data: Buffer.from(deep), stat: { createdZxid: 1n } } as unknown as Znode;
    const entry = entryOf('/discovery/nodes/00/08', { kind: 'node', nodeId: 0, clusterNodeId: 8 }, znode);
    expect(JSON.parse(JSON.stringify(entryReport(entry)))).toMatchObject({
      nodeId: 0,
      data: null,
      problem: expect.stringContaining('unreadable: {'),
    });
  },
);
