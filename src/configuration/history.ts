import { concurrently } from '../base/concurrently.js';
import type { CallOptions } from '../zookeeper/zookeeper.js';
import { ConfigHistoryError } from './config-error.js';
import { historyPath, revisionOf } from './layout.js';
import type { ConfigPlace } from './read-contexts.js';
import { combined, decodeRevision, inverted, type KeyChange, type RevisionRecord } from './revision.js';

const READ_AT_ONCE = 64;

/** The revisions of a context that are kept, the newest first. @throws {ConfigHistoryError} `damaged` */
export async function readHistory(
  { zookeeper, root }: ConfigPlace,
  context: string,
  call: CallOptions,
): Promise<readonly RevisionRecord[]> {
  const path = historyPath(root, context);
  const names = ((await zookeeper.children(path, call)) ?? []).filter((name) => revisionOf(name) !== undefined);
  const read = await concurrently(names.sort().reverse(), READ_AT_ONCE, async (name) => {
    const znode = await zookeeper.read(`${path}/${name}`, call);
    return znode && decodeRevision(`${path}/${name}`, znode.data);
  });
  return read.filter((record) => record !== undefined);
}

/** What was published between two revisions, or since one. @param history the newest first @throws {ConfigHistoryError} `no-such-revision` */
export function between(history: readonly RevisionRecord[], from: number, to = history[0]?.revision ?? 0): readonly KeyChange[] {
  if (from > to) return inverted(between(history, to, from));
  const newest = history[0]?.revision ?? 0;
  const oldest = (history.at(-1)?.revision ?? 1) - 1;
  for (const each of [from, to]) {
    if (Number.isInteger(each) && each >= oldest && each <= newest) continue;
    throw new ConfigHistoryError(`there is no revision ${each}: the history goes from ${oldest} to ${newest}`, 'no-such-revision');
  }
  const after = history.filter(({ revision }) => revision > from && revision <= to);
  if (after.length < to - from) throw new ConfigHistoryError(`revisions between ${from} and ${to} are missing from the history`, 'damaged');
  return combined([...after].reverse());
}
