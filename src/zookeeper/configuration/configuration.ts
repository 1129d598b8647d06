import { EventEmitter, on } from 'node:events';
import { existsSync } from 'node:fs';
import { WakeUp, withTimeout } from '../../core/base/abort.js';
import {
  checkArguments,
  checked,
  FLAG,
  kind,
  maybe,
  NAME,
  OBJECT,
  TEXT,
  whole,
} from '../../core/base/arguments.js';
import { explain } from '../../core/base/errors.js';
import { Listeners } from '../../core/base/listeners.js';
import { backoffMs, IN_BACKGROUND } from '../../core/base/retry.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import {
  CALL_TIMEOUT_MS,
  closedError,
  type EventOptions,
  isFault,
  type TimeOptions,
  type Watch,
  type ZooKeeper,
  ZooKeeperError,
} from '../client/zookeeper.js';
import { SeenReporter } from './fleet.js';
import type { Revisions } from './fleet-report.js';
import { type ConfigName, contextsOf, contextsOfNode, historyPath, rootOf } from './layout.js';
import { type ConfigPlace, type ConfigValue, type ReadConfig, readContexts } from './read-contexts.js';
import { readSnapshot, type Snapshot, writeSnapshot } from './snapshot-file.js';
import { type StandardSchema, validated } from './standard-schema.js';

export interface ConfigurationOptions extends ConfigName, TimeOptions, EventOptions<ConfigurationEvent> {
  /** The reader's node id: its overrides count, and others can see which revisions it runs. @default none */
  readonly nodeId?: number | undefined;
  /**
   * Whether it reports the revisions as soon as it has read them. Otherwise the caller does, with a
   * `SeenReporter`.
   * @default true
   */
  readonly reports?: boolean | undefined;
  /**
   * A file that keeps the configuration for when ZooKeeper is away at the start. Only its owner may read it.
   * @default none
   */
  readonly snapshot?: string | undefined;
  /** How long to wait for ZooKeeper at the start, in milliseconds. @default 5000 */
  readonly timeoutMs?: number | undefined;
  /** Gives up the start. */
  readonly signal?: AbortSignal | undefined;
}

/** Problems and their end, for logs. */
export type ConfigurationEvent =
  /** ZooKeeper is away: the configuration is that of the file, until ZooKeeper is back. */
  | {
      readonly type: 'snapshot-used';
      readonly at: string;
      readonly revisions: Revisions;
      readonly problem: string;
    }
  | { readonly type: 'snapshot-failed'; readonly problem: string }
  /** The present configuration stays. */
  | { readonly type: 'read-failed'; readonly problem: string }
  | { readonly type: 'read-again' };

/** A change as a reader sees it. */
export interface ConfigurationChange {
  /** The keys that have another value now, undefined for not set. Empty where only a revision is new. */
  readonly changes: readonly {
    readonly key: string;
    readonly old: string | undefined;
    readonly new: string | undefined;
  }[];
  readonly revisions: Revisions;
}

/** How long to wait until watches are set, in milliseconds. */
const WATCH_TIMEOUT_MS = 2_000;
/** How many paths are begun to be watched in one turn of the event loop. */
const WATCHES_AT_ONCE = 64;

/**
 * Resolves once the configuration has been read, or else its snapshot. `zookeeper` stays the caller's to
 * close.
 *
 * @throws {ConfigError} @throws {ZooKeeperError} where there is neither, with what is wrong with both in its
 * message @throws `signal.reason`
 */
export async function openConfiguration(
  zookeeper: ZooKeeper,
  options: ConfigurationOptions,
): Promise<Configuration> {
  const {
    clock = systemClock,
    random = systemRandom,
    timeoutMs = CALL_TIMEOUT_MS,
    signal,
    nodeId,
    snapshot,
  } = checked(options, { reports: maybe(FLAG), snapshot: maybe(NAME), nodeId: maybe(whole(0)) });
  checkArguments({ zookeeper });
  const place: ConfigPlace = { zookeeper, clock, random, root: rootOf(options) };
  const contexts = contextsOf(options);
  try {
    await zookeeper.whenConnected({ timeoutMs, signal });
    return new Configuration(
      place,
      contexts,
      options,
      await readContexts(place, contexts, nodeId, { timeoutMs, signal }),
    );
  } catch (error) {
    signal?.throwIfAborted();
    if (snapshot === undefined || !(error instanceof ZooKeeperError) || !error.transient) throw error;
    const owners = [ownerOf(place, contexts), ownerOf(place, contexts, nodeId)] as const;
    const start = await readSnapshot(snapshot, owners).catch((cause: unknown) => {
      const { fault, outcome, path } = error;
      throw new ZooKeeperError(
        `${explain(error)}, and there is no snapshot: ${explain(cause)}`,
        fault,
        outcome,
        path,
        error,
      );
    });
    options.onEvent?.({
      type: 'snapshot-used',
      at: start.at,
      revisions: start.revisions,
      problem: explain(error),
    });
    return new Configuration(place, contexts, options, start);
  }
}

/** Whose configuration a snapshot is: with overrides that of one node. */
const ownerOf = ({ root }: ConfigPlace, contexts: readonly string[], nodeId?: number) =>
  `${root}/${contexts[0]}${nodeId === undefined ? '' : ` for node ${nodeId}`}`;

/**
 * A configuration that follows ZooKeeper. Keys that were published together change together. Changes in quick
 * succession may be reported as one; the last report has the newest values. While ZooKeeper is away the
 * configuration stays.
 */
export class Configuration implements AsyncIterable<ConfigurationChange>, AsyncDisposable {
  readonly #listeners = new Listeners<ConfigurationChange>();
  readonly #closing = new AbortController();
  readonly #watches = new Map<string, readonly Watch[]>();
  readonly #seen: SeenReporter | undefined;
  readonly #ended: Promise<void>;
  #now: ReadConfig | Snapshot;
  /** Of the follower: what was read may be out of date. */
  readonly #wakeUp = new WakeUp();

  /** For {@link openConfiguration}. */
  constructor(
    private readonly place: ConfigPlace,
    private readonly contexts: readonly [string, ...string[]],
    private readonly options: ConfigurationOptions,
    start: ReadConfig | Snapshot,
  ) {
    this.#now = start;
    const { nodeId, reports = true } = options;
    if (nodeId !== undefined && reports) this.#seen = new SeenReporter(place, contexts[0], nodeId);
    this.#seen?.report(start.revisions);
    this.#ended = this.#follow('paths' in start ? start : undefined);
  }

  /** Where it comes from; `at`: when the snapshot was made, ISO 8601. */
  get source(): { readonly from: 'zookeeper' } | { readonly from: 'snapshot'; readonly at: string } {
    return 'paths' in this.#now ? { from: 'zookeeper' } : { from: 'snapshot', at: this.#now.at };
  }

  /** The present values, by their keys. */
  get values(): ReadonlyMap<string, ConfigValue> {
    return this.#now.values;
  }

  /** By context, the most specific one first. */
  get revisions(): Revisions {
    return this.#now.revisions;
  }

  /** The value of a key; undefined where it has none. */
  get(key: string): string | undefined;
  /**
   * What a schema of zod, valibot and others makes of the values, an object with the keys as they are.
   *
   * @param below only the keys below this one, without it: `db` for `db.host` as `host`
   * @throws {InvalidConfigurationError}
   */
  get<Output>(schema: StandardSchema<Output>, below?: string): Output;
  get<Output>(wanted: string | StandardSchema<Output>, below?: string): Output | string | undefined {
    if (typeof wanted === 'string') return this.values.get(wanted)?.value;
    const schema = kind('a key, or a schema such as z.object() makes', (value) =>
      OBJECT.is(Object(value)['~standard']),
    );
    checkArguments({ schema: wanted, below }, { schema, below: maybe(TEXT) });
    const prefix = below === undefined ? '' : `${below}.`;
    const own = [...this.values].filter(([key]) => key.startsWith(prefix));
    return validated(
      wanted,
      Object.fromEntries(own.map(([key, { value }]) => [key.slice(prefix.length), value])),
      prefix,
    );
  }

  /** Calls `listener` after every change, until the returned function is called. Listeners must not throw. */
  onChange(listener: (change: ConfigurationChange) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Every change, one after the other, until it is closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ConfigurationChange> {
    const { signal } = this.#closing;
    const changes = new EventEmitter();
    const forget = this.onChange((change) => changes.emit('change', change));
    try {
      if (!signal.aborted) for await (const [change] of on(changes, 'change', { signal })) yield change;
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      forget();
    }
  }

  /** Ends it, and every iteration. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(closedError('the configuration'));
    await this.#ended;
    await this.#seen?.close();
    this.#listeners.clear();
  }

  /** As {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Reads again after every change that a watch reports. Never rejects. */
  async #follow(start: ReadConfig | undefined) {
    const { clock, random } = this.place;
    const { signal } = this.#closing;
    const { nodeId, onEvent } = this.options;
    let read = start;
    for (let failures = 0; !signal.aborted; read = undefined) {
      try {
        read ??= await readContexts(this.place, this.contexts, nodeId, { signal });
        this.#checkAge(read);
        await this.#adopt(read);
        if (failures > 0) onEvent?.({ type: 'read-again' });
        failures = 0;
        await this.#watch(read);
        await this.#wakeUp.wait(undefined, signal);
      } catch (error) {
        if (signal.aborted || isFault(error, 'closed')) break;
        failures += 1;
        if (failures === 1) onEvent?.({ type: 'read-failed', problem: explain(error) });
        await clock.sleep(backoffMs(IN_BACKGROUND, failures, random), signal).catch(() => undefined);
      }
    }
    for (const watch of [...this.#watches.values()].flat()) watch.close();
  }

  /**
   * What was read from ZooKeeper never goes back: a server may lag behind, or the tree be gone.
   * @throws {Error} where it would
   */
  #checkAge({ revisions }: ReadConfig) {
    if (this.source.from === 'snapshot') return;
    for (const [context, seen] of Object.entries(this.revisions)) {
      const current = revisions[context] ?? seen;
      if (current < seen)
        throw new Error(`${context} is at revision ${current}, where revision ${seen} was seen before`);
    }
  }

  async #adopt(read: ReadConfig) {
    const before = this.#now;
    const isFirst = this.#watches.size === 0;
    this.#now = read;
    const keys = [...new Set([...before.values.keys(), ...read.values.keys()])].sort();
    const both = keys.map((key) => ({
      key,
      old: before.values.get(key)?.value,
      new: read.values.get(key)?.value,
    }));
    const changes = both.filter((each) => each.old !== each.new);
    const isNew = changes.length > 0 || JSON.stringify(read.revisions) !== JSON.stringify(before.revisions);
    if (isNew || isFirst) await this.#keep(read);
    if (!isNew) return;
    this.#seen?.report(read.revisions);
    this.#listeners.notify({ changes, revisions: read.revisions });
  }

  async #keep({ values, revisions }: ReadConfig) {
    const { snapshot, onEvent, nodeId } = this.options;
    // A tree that has been lost must not take the snapshot with it.
    const isNothing = values.size === 0 && Object.values(revisions).every((revision) => revision === 0);
    if (snapshot === undefined || (isNothing && existsSync(snapshot))) return;
    const at = new Date(this.place.clock.now()).toISOString();
    // Node ids change from one start to the next: without overrides, the snapshot is of use to every node.
    const hasOverrides = [...values.values()].some(({ context }) => !this.contexts.includes(context));
    const of = ownerOf(this.place, this.contexts, hasOverrides ? nodeId : undefined);
    const written = writeSnapshot(snapshot, { of, at, revisions, values }, this.place.random);
    await written.catch((error: unknown) => onEvent?.({ type: 'snapshot-failed', problem: explain(error) }));
  }

  /**
   * Watches what was read, and nothing else. Resolves once all watches are set, or after a while.
   * @throws where it is closed before
   */
  async #watch({ paths, revisions }: ReadConfig) {
    const { zookeeper, root } = this.place;
    const { nodeId } = this.options;
    const onChange = this.#wakeUp.wake;
    const onContexts = (names: readonly string[] = []) => {
      const own = contextsOfNode(this.contexts, names, nodeId ?? 0);
      if (own.toSorted().join() !== Object.keys(this.revisions).sort().join()) onChange();
    };
    const heads = new Set(Object.keys(revisions).map((context) => historyPath(root, context)));
    const watch = (path: string) => {
      if (path === root) return [zookeeper.watchChildren(root, onContexts)];
      const data = zookeeper.watchData(path, onChange);
      return heads.has(path) ? [data] : [data, zookeeper.watchChildren(path, onChange)];
    };
    const wanted = new Set([...paths, ...heads, ...(nodeId === undefined ? [] : [root])]);
    for (const [path, watches] of this.#watches) {
      if (wanted.has(path)) continue;
      for (const each of watches) each.close();
      this.#watches.delete(path);
    }
    const added = [...wanted].filter((path) => !this.#watches.has(path));
    for (const [at, path] of added.entries()) {
      // Between two slices the loop does other things, such as renewing a lease.
      if (at > 0 && at % WATCHES_AT_ONCE === 0) await this.place.clock.sleep(0, this.#closing.signal);
      this.#watches.set(path, watch(path));
    }
    const first = added.flatMap((path) => (this.#watches.get(path) ?? []).map((watch) => watch.first));
    // A refused watch is never set, and must not delay the others.
    await withTimeout(this.place.clock, WATCH_TIMEOUT_MS, Promise.all(first), this.#closing.signal);
  }
}
