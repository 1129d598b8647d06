import { checkArguments, checkKnown, kind, OBJECT } from '../base/arguments.js';
import { ConfigError } from '../base/errors.js';
import { CLUSTER_NODE_ID_OFFSET, checkWhole, groupOf, indexOf } from './cluster-node-id.js';
import { parseId } from './id-format.js';

/**
 * The meaning of the 64 bits of a unique id: a time in milliseconds on top, below it a sequence number and a
 * node's number. The last two may be in either order. Ids of one node sort by their times.
 */
export interface IdLayout {
  /** For people. */
  readonly name: string;
  /** What the time counts from, in milliseconds since the Unix epoch, 0 … 2^48 - 1. */
  readonly epochMs: number;
  /** 34 … 48. */
  readonly timeBits: number;
  /** 0 … 22. */
  readonly sequenceBits: number;
  /** 1 … 16. */
  readonly nodeBits: number;
  /** Which of the two is in the lowest bits. */
  readonly lowest: 'node' | 'sequence';
}

/**
 * A custom layout of 63 or 64 bits.
 * @default the name 'custom', the epoch 0, the sequence in the lowest bits
 */
export type IdLayoutOptions = Pick<IdLayout, 'timeBits' | 'sequenceBits' | 'nodeBits'> & {
  readonly [Field in keyof IdLayout]?: IdLayout[Field] | undefined;
};

/** Where Twitter's ids begin: 2010-11-04T01:42:54.657Z. */
export const TWITTER_EPOCH_MS = 1_288_834_974_657;

const MAX_TIME = 2 ** 48;
const NAMES = [
  'name',
  'epochMs',
  'timeBits',
  'sequenceBits',
  'nodeBits',
  'lowest',
] satisfies (keyof IdLayout)[];

/**
 * The default layout: 48 bits of time since the Unix epoch, below them the sequence, in the lowest bits the
 * cluster node id. All nodes of a system need the same width: with two widths, the upper bits of one node's
 * id are the sequence of another node.
 *
 * @param width the bits of a cluster node id, 8 … 16; the rest of 16 is the sequence
 * @throws {ConfigError} when there is no such width
 */
export function cluster16(width: number): IdLayout {
  checkWhole('width', width, 8, 16);
  return idLayout({
    name: 'cluster16',
    timeBits: 48,
    sequenceBits: 16 - width,
    nodeBits: width,
    lowest: 'node',
  });
}

/**
 * Twitter's layout: 41 bits of time, enough for 69 years from the epoch, 10 of the node, 12 of the sequence.
 * The highest bit is 0.
 *
 * @param epochMs what the time counts from, in milliseconds since the Unix epoch; the same for every
 * generator of a system, for ever
 * @throws {ConfigError} when the epoch is invalid
 */
export function snowflake(epochMs: number = TWITTER_EPOCH_MS): IdLayout {
  return idLayout({ name: 'snowflake', epochMs, timeBits: 41, nodeBits: 10, sequenceBits: 12 });
}

/**
 * A custom layout.
 * @throws {ConfigError} that names the field which is out of range, or the sum of the bits
 */
export function idLayout(options: IdLayoutOptions): IdLayout {
  checkKnown(options, NAMES, 'layout');
  const { name = 'custom', epochMs = 0, timeBits, sequenceBits, nodeBits, lowest = 'sequence' } = options;
  if (typeof name !== 'string') throw new ConfigError('layout.name', name, 'a text');
  checkWhole('layout.timeBits', timeBits, 34, 48);
  checkWhole('layout.sequenceBits', sequenceBits, 0, 22);
  checkWhole('layout.nodeBits', nodeBits, 1, 16);
  const sum = timeBits + sequenceBits + nodeBits;
  if (sum !== 63 && sum !== 64) {
    const given = `${timeBits} + ${sequenceBits} + ${nodeBits} = ${sum}`;
    throw new ConfigError('layout', given, 'bits of time, sequence and node that make 63 or 64');
  }
  checkWhole('layout.epochMs', epochMs, 0, MAX_TIME - 1, ' (milliseconds since the Unix epoch)');
  if (lowest !== 'node' && lowest !== 'sequence')
    throw new ConfigError('layout.lowest', lowest, "'node' or 'sequence'");
  return { name, epochMs, timeBits, sequenceBits, nodeBits, lowest };
}

const LAYOUT = kind('what cluster16(), snowflake() or idLayout() returns', OBJECT.is);

/**
 * Checks a layout that a caller without types, or with a hand-made layout, has passed.
 *
 * @throws {ConfigError} that names `layout`, or the field of it which is out of range
 */
export function checkedLayout(layout: unknown): IdLayout {
  checkArguments({ layout }, { layout: LAYOUT });
  return idLayout(layout as IdLayoutOptions);
}

/** Number of ids that a node has for each millisecond. */
export function idsPerMs(layout: IdLayout): number {
  const { sequenceBits } = checkedLayout(layout);
  return 2 ** sequenceBits;
}

/** The parts of a unique id. */
export interface DecodedId {
  /** Milliseconds since the Unix epoch, about when it was made. */
  readonly timeMs: number;
  /** The node's number, and its group and index, as in a cluster node id. */
  readonly node: number;
  readonly group: number;
  readonly index: number;
  /** The leased node id; undefined for the numbers below 8, which are not leased. */
  readonly nodeId: number | undefined;
  /** The position among the ids of the same millisecond. */
  readonly sequence: number;
}

/**
 * Decodes an id. Any number of the right size is an id of any layout: the number does not show which layout
 * is right.
 *
 * @throws {ConfigError} when it is no id, or too large for the layout
 */
export function decodeId(id: bigint | string, layout: IdLayout): DecodedId {
  const { epochMs, timeBits, sequenceBits, nodeBits, lowest } = checkedLayout(layout);
  const value = typeof id === 'string' ? parseId(id) : id;
  const bits = timeBits + sequenceBits + nodeBits;
  if (typeof value !== 'bigint' || value >> BigInt(bits) !== 0n)
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
