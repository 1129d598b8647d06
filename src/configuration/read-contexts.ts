import type { Clock, RandomSource } from '../base/clock.js';
import { retry, STORE_BACKOFF } from '../lease/session/retry.js';
import type { CallOptions, ZooKeeper } from '../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { propertiesOf, readTree } from './context-tree.js';
import { contextPath, historyPath, rangesOf } from './layout.js';
import { decodeHead } from './revision.js';

/** Where configuration is read and written. */
export interface ConfigPlace {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly root: string;
}

/** A property as a reader has it. */
export interface ConfigValue {
  readonly value: string;
  /** The context that it comes from, such as `shop,prod`, or `shop@nodes=0-3` for an override. */
  readonly context: string;
}

/** A configuration as it stood at one time. */
export interface ConfigValues {
  readonly values: ReadonlyMap<string, ConfigValue>;
  /** The revision of each context, the most specific context first; 0 for one without. */
  readonly revisions: Readonly<Record<string, number>>;
}

/** The same, and the paths that were read. */
export interface ReadConfig extends ConfigValues {
  readonly paths: readonly string[];
}

/** A layer of a configuration: a context, or its overrides for some node ids. */
export interface Layer {
  readonly context: string;
  readonly properties: ReadonlyMap<string, string>;
}

/** The values that win: those of the first layer that has the key; in the order of the keys. */
export function merged(layers: readonly Layer[]): ReadonlyMap<string, ConfigValue> {
  const values = new Map<string, ConfigValue>();
  for (const { context, properties } of layers) {
    for (const [key, value] of properties) if (!values.has(key)) values.set(key, { value, context });
  }
  return new Map([...values].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Reads the contexts, most specific first, as they stood between two revisions: several keys that were published together are seen together. What is
 * changed without a revision may be seen in part.
 *
 * @param nodeId the reader's, for overrides
 */
export async function readContexts(
  place: ConfigPlace,
  contexts: readonly string[],
  nodeId: number | undefined,
  wait: ReadWait = {},
): Promise<ReadConfig> {
  const { zookeeper, root } = place;
  return repeated(place, wait, async (call) => {
    const { read, heads } = await readWhole(place, contexts, call, async () => {
      const names = nodeId === undefined ? [] : ((await zookeeper.children(root, call)) ?? []);
      const layers = contexts.flatMap((context) => {
        const range = rangesOf(context, names).find(({ from, to }) => nodeId !== undefined && from <= nodeId && nodeId <= to);
        return range ? [contextPath(root, context, range.text), contextPath(root, context)] : [contextPath(root, context)];
      });
      return Promise.all(layers.map(async (path) => ({ path, tree: await readTree(zookeeper, path, call) })));
    });
    return {
      values: merged(read.map(({ path, tree }) => ({ context: path.slice(root.length + 1), properties: propertiesOf(tree) }))),
      revisions: Object.fromEntries(contexts.map((context, at) => [context, revisionIn(heads[at])])),
      // Also of a context that does not exist yet.
      paths: read.flatMap(({ path, tree }) => [...new Set([path, ...[...tree.keys()].map((below) => path + below)])]),
    };
  });
}

/** How often contexts are read that change meanwhile, before a pause. */
const MAX_TRIES = 20;

/** Reads until no revision comes between. Resolves with the heads' data, too. @throws {ZooKeeperError} `timeout` */
export async function readWhole<T>(place: ConfigPlace, contexts: readonly string[], call: CallOptions, reading: () => Promise<T>) {
  for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
    const before = await readHeads(place, contexts, call);
    const read = await reading();
    const heads = await readHeads(place, contexts, call);
    if (heads.every((head, at) => head === before[at])) return { read, heads };
  }
  const message = `${place.zookeeper.description}: ${contexts[0]} was published anew during each of ${MAX_TRIES} reads`;
  throw new ZooKeeperError(message, { fault: 'timeout', outcome: 'not-applied' });
}

const readHeads = ({ zookeeper, root }: ConfigPlace, contexts: readonly string[], call: CallOptions) =>
  Promise.all(contexts.map(async (context) => (await zookeeper.read(historyPath(root, context), call))?.data.toString('latin1')));

/** A damaged history is no reason to do without the values: it counts as none. */
function revisionIn(head: string | undefined): number {
  try {
    return head === undefined ? 0 : decodeHead('', Buffer.from(head, 'latin1')).revision;
  } catch {
    return 0;
  }
}

/** How long to wait for what is read. */
export interface ReadWait {
  /** How long it is repeated while the connection is away, in milliseconds. @default 10000 */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Repeats what only reads while the connection is away. @throws {ZooKeeperError} @throws `signal.reason` */
export function repeated<T>(
  { clock, random }: Pick<ConfigPlace, 'clock' | 'random'>,
  { timeoutMs = READ_TIMEOUT_MS, signal }: ReadWait,
  read: (call: CallOptions) => Promise<T>,
): Promise<T> {
  const until = clock.monotonic() + timeoutMs;
  const call = () => ({ signal, timeoutMs: Math.max(1, Math.min(CALL_TIMEOUT_MS, until - clock.monotonic())) });
  return retry(() => read(call()), {
    ...{ clock, random, signal, until, baseMs: STORE_BACKOFF.first, capMs: STORE_BACKOFF.max },
    shouldRetry: (error) => error instanceof ZooKeeperError && error.transient,
  });
}

const READ_TIMEOUT_MS = 10_000;
const CALL_TIMEOUT_MS = 5_000;
