import type { Connection } from './connection.js';
import { type Change, parentOf } from './data-tree.js';

/** The one-shot watches that one server keeps. */
export class WatchTable {
  readonly #data = new Map<string, Set<Connection>>();
  readonly #children = new Map<string, Set<Connection>>();

  addData(path: string, connection: Connection): void {
    add(this.#data, path, connection);
  }

  addChildren(path: string, connection: Connection): void {
    add(this.#children, path, connection);
  }

  forget(connection: Connection): void {
    for (const table of [this.#data, this.#children])
      for (const watchers of table.values()) watchers.delete(connection);
  }

  clear(): void {
    this.#data.clear();
    this.#children.clear();
  }

  /** Notifies of a change, each connection once for each path. */
  trigger(change: Change, notify: (connection: Connection, path: string, isGone: boolean) => void): void {
    const { path } = change;
    const own = new Set(take(this.#data, path));
    if (change.type === 'remove') for (const connection of take(this.#children, path)) own.add(connection);
    for (const connection of own) notify(connection, path, change.type === 'remove');
    if (change.type === 'set') return;
    const parent = parentOf(path);
    for (const connection of take(this.#children, parent)) notify(connection, parent, false);
  }
}

function add(table: Map<string, Set<Connection>>, path: string, connection: Connection): void {
  const watchers = table.get(path) ?? new Set();
  watchers.add(connection);
  table.set(path, watchers);
}

function take(table: Map<string, Set<Connection>>, path: string): Iterable<Connection> {
  const watchers = table.get(path);
  table.delete(path);
  return watchers ?? [];
}
