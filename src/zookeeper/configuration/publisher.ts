import { timeoutSignal } from '../../core/base/abort.js';
import {
  checkArguments,
  checked,
  FUNCTION,
  kind,
  listOf,
  maybe,
  OBJECT,
  TEXT,
  whole,
} from '../../core/base/arguments.js';
import { ConfigError, NodeLeaseError, WaitTimeoutError } from '../../core/base/errors.js';
import { LOST_RACE, retrying } from '../../core/base/retry.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { busy } from '../client/retry.js';
import {
  type CallOptions,
  ignoring,
  isFault,
  isUnknown,
  type MultiOperation,
  OVERTAKEN,
  type TimeOptions,
  TRANSIENT,
  type ZooKeeper,
  ZooKeeperError,
} from '../client/zookeeper.js';
import { lock } from '../recipes/lock.js';
import type { LockHandle } from '../recipes/lock-handle.js';
import { type ContextTree, checkSize, planEdit, propertiesOf, readTree } from './context-tree.js';
import {
  between,
  decodeRevision,
  type KeyChange,
  NO_REVISION,
  type Revision,
  readHistory,
} from './history.js';
import {
  type ConfigName,
  checkProperty,
  contextsOf,
  historyPath,
  lockPath,
  overridesOf,
  revisionOf,
  revisionPath,
  rootOf,
} from './layout.js';
import { type ConfigPlace, repeated } from './read-contexts.js';

export interface PublisherOptions extends ConfigName, TimeOptions {
  /** The node ids whose overrides are meant, such as `0-3`. @default the values for all nodes */
  readonly nodes?: string | undefined;
  /** Who publishes, as the history names it. */
  readonly author: string;
  /** How many revisions the history keeps, 10 to 10000. @default 100 */
  readonly keep?: number | undefined;
}

/** How one publish is made. */
export interface PublishOptions {
  /** Why. @default empty */
  readonly message?: string | undefined;
  /**
   * The revision that must be the current one, 0 for none. Without it a publish is repeated on the result of
   * another one.
   */
  readonly expect?: number | undefined;
  /** How long it may take, in milliseconds. @default 10000 */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A new value, or null to unset the key. */
export type WantedChange = Pick<KeyChange, 'key' | 'new'>;

/** The present state of a context: its own properties. */
export interface ContextState {
  readonly revision: number;
  readonly properties: ReadonlyMap<string, string>;
}

/** The same, and what a publish needs. */
interface ReadContext extends ContextState {
  readonly head: Revision;
  /** The version of the head's znode; undefined where there is none. */
  readonly version: number | undefined;
  readonly tree: ContextTree;
  /** The names of the history's znodes. */
  readonly kept: readonly string[];
}

/** The current revision is not the expected one: another publisher has published since. */
export class ConfigConflictError extends NodeLeaseError {
  readonly code = 'CONFIG_CONFLICT';
  /** The current revision; 0 for none. */
  readonly revision: number;
  /** Who published it; empty where there is none. */
  readonly author: string;

  constructor(
    readonly context: string,
    readonly expected: number,
    { revision, author, at }: Revision,
  ) {
    const current = revision === 0 ? 'there is none' : `${author} published revision ${revision} at ${at}`;
    super(`${context}: expected revision ${expected}, but ${current}`);
    this.revision = revision;
    this.author = author;
  }
}

type Plan = (state: ContextState, call: CallOptions) => Promise<readonly WantedChange[]>;

const DEFAULT_KEEP = 100;
const DEFAULT_TIMEOUT_MS = 10_000;
/** How many revisions one publish prunes at the most. */
const PRUNED_AT_ONCE = 100;
/**
 * How often a publish is tried before it queues up at the context's lock, without which others may come first
 * for a minute.
 */
const FREE_TRIES = 2;

const WANTED = kind(
  'an array of changes, such as { key, new }, or a function that returns one',
  (value) => FUNCTION.is(value) || listOf(OBJECT).is(value),
);

/** @throws {ConfigError} */
export const configPublisher = (zookeeper: ZooKeeper, options: PublisherOptions) =>
  new ConfigPublisher(zookeeper, options);

/**
 * Publishes into the most specific context of a configuration, or into its overrides for some nodes. What was
 * changed without a revision is part of the present state.
 *
 * All calls throw {@link ConfigError} for bad input, `ZooKeeperError` for no connection in time, denied
 * access and a closed client, {@link ConfigHistoryError} for damage, and `signal.reason`.
 */
export class ConfigPublisher {
  /** The name of the context, such as `shop,prod`, or `shop,prod@nodes=0-3`. */
  readonly context: string;
  readonly #place: ConfigPlace;
  readonly #author: string;
  readonly #keep: number;

  constructor(zookeeper: ZooKeeper, options: PublisherOptions) {
    const {
      nodes,
      author,
      keep = DEFAULT_KEEP,
      clock = systemClock,
      random = systemRandom,
    } = checked(options, {
      author: TEXT,
      keep: maybe(kind('a number of revisions from 10 to 10000', whole(10, 10_000).is)),
    });
    checkArguments({ zookeeper });
    const [context] = contextsOf(options);
    this.context = nodes === undefined ? context : overridesOf(context, nodes, 'nodes');
    this.#place = { zookeeper, clock, random, root: rootOf(options) };
    this.#author = author;
    this.#keep = keep;
  }

  /**
   * Where another publish comes between, a part may be newer than the revision: a publish that expects that
   * revision then conflicts.
   */
  async read(signal?: AbortSignal): Promise<ContextState> {
    return repeated(this.#place, { signal }, (call) => this.#read(call));
  }

  /**
   * Changes the keys together, in one transaction with the revision's record. Resolves to undefined where all
   * of them are so already.
   *
   * @param wanted the changes, or what makes them of the present state: called again where another publish
   * was first
   * @throws {ConfigConflictError} `expect` is not the present revision @throws {WaitTimeoutError} others
   * were first all the time
   * @throws {ZooKeeperError} with the outcome `unknown` where the reply was lost, and it could not be found
   * out what became of it in time
   */
  async publish(
    wanted: readonly WantedChange[] | ((state: ContextState) => readonly WantedChange[]),
    options: PublishOptions = {},
  ): Promise<Revision | undefined> {
    checkArguments({ wanted }, { wanted: WANTED });
    return this.#publish(async (state) => (typeof wanted === 'function' ? wanted(state) : wanted), options);
  }

  /**
   * Publishes what undoes all revisions after this one; keys that they have not changed stay as they are.
   * @throws as {@link publish} and {@link diff}
   */
  async rollback(revision: number, options: PublishOptions = {}): Promise<Revision | undefined> {
    checkArguments({ revision, options }, { revision: whole(0) });
    const undo: Plan = async (_, call) => {
      const history = await readHistory(this.#place, this.context, call);
      return between(history, history[0]?.revision ?? 0, revision);
    };
    return this.#publish(undo, { message: `rollback to revision ${revision}`, ...options });
  }

  /** The revisions that are kept, the newest first. */
  async history(signal?: AbortSignal): Promise<readonly Revision[]> {
    return repeated(this.#place, { signal }, (call) => readHistory(this.#place, this.context, call));
  }

  /**
   * The published changes from one revision to another.
   * @param to by default the newest
   * @throws {ConfigHistoryError} `no-such-revision`
   */
  async diff(from: number, to?: number, signal?: AbortSignal): Promise<readonly KeyChange[]> {
    checkArguments({ from, to }, { from: whole(0), to: maybe(whole(0)) });
    return between(await this.history(signal), from, to);
  }

  /**
   * A session's requests are answered in their order, so the head is the first to be read: what is published
   * after that fails by its version.
   */
  async #read(call: CallOptions): Promise<ReadContext> {
    const { zookeeper, root } = this.#place;
    const path = historyPath(root, this.context);
    const [znode, kept = [], tree] = await Promise.all([
      zookeeper.read(path, call),
      zookeeper.children(path, call),
      readTree(zookeeper, `${root}/${this.context}`, call),
    ]);
    const head = znode ? decodeRevision(path, znode.data) : NO_REVISION;
    return {
      revision: head.revision,
      properties: propertiesOf(tree),
      head,
      version: znode?.stat.version,
      tree,
      kept,
    };
  }

  /**
   * Publishes what `plan` makes of the present state; again where another publish, or a direct change, was
   * first.
   */
  async #publish(plan: Plan, options: PublishOptions) {
    const kinds = { message: maybe(TEXT), expect: maybe(whole(0)) };
    const { message = '', expect, timeoutMs = DEFAULT_TIMEOUT_MS, signal } = checked(options, kinds);
    const { zookeeper, clock, random, root } = this.#place;
    const { context } = this;
    const id = random.hex(8);
    const late = () =>
      new WaitTimeoutError(
        `${zookeeper.description}: ${context} could not be published within ${timeoutMs} ms`,
      );
    const limit = timeoutSignal(clock, timeoutMs, late, signal);
    const retry = retrying({
      ...{ clock, random, signal: limit.signal, backoff: LOST_RACE },
      mayPass: (error) => isFault(error, ...TRANSIENT, ...OVERTAKEN),
    });
    /** The revision that may have been published, and why that is not known. */
    let unknown: { readonly revision: number; readonly error: ZooKeeperError } | undefined;
    let turn: LockHandle | undefined;
    try {
      return await retry(async (call, number) => {
        if (number > FREE_TRIES)
          turn ??= await lock(zookeeper, lockPath(root, context), { clock, random }).acquire(call);
        const now = await this.#read(call);
        if (unknown && now.revision >= unknown.revision) {
          const path = revisionPath(root, context, unknown.revision);
          const found = await zookeeper.read(path, call);
          if (!found) throw new Error(`${path} is gone`);
          const revision = decodeRevision(path, found.data);
          if (revision.id === id) return revision;
          unknown = undefined;
        }
        if (expect !== undefined && expect < now.revision)
          throw new ConfigConflictError(context, expect, now.head);
        const isExpected = expect === undefined || expect === now.revision;
        const changes = isExpected ? changesOf(now, await plan(now, call)) : [];
        if (!isExpected || (changes.length === 0 && !unknown)) {
          // Goes to the leader: what was read may be older than the expected revision, or in part newer than
          // its own head.
          const path = historyPath(root, context);
          const current = zookeeper.multi([{ type: 'check', path, version: now.version ?? -1 }], call);
          // Where none was read there must be none.
          await (now.version === undefined
            ? current.then(() => Promise.reject(busy(path)), ignoring('no-node'))
            : current);
          if (!isExpected) throw new ConfigConflictError(context, expect, now.head);
          return undefined;
        }
        const revision = now.revision + 1;
        const at = new Date(clock.now()).toISOString();
        const record = { revision, base: now.revision, at, author: this.#author, message, changes, id };
        const operations = this.#operationsOf(now, record);
        checkSize(operations);
        if (now.version === undefined) await zookeeper.ensurePath(historyPath(root), call);
        await zookeeper.multi(operations, call).catch((error: unknown) => {
          // The same id on the same head: of all attempts one at the most is carried out.
          if (isUnknown(error)) unknown = { revision, error };
          throw error;
        });
        return record;
      });
    } catch (error) {
      if (unknown) {
        const { fault, path } = unknown.error;
        const message = `whether revision ${unknown.revision} of ${context} was published is unknown: the reply was lost`;
        throw new ZooKeeperError(message, fault, 'unknown', path, unknown.error);
      }
      limit.signal.throwIfAborted();
      throw error;
    } finally {
      limit.release();
      // Not waited for: it may take longer than the caller's time. It only spares others their tries in vain.
      void turn?.release();
    }
  }

  /** One transaction: the head, the record, the keys, and what is pruned. */
  #operationsOf({ tree, kept, version }: ReadContext, record: Revision): readonly MultiOperation[] {
    const { root } = this.#place;
    const { revision, changes } = record;
    const path = historyPath(root, this.context);
    const head = { path, data: JSON.stringify({ ...record, changes: [] }) };
    const old = kept.filter((name) => (revisionOf(name) ?? revision) <= revision - this.#keep).sort();
    return [
      version === undefined
        ? { type: 'create', mode: 'persistent', ...head }
        : { type: 'set', version, ...head },
      {
        type: 'create',
        path: revisionPath(root, this.context, revision),
        data: JSON.stringify(record),
        mode: 'persistent',
      },
      ...planEdit(
        `${root}/${this.context}`,
        tree,
        new Map(changes.map(({ key, new: value }) => [key, value])),
      ),
      ...old.slice(0, PRUNED_AT_ONCE).map((name) => ({ type: 'remove', path: `${path}/${name}` }) as const),
    ];
  }
}

/** What differs from the present state. @throws {ConfigError} */
function changesOf({ properties }: ContextState, wanted: readonly WantedChange[]): readonly KeyChange[] {
  const changes = new Map<string, KeyChange>();
  for (const { key, new: value } of wanted) {
    checkProperty(key, value);
    const old = properties.get(key) ?? null;
    if (old !== value) changes.set(key, { key, old, new: value });
    else changes.delete(key);
  }
  return [...changes.values()];
}
