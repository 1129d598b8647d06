import { checkArguments } from '../../core/base/arguments.js';
import { Listeners } from '../../core/base/listeners.js';
import { clusterNodeIdOf, groupOf, widthOfGroup } from '../../core/id/cluster-node-id.js';
import type { ZooKeeper } from '../client/zookeeper.js';
import { NODES_PATH, parseHexPair } from './tree-paths.js';

/**
 * Number of bits of a node id in a unique id, by the groups in the discovery tree: 8 to 16. It grows when a
 * higher group appears, and never shrinks while it is watched. A node of a group that has gone may still make
 * ids, and the narrow id of one node can be the wide id of another.
 */
export interface IdWidth {
  /** The value as of now. */
  readonly value: number;
  /**
   * Calls `listener` with every new value, until the returned function is called. Not with the present one.
   * Listeners must not throw.
   */
  onChange(listener: (value: number) => void): () => void;
  /**
   * Resolves once the groups have been seen; before that, `value` is the width that this node's own id needs.
   * Never rejects, nor resolves when closed before.
   */
  readonly first: Promise<void>;
  /** Ends the watch; `value` stays as it is. */
  close(): void;
}

/**
 * Watches the groups for the width of node ids. While ZooKeeper is away the width stays, so it may be too
 * narrow for a group that has appeared meanwhile. The creator of a group therefore waits until every node has
 * published the wider width.
 *
 * @param own this node's id, 0 … 65527: the width is never below what it needs; undefined for a mere observer
 * @throws {ConfigError} when `own` is out of range
 */
export function watchIdWidth(zookeeper: ZooKeeper, own?: number): IdWidth {
  checkArguments({ zookeeper });
  const listeners = new Listeners<number>();
  let width = widthOfGroup(own === undefined ? 0 : groupOf(clusterNodeIdOf(own)));
  const watch = zookeeper.watchChildren(NODES_PATH, (names = []) => {
    const needed = widthOfGroup(Math.max(0, ...names.map((name) => parseHexPair(name) ?? 0)));
    if (needed <= width) return;
    width = needed;
    listeners.notify(width);
  });
  return {
    get value() {
      return width;
    },
    first: watch.first,
    onChange: (listener) => listeners.add(listener),
    close: () => {
      watch.close();
      listeners.clear();
    },
  };
}
