import { describe, expect, it } from 'vitest';
import { claimOf, leaseFinder } from './service-lease.js';

const nodes = [
  { taskId: 'a', nodeId: 1, version: 7 },
  { taskId: 'b', nodeId: 2, version: 3 },
];
const find = leaseFinder(nodes);

describe('the lease of an instance', () => {
  it.each([
    ['the node id and version of a payload', { nodeId: 1, version: 7 }],
    ['a payload without a version', { nodeId: 1 }],
    ['the metadata of Spring’s payload', { metadata: { nodeId: '1', version: '7' } }],
  ])('is that of the discovery tree by %s', (_, payload) => {
    expect(find(claimOf('x', payload))).toEqual({ nodeId: 1, version: 7, taskId: 'a', toldBy: 'tree', otherVersion: null });
  });

  it('is that of the task with its id, where the payload names none', () => {
    expect(find(claimOf('b', null))).toMatchObject({ nodeId: 2, taskId: 'b', toldBy: 'tree' });
    expect(find(claimOf('b', { nodeId: 1, version: 7 }))).toMatchObject({ nodeId: 1, taskId: 'a' });
    expect(find(claimOf('c', undefined))).toBeNull();
  });

  it('is only what the payload says of another tenure, and of a node that the tree has not', () => {
    expect(find(claimOf('a', { nodeId: 1, version: 6 }))).toEqual({
      nodeId: 1,
      version: 6,
      taskId: null,
      toldBy: 'payload',
      otherVersion: 7,
    });
    expect(find(claimOf('a', { nodeId: 5 }))).toEqual({ nodeId: 5, version: null, taskId: null, toldBy: 'payload', otherVersion: null });
  });

  it.each([
    ['text'],
    [7],
    [[1]],
    [{ nodeId: -1 }],
    [{ nodeId: 1.5 }],
    [{ nodeId: 'one' }],
    [{ nodeId: null }],
    [{ metadata: 'text' }],
    [{ nodeId: {} }],
  ])('is none where the payload says %j', (payload) => {
    expect(find(claimOf('c', payload))).toBeNull();
  });
});
