import { checked } from '../../core/base/arguments.js';
import { whileConnectionIsAway } from '../client/retry.js';
import type { TimeSources, ZooKeeperContext } from '../client/zookeeper.js';
import { CALL_TIMEOUT_MS, type CallOptions, type ZooKeeper } from '../client/zookeeper.js';
import { ZooKeeperError } from '../client/zookeeper-error.js';
import { propertiesOf, readTree } from './context-tree.js';
import type { Revisions } from './fleet-report.js';
import { decodeRevision } from './history.js';
import { contextsOfNode, historyPath } from './layout.js';

/** How long to wait for an answer. @default 10 s */
type WaitOptions = Pick<CallOptions, 'timeoutMs' | 'signal'>;

/** Where configuration is read and written. */
export interface ConfigPlace extends ZooKeeperContext {
  readonly root: string;
}

/** A property as a reader has it. */
export interface ConfigValue {
  readonly value: string;
  /** The context that it comes from, such as `shop,prod`, or `shop@nodes=0-3` for an override. */
  readonly context: string;
}

/** A configuration at one time. */
export interface ConfigValues {
  /** In the order of the keys. */
  readonly values: ReadonlyMap<string, ConfigValue>;
  /** The revision of each context, the most specific context first; 0 for one without. */
  readonly revisions: Revisions;
}

/** The same, and the paths that were read. */
export interface ReadConfig extends ConfigValues {
  readonly paths: readonly string[];
}

/**
 * Reads the contexts, most specific first, as they were between two revisions: several keys that were
 * published together are seen together. What is changed without a revision may be seen in part.
 *
 * @param nodeId the reader's, for overrides
 */
export function readContexts(
  place: ConfigPlace,
  contexts: readonly string[],
  nodeId: number | undefined,
  wait: WaitOptions = {},
): Promise<ReadConfig> {
  const { zookeeper, root } = place;
  return repeated(place, wait, async (call) => {
    const readHeads = async () => {
      const own =
        nodeId === undefined
          ? contexts
          : contextsOfNode(contexts, (await zookeeper.children(root, call)) ?? [], nodeId);
      return Promise.all(
        own.map(async (context) => ({ context, head: await readHead(zookeeper, root, context, call) })),
      );
    };
    const heads = await readHeads();
    const trees = await Promise.all(
      heads.map(({ context }) => readTree(zookeeper, `${root}/${context}`, call)),
    );
    if (JSON.stringify(heads) !== JSON.stringify(await readHeads())) {
      const message = `${zookeeper.description}: ${contexts[0]} changed while it was read`;
      throw new ZooKeeperError(message, 'contended', 'not-applied');
    }
    const layers = heads.map(({ context }, at) => ({ context, tree: trees[at] ?? new Map() }));
    return {
      values: merged(layers.map(({ context, tree }) => ({ context, properties: propertiesOf(tree) }))),
      revisions: Object.fromEntries(heads.map(({ context, head }) => [context, revisionIn(head)])),
      // Also of a context that does not exist yet.
      paths: layers.flatMap(({ context, tree }) =>
        [...new Set(['', ...tree.keys()])].map((path) => `${root}/${context}${path}`),
      ),
    };
  });
}

/** The values that win: those of the first layer that has the key; in the order of the keys. */
export function merged(
  layers: readonly { readonly context: string; readonly properties: ReadonlyMap<string, string> }[],
): ReadonlyMap<string, ConfigValue> {
  const values = new Map<string, ConfigValue>();
  for (const { context, properties } of layers) {
    for (const [key, value] of properties) if (!values.has(key)) values.set(key, { value, context });
  }
  return new Map([...values].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The data of a context's head as one byte a character; undefined for none. */
export const readHead = async (
  zookeeper: Pick<ZooKeeper, 'read'>,
  root: string,
  context: string,
  call: CallOptions,
) => (await zookeeper.read(historyPath(root, context), call))?.data.toString('latin1');

/** A damaged history is no reason to do without the values: it counts as none. */
export function revisionIn(head: string | undefined): number {
  try {
    return head === undefined ? 0 : decodeRevision('', Buffer.from(head, 'latin1')).revision;
  } catch {
    return 0;
  }
}

/** How long what only reads is repeated by default, in milliseconds. */
const READ_TIMEOUT_MS = 10_000;

/** Repeats what only reads while the connection is away. @throws {ZooKeeperError} @throws `signal.reason` */
export function repeated<T>(
  { clock, random }: TimeSources,
  wait: WaitOptions,
  read: (call: CallOptions) => Promise<T>,
): Promise<T> {
  const { timeoutMs = READ_TIMEOUT_MS, signal } = checked(wait);
  const until = clock.monotonic() + timeoutMs;
  const call = () => ({
    signal,
    timeoutMs: Math.max(1, Math.min(CALL_TIMEOUT_MS, until - clock.monotonic())),
  });
  return whileConnectionIsAway({ clock, random, signal, until })(() => read(call()));
}
