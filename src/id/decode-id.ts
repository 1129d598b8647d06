import { ConfigError } from '../errors.js';
import { CLUSTER_NODE_ID_OFFSET, groupOf, indexOf } from './cluster-node-id.js';
import { parseId } from './id-format.js';
import { checkedLayout, type IdLayout } from './id-layout.js';

/** What stands in a unique id. */
export interface DecodedId {
  /** Milliseconds since the Unix epoch, about when it was made. */
  readonly timeMs: number;
  /** The node's number. */
  readonly node: number;
  /** Its group and index, as of a cluster node id. */
  readonly group: number;
  readonly index: number;
  /** The leased node id; undefined for the numbers below 8, which are not leased. */
  readonly nodeId: number | undefined;
  /** The place among the ids of the same millisecond. */
  readonly sequence: number;
}

/**
 * Takes an id apart. Any number of the right size is some id of any layout: whether it is the right layout cannot be told from it.
 *
 * @throws {ConfigError} when it is no id, or too large for the layout
 */
export function decodeId(id: bigint | string, layout: IdLayout): DecodedId {
  const { epochMs, timeBits, sequenceBits, nodeBits, lowest } = checkedLayout(layout);
  const value = typeof id === 'string' ? parseId(id) : id;
  const bits = timeBits + sequenceBits + nodeBits;
  if (typeof value !== 'bigint' || value < 0n || value >> BigInt(bits) !== 0n)
    throw new ConfigError('id', value, `an id of at most ${bits} bits, as layout ${layout.name} has`);
  const low = Number(value & ((1n << BigInt(sequenceBits + nodeBits)) - 1n));
  const lowestBits = lowest === 'node' ? nodeBits : sequenceBits;
  const [lower, upper] = [low % 2 ** lowestBits, Math.floor(low / 2 ** lowestBits)];
  const [node, sequence] = lowest === 'node' ? [lower, upper] : [upper, lower];
  return {
    timeMs: Number(value >> BigInt(sequenceBits + nodeBits)) + epochMs,
    node,
    group: groupOf(node),
    index: indexOf(node),
    nodeId: node < CLUSTER_NODE_ID_OFFSET ? undefined : node - CLUSTER_NODE_ID_OFFSET,
    sequence,
  };
}
