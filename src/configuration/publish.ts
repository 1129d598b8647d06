import { timeoutSignal } from '../base/abort.js';
import { backoffMs } from '../base/backoff.js';
import { AcquireTimeoutError, ConfigError } from '../base/errors.js';
import { lock } from '../recipes/lock.js';
import type { LockHandle } from '../recipes/lock-handle.js';
import type { CallOptions, MultiOperation } from '../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { ConfigConflictError } from './config-error.js';
import { type ContextTree, propertiesOf, readTree } from './context-tree.js';
import {
  checkKey,
  checkValue,
  contextPath,
  historyPath,
  lockPath,
  overlap,
  parseNodeRange,
  rangesOf,
  revisionOf,
  revisionPath,
} from './layout.js';
import type { ConfigPlace } from './read-contexts.js';
import { decodeHead, decodeRevision, type Head, type KeyChange, NO_HEAD, type Revision, type RevisionRecord } from './revision.js';
import { checkSize, type Edit, planEdit } from './tree-plan.js';

/** How one publish is made. */
export interface PublishOptions {
  /** Why. @default empty */
  readonly message?: string | undefined;
  /** The revision that has to stand, 0 for none. Without it a publish is repeated on what another one has left. */
  readonly expect?: number | undefined;
  /** How long it may take, in milliseconds. @default 10000 */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A new value, or null to unset the key; with `nodes`, such as `0-3`, the override for these node ids. */
export interface WantedChange {
  readonly key: string;
  readonly nodes?: string | undefined;
  readonly new: string | null;
}

/** A context as it stands: its own properties, and its overrides by the ranges of node ids. */
export interface ContextState {
  readonly revision: number;
  readonly properties: ReadonlyMap<string, string>;
  readonly overrides: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

const DEFAULT_TIMEOUT_MS = 10_000;
/** How many revisions one publish prunes at the most. */
const PRUNED_AT_ONCE = 100;
/** How often a publish is tried before it queues up at the context's lock, and the pauses, in milliseconds. */
const FREE_TRIES = 2;
const PAUSE_MS = { first: 5, max: 100 };

export interface Publication extends ConfigPlace {
  readonly context: string;
  readonly author: string;
  readonly keep: number;
}

interface ReadContext {
  readonly head: Head;
  /** The version of the head's znode; undefined where there is none. */
  readonly version: number | undefined;
  /** The context's own, and its overrides by their ranges. */
  readonly trees: ReadonlyMap<string | undefined, ContextTree>;
  /** The names of the history's znodes. */
  readonly kept: readonly string[];
}

/** A session's requests are answered in their order, so the head is the first to be read: what is published after that fails by its version. */
export async function readContext({ zookeeper, root, context }: Publication, call: CallOptions): Promise<ReadContext> {
  const path = historyPath(root, context);
  const [znode, kept = [], names = [], own] = await Promise.all([
    zookeeper.read(path, call),
    zookeeper.children(path, call),
    zookeeper.children(root, call),
    readTree(zookeeper, contextPath(root, context), call),
  ]);
  const overrides = rangesOf(context, names).map(
    async ({ text }) => [text, await readTree(zookeeper, contextPath(root, context, text), call)] as const,
  );
  const head = znode ? decodeHead(path, znode.data) : NO_HEAD;
  return { head, version: znode?.stat.version, kept, trees: new Map([[undefined, own], ...(await Promise.all(overrides))]) };
}

export function stateOf({ head, trees }: ReadContext): ContextState {
  const all = [...trees].map(([nodes, tree]) => [nodes, propertiesOf(tree)] as const);
  const overrides = all.filter((each): each is [string, ReadonlyMap<string, string>] => each[0] !== undefined && each[1].size > 0);
  return { revision: head.revision, properties: all[0]?.[1] ?? new Map(), overrides: new Map(overrides) };
}

/**
 * Publishes what `plan` makes of the present state, until no other publish comes between.
 *
 * @param plan called again where another publish, or a direct change, was first
 */
export async function publish(
  publication: Publication,
  plan: (state: ContextState, call: CallOptions) => Promise<readonly WantedChange[]>,
  { message = '', expect, timeoutMs = DEFAULT_TIMEOUT_MS, signal }: PublishOptions,
): Promise<Revision | undefined> {
  const { zookeeper, clock, random, context, root } = publication;
  const id = random.hex(8);
  const late = () => new AcquireTimeoutError(`${zookeeper.description}: ${context} could not be published within ${timeoutMs} ms`);
  const limit = timeoutSignal(clock, timeoutMs, late, signal);
  const call = { signal: limit.signal };
  /** The revision that may have been published, and why that is not known. */
  let unknown: { readonly revision: number; readonly error: ZooKeeperError } | undefined;
  let turn: LockHandle | undefined;
  try {
    for (let failures = 0; ; await clock.sleep(backoffMs(PAUSE_MS, failures, random), limit.signal)) {
      let next: number | undefined;
      try {
        if (failures >= FREE_TRIES) turn ??= await lock(zookeeper, lockPath(root, context), { clock, random }).acquire(call);
        const now = await readContext(publication, call);
        const { head } = now;
        if (unknown && head.revision >= unknown.revision) {
          const path = revisionPath(root, context, unknown.revision);
          const stands = await zookeeper.read(path, call);
          if (!stands) throw unknown.error;
          const { id: standing, ...revision } = decodeRevision(path, stands.data);
          if (standing === id) return revision;
          unknown = undefined;
        }
        // Goes to the leader. What was read may be older than the expected revision, or in part newer than its own head.
        const confirm = async () => {
          const check = { type: 'check', path: historyPath(root, context), version: now.version ?? 0 } as const;
          if (now.version !== undefined) await zookeeper.multi([check], call);
        };
        if (expect !== undefined && expect > head.revision) await confirm();
        if (expect !== undefined && expect !== head.revision) throw new ConfigConflictError(context, expect, head);
        const changes = changesOf(stateOf(now), await plan(stateOf(now), call));
        if (changes.length === 0 && !unknown) {
          await confirm();
          return undefined;
        }
        next = head.revision + 1;
        const at = new Date(clock.now()).toISOString();
        const record = { revision: next, base: head.revision, author: publication.author, at, message, changes, id };
        const operations = await operationsOf(publication, now, record, call);
        checkSize(operations);
        await zookeeper.multi(operations, call);
        const { id: _, ...revision } = record;
        return revision;
      } catch (error) {
        failures += 1;
        if (!(error instanceof ZooKeeperError) || error === unknown?.error) throw error;
        // The same id on the same head: of all attempts one at the most is carried out.
        if (next !== undefined && error.outcome === 'unknown') unknown = { revision: next, error };
        const isOther = isFault(error, 'bad-version', 'node-exists', 'no-node', 'not-empty');
        if (limit.signal.aborted || !(error.transient || isOther)) throw error;
      }
    }
  } catch (error) {
    if (unknown) throw notTold(publication, unknown.revision, unknown.error);
    limit.signal.throwIfAborted();
    throw error;
  } finally {
    limit.release();
    // Not waited for: it may take longer than the caller's time. It only spares others their tries in vain.
    void turn?.release();
  }
}

function notTold({ context }: Publication, revision: number, cause: ZooKeeperError): ZooKeeperError {
  const message = `whether revision ${revision} of ${context} was published cannot be told: the reply was lost`;
  return new ZooKeeperError(message, { fault: cause.fault, outcome: 'unknown', path: cause.path, cause });
}

/** What differs from what stands. @throws {ConfigError} */
function changesOf(state: ContextState, wanted: readonly WantedChange[]): readonly KeyChange[] {
  const changes = new Map<string, KeyChange>();
  for (const { key, nodes, new: value } of wanted) {
    checkKey(key);
    if (value !== null) checkValue(key, value);
    const range = nodes === undefined ? undefined : parseNodeRange(nodes, 'nodes').text;
    const old = (range === undefined ? state.properties : state.overrides.get(range))?.get(key) ?? null;
    if (old !== value) changes.set(`${range ?? ''}/${key}`, { key, ...(range !== undefined && { nodes: range }), old, new: value });
  }
  checkRanges(state, [...changes.values()]);
  return [...changes.values()];
}

/** @throws {ConfigError} where a node id would be in two ranges */
function checkRanges({ overrides }: ContextState, changes: readonly KeyChange[]): void {
  const added = changes.flatMap(({ nodes, new: value }) => (nodes !== undefined && value !== null ? [nodes] : []));
  const emptied = (text: string) =>
    [...(overrides.get(text)?.keys() ?? [])].every((key) =>
      changes.some((each) => each.nodes === text && each.key === key && each.new === null),
    );
  const standing = [...overrides.keys()].filter((text) => added.includes(text) || !emptied(text));
  const all = [...new Set([...standing, ...added])].map((text) => parseNodeRange(text, 'nodes'));
  for (const text of added) {
    const own = parseNodeRange(text, 'nodes');
    const other = all.find((each) => each.text !== own.text && overlap(each, own));
    if (other) throw new ConfigError('nodes', text, `a range without the node ids of ${other.text}, which has overrides already`);
  }
}

/** One transaction: the keys, the record, the head, and what is pruned. Makes the parents that are missing before it. */
async function operationsOf(
  { zookeeper, root, context, keep }: Publication,
  { trees, kept, version }: ReadContext,
  record: RevisionRecord,
  call: CallOptions,
): Promise<readonly MultiOperation[]> {
  const path = historyPath(root, context);
  if (version === undefined) await zookeeper.ensurePath(path.slice(0, path.lastIndexOf('/')), call);
  const changed = [...new Set(record.changes.map(({ nodes }) => nodes))].flatMap((nodes) => {
    const own = record.changes.filter((change) => change.nodes === nodes);
    const edit: Edit = new Map(own.map(({ key, new: value }) => [key, value ?? undefined]));
    return planEdit(contextPath(root, context, nodes), trees.get(nodes) ?? new Map(), edit, nodes === undefined);
  });
  const old = kept.filter((name) => (revisionOf(name) ?? record.revision) <= record.revision - keep).sort();
  const { revision, id, author, at } = record;
  const head = { path, data: JSON.stringify({ revision, id, author, at }) };
  return [
    version === undefined ? { type: 'create', mode: 'persistent', ...head } : { type: 'set', version, ...head },
    { type: 'create', path: revisionPath(root, context, revision), data: JSON.stringify(record), mode: 'persistent' },
    ...changed,
    ...old.slice(0, PRUNED_AT_ONCE).map((name) => ({ type: 'remove', path: `${path}/${name}` }) as const),
  ];
}
