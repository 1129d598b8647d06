import type { LibrarySession } from './library-session.js';
import type { WatchedRead } from './standing-watch.js';
import type { Znode } from './zookeeper.js';
import { isFault } from './zookeeper-error.js';

/** Makes one request, with a deadline. */
export type Send = <T>(request: (session: LibrarySession) => Promise<T>) => Promise<T>;

/** The children of a znode, as they are watched. */
export function childrenOf(path: string, send: Send): WatchedRead<readonly string[] | undefined> {
  return {
    path,
    read: () => orAbsent(path, send, (session) => session.children(path, true)),
    fingerprint: (children) => (children === undefined ? ABSENT : `/${[...children].sort().join('/')}`),
  };
}

/** The data of a znode, as they are watched. */
export function dataOf(path: string, send: Send): WatchedRead<Znode | undefined> {
  return {
    path,
    read: () => orAbsent(path, send, (session) => session.read(path, true)),
    // Of the same znode, written by the same transaction.
    fingerprint: (znode) => (znode === undefined ? ABSENT : `${znode.stat.createdZxid}:${znode.stat.modifiedZxid}`),
  };
}

const ABSENT = 'absent';

/** An absent znode takes no watch on its data or children, only one on its making; when it was made in between, it is read after all. */
async function orAbsent<S>(path: string, send: Send, read: (session: LibrarySession) => Promise<S>): Promise<S | undefined> {
  for (;;) {
    try {
      return await send(read);
    } catch (error) {
      if (!isFault(error, 'no-node')) throw error;
    }
    if (!(await send((session) => session.exists(path, true)))) return undefined;
  }
}
