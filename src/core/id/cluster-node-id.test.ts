import { describe, expect, it } from 'vitest';
import { ConfigError } from '../base/errors.js';
import { idWidthFor } from '../lease/model/cluster-config.js';
import { MAX_NODE_IDS } from '../lease/model/lease-state.js';
import { clusterNodeIdOf, groupOf, indexOf, nodeIdOf, widthOfGroup } from './cluster-node-id.js';

describe('a cluster node id', () => {
  it('reserves the first 8 ids for nodes that are numbered by hand', () => {
    expect(clusterNodeIdOf(0)).toBe(8);
    expect(nodeIdOf(8)).toBe(0);
    expect(() => nodeIdOf(7)).toThrow(
      'cluster node id: expected a whole number from 8 to 65535 (lower ones are reserved), got 7',
    );
  });

  it('exists for every node id that can be leased, and for no other', () => {
    expect(clusterNodeIdOf(MAX_NODE_IDS - 1)).toBe(0xffff);
    expect(nodeIdOf(0xffff)).toBe(MAX_NODE_IDS - 1);
    for (const nodeId of [MAX_NODE_IDS, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => clusterNodeIdOf(nodeId)).toThrow(
        'node id: expected a whole number from 0 to 65527 (cluster node ids end at 65535), got ',
      );
    }
    for (const clusterNodeId of [0x10000, -8, 8.5, Number.NaN])
      expect(() => nodeIdOf(clusterNodeId)).toThrow(ConfigError);
  });

  it('consists of its group and its index', () => {
    expect([groupOf(8), indexOf(8)]).toEqual([0, 8]);
    expect([groupOf(0x0100), indexOf(0x0100)]).toEqual([1, 0]);
    expect([groupOf(0xffff), indexOf(0xffff)]).toEqual([255, 255]);
    for (let id = 8; id <= 0xffff; id += 1)
      if (groupOf(id) * 256 + indexOf(id) !== id) expect.fail(`${id} is torn apart wrongly`);
  });
});

describe('the width of a group', () => {
  it('is what the highest cluster node id of the group needs, at least 8 bits', () => {
    const widths = [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255].map(widthOfGroup);
    expect(widths).toEqual([8, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 16, 16]);
    for (let group = 0; group <= 255; group += 1) expect((group * 256 + 255) >> widthOfGroup(group)).toBe(0);
  });

  it('is that of a cluster with as many node ids', () => {
    for (let size = 1; size <= MAX_NODE_IDS; size += 1) {
      const width = widthOfGroup(groupOf(clusterNodeIdOf(size - 1)));
      if (width !== idWidthFor(size))
        expect.fail(`${size} node ids: ${width} bits by the group, ${idWidthFor(size)} by the size`);
    }
  });

  it('is refused for an invalid group', () => {
    for (const group of [-1, 256, 1.5, Number.NaN])
      expect(() => widthOfGroup(group)).toThrow('group: expected a whole number from 0 to 255, got ');
  });
});
