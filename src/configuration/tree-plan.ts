import { ConfigError } from '../base/errors.js';
import { LARGEST_DATA, type MultiOperation } from '../zookeeper/zookeeper.js';
import { type ContextTree, parentPath, parentsIn, propertiesOf } from './context-tree.js';
import { keyOfPath, pathOfKey } from './layout.js';

/** What ZooKeeper adds to the path and the data of an operation, in bytes, at the most. */
const OPERATION_BYTES = 128;

/** The new values of some keys; undefined for a key that is to go. */
export type Edit = ReadonlyMap<string, string | undefined>;

/**
 * The operations that change a context's properties, and nothing else: each on the version that was read.
 *
 * @param context its path
 * @param isKept whether it stays when it has no property any more
 * @throws {ConfigError} for keys and values that the layout cannot express together
 */
export function planEdit(context: string, tree: ContextTree, edit: Edit, isKept: boolean): MultiOperation[] {
  const after = edited(tree, edit);
  if (!isKept && after.size === 1 && after.get('') === '') after.delete('');
  checkProperties(tree, after, edit);
  checkListings(context, tree, after);
  const [before, now] = [[...tree.keys()], [...after.keys()]];
  const depth = (path: string) => path.split('/').length;
  const removed = before.filter((path) => !after.has(path)).sort((a, b) => depth(b) - depth(a));
  const created = now.filter((path) => !tree.has(path)).sort((a, b) => depth(a) - depth(b));
  const changed = now.filter((path) => tree.has(path) && tree.get(path)?.value !== after.get(path));
  const versionOf = (path: string) => ({ version: tree.get(path)?.version ?? -1 });
  return [
    ...removed.map((path) => ({ type: 'remove', path: context + path, ...versionOf(path) }) as const),
    ...created.map((path) => ({ type: 'create', path: context + path, data: after.get(path) ?? '', mode: 'persistent' }) as const),
    ...changed.map((path) => ({ type: 'set', path: context + path, data: after.get(path) ?? '', ...versionOf(path) }) as const),
  ];
}

/** The size of a transaction's request, in bytes. @throws {ConfigError} where the servers would refuse it, and close the connection */
export function checkSize(operations: readonly MultiOperation[]): void {
  const sizes = operations.map(
    (each) => OPERATION_BYTES + Buffer.byteLength(each.path) + ('data' in each ? Buffer.byteLength(each.data) : 0),
  );
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  if (bytes <= LARGEST_DATA) return;
  const expected = `at most ${LARGEST_DATA} bytes in one revision, old and new values in its record included (publish them in parts)`;
  throw new ConfigError('changes', bytes, expected);
}

/** The values of all znodes after the edit, by their paths. */
function edited(tree: ContextTree, edit: Edit): Map<string, string> {
  const after = new Map([...tree].map(([path, { value }]) => [path, value]));
  const parentsBefore = parentsIn(tree.keys());
  const touched = new Set<string>();
  for (const [key, value] of edit) {
    // A key may stand as a/b, as a.b, or both.
    const known = [...tree.keys()].filter((path) => path !== '' && keyOfPath(path) === key);
    for (const path of value !== undefined && known.length === 0 ? [pathOfKey(key)] : known) {
      touched.add(path);
      after.set(path, value ?? '');
      for (let above = path; above !== ''; ) {
        above = parentPath(above);
        if (!after.has(above)) after.set(above, '');
      }
    }
  }
  const isSet = (path: string) => touched.has(path) && edit.get(keyOfPath(path)) !== undefined;
  const childCounts = new Map<string, number>();
  const count = (path: string, change: number) => childCounts.set(parentPath(path), (childCounts.get(parentPath(path)) ?? 0) + change);
  for (const path of after.keys()) if (path !== '') count(path, 1);
  // What has lost its value, or its last child, is empty: without children it would be a property.
  const isLeftOver = (path: string) => !isSet(path) && after.get(path) === '' && (touched.has(path) || parentsBefore.has(path));
  for (const path of [...after.keys()].sort((a, b) => b.length - a.length)) {
    if (path === '' || !isLeftOver(path) || childCounts.get(path)) continue;
    after.delete(path);
    count(path, -1);
  }
  return after;
}

/** Whether all keys read back as they are meant to be. */
function checkProperties(tree: ContextTree, after: ReadonlyMap<string, string>, edit: Edit): void {
  const found = propertiesOf(new Map([...after].map(([path, value]) => [path, { value }])));
  const wanted = new Map<string, string | undefined>([...propertiesOf(tree), ...edit]);
  for (const [key, value] of wanted) {
    if (found.get(key) === value) continue;
    const below = [...found.keys()].find((other) => other.startsWith(`${key}.`));
    throw new ConfigError(key, value ?? '', `a value that is not empty, as there is ${below} below it (Spring takes it for no property)`);
  }
}

/** Whether the names of the children fit into one answer of the servers. */
function checkListings(context: string, tree: ContextTree, after: ReadonlyMap<string, string>): void {
  const bytes = new Map<string, number>();
  for (const path of after.keys()) {
    if (path === '') continue;
    const parent = parentPath(path);
    bytes.set(parent, (bytes.get(parent) ?? 0) + Buffer.byteLength(path) - Buffer.byteLength(parent) + 3);
  }
  for (const [parent, size] of bytes) {
    if (size > LARGEST_DATA && after.size > tree.size)
      throw new ConfigError(
        'changes',
        size,
        `at most ${LARGEST_DATA} bytes of names below ${context}${parent} (ZooKeeper could not list them)`,
      );
  }
}
