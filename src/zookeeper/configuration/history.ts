import { concurrentCalls } from '../client/call-limits.js';
import type { CallOptions, ZnodeReader } from '../client/zookeeper.js';
import { ConfigHistoryError } from './config-error.js';
import { historyPath, revisionOf } from './layout.js';

/** One change of a key; null: not set. */
export interface KeyChange {
  readonly key: string;
  readonly old: string | null;
  readonly new: string | null;
}

/** What was published at once. */
export interface Revision {
  /** 1 for the first of a context, and one more for each further one; 0 for none. */
  readonly revision: number;
  /** The revision that it was made of. */
  readonly base: number;
  /** By the publisher's clock, ISO 8601. */
  readonly at: string;
  readonly author: string;
  readonly message: string;
  readonly changes: readonly KeyChange[];
  /** Distinguishes two publishers of the same revision. */
  readonly id: string;
}

export const NO_REVISION: Revision = {
  revision: 0,
  base: 0,
  at: '',
  author: '',
  message: '',
  changes: [],
  id: '',
};

/**
 * What a znode of the history says; the head says it without the changes.
 * @throws {ConfigHistoryError} `damaged`
 */
export function decodeRevision(path: string, data: Buffer): Revision {
  const isText = (value: unknown) => value === null || typeof value === 'string';
  const isChange = (change: KeyChange) =>
    typeof change.key === 'string' && isText(change.old) && isText(change.new);
  try {
    const { revision, base, at, author, message, changes, id }: Revision = JSON.parse(data.toString('utf8'));
    const isRevision =
      [revision, base].every(Number.isSafeInteger) &&
      [at, author, message, id].every((text) => typeof text === 'string');
    if (isRevision && changes.every(isChange)) return { revision, base, at, author, message, changes, id };
  } catch {
    // Reported below.
  }
  throw new ConfigHistoryError(`${path} is damaged: expected the JSON of a revision`, 'damaged');
}

/** The revisions of a context that are kept, the newest first. @throws {ConfigHistoryError} `damaged` */
export async function readHistory(
  { zookeeper, root }: { readonly zookeeper: ZnodeReader; readonly root: string },
  context: string,
  call: CallOptions,
): Promise<readonly Revision[]> {
  const path = historyPath(root, context);
  const names = ((await zookeeper.children(path, call)) ?? []).filter(
    (name) => revisionOf(name) !== undefined,
  );
  const read = await concurrentCalls(names.sort().reverse(), async (name) => {
    const znode = await zookeeper.read(`${path}/${name}`, call);
    return znode && decodeRevision(`${path}/${name}`, znode.data);
  });
  return read.filter((record) => record !== undefined);
}

/**
 * What was published between two revisions, or since one.
 * @param history the newest first
 * @throws {ConfigHistoryError} `no-such-revision`
 */
export function between(
  history: readonly Revision[],
  from: number,
  to = history[0]?.revision ?? 0,
): readonly KeyChange[] {
  if (from > to)
    return between(history, to, from).map(({ key, old, new: now }) => ({ key, old: now, new: old }));
  const newest = history[0]?.revision ?? 0;
  const oldest = (history.at(-1)?.revision ?? 1) - 1;
  for (const each of [from, to]) {
    if (Number.isInteger(each) && each >= oldest && each <= newest) continue;
    throw new ConfigHistoryError(
      `there is no revision ${each}: the history goes from ${oldest} to ${newest}`,
      'no-such-revision',
    );
  }
  const after = history.filter(({ revision }) => revision > from && revision <= to);
  if (after.length < to - from)
    throw new ConfigHistoryError(
      `revisions between ${from} and ${to} are missing from the history`,
      'damaged',
    );
  const all = new Map<string, KeyChange>();
  for (const change of after.toReversed().flatMap(({ changes }) => changes))
    all.set(change.key, { ...change, old: (all.get(change.key) ?? change).old });
  return [...all.values()].filter((change) => change.old !== change.new);
}
