import { ConfigError } from '../../core/base/errors.js';
import { concurrentCalls } from '../client/call-limits.js';
import {
  bytesOf,
  type CallOptions,
  LARGEST_DATA,
  type MultiOperation,
  type ZnodeReader,
} from '../client/zookeeper.js';
import { keyOfPath, pathOfKey } from './layout.js';

/**
 * The znodes of a context by their paths below it, the empty one for itself; without any where it does not
 * exist.
 */
export type ContextTree = ReadonlyMap<string, TreeZnode>;

interface TreeZnode {
  readonly value: string;
  /** The data's version, for conditional writes. */
  readonly version: number;
}

/** Reads the current content of a context. Changes meanwhile may be seen in part. */
export async function readTree(
  zookeeper: ZnodeReader,
  context: string,
  call: CallOptions,
): Promise<ContextTree> {
  const tree = new Map<string, TreeZnode>();
  for (let level: readonly string[] = ['']; level.length > 0; ) {
    const read = await concurrentCalls(level, async (path) => {
      const [znode, names = []] = await Promise.all([
        zookeeper.read(context + path, call),
        zookeeper.children(context + path, call),
      ]);
      if (znode) tree.set(path, { value: znode.data.toString('utf8'), version: znode.stat.version });
      return znode ? names.map((name) => `${path}/${name}`).sort() : [];
    });
    level = read.flat();
  }
  return tree;
}

/**
 * The properties of a context as Spring reads them: an empty znode counts where it has no children. Of two
 * znodes with one key the last counts.
 */
export function propertiesOf(
  tree: ReadonlyMap<string, Pick<TreeZnode, 'value'>>,
): ReadonlyMap<string, string> {
  const parents = parentsIn(tree.keys());
  const found = [...tree].filter(([path, { value }]) => path !== '' && (value !== '' || !parents.has(path)));
  return new Map(found.map(([path, { value }]) => [keyOfPath(path), value]));
}

/** The paths that have others directly below them. */
const parentsIn = (paths: Iterable<string>): ReadonlySet<string> =>
  new Set([...paths].filter((path) => path !== '').map(parentPath));

/** The path above, the empty one for the context itself. */
const parentPath = (path: string) => path.slice(0, path.lastIndexOf('/'));

/**
 * What ZooKeeper adds to the path and the data of an operation, in bytes, at the most: chroot, access list,
 * header.
 */
const OPERATION_BYTES = 256;

/** The new values of some keys; null for a key that is to go. */
type Edit = ReadonlyMap<string, string | null>;

/**
 * The operations that change the properties of the context at the path `context`, and nothing else: each on
 * the version that was read.
 *
 * @throws {ConfigError} for keys and values that the layout cannot express together
 */
export function planEdit(context: string, tree: ContextTree, edit: Edit): MultiOperation[] {
  const after = edited(tree, edit);
  checkProperties(tree, after, edit);
  const upwards = (paths: Iterable<string>) => [...paths].sort((a, b) => b.length - a.length);
  const data = (path: string) => ({ path: context + path, data: after.get(path) ?? '' });
  const standing = (path: string) => ({ path: context + path, version: tree.get(path)?.version ?? -1 });
  const removed = upwards(tree.keys()).filter((path) => !after.has(path));
  const created = upwards(after.keys()).filter((path) => !tree.has(path));
  const changed = [...after.keys()].filter(
    (path) => tree.has(path) && tree.get(path)?.value !== after.get(path),
  );
  return [
    ...removed.map((path) => ({ type: 'remove', ...standing(path) }) as const),
    ...created.reverse().map((path) => ({ type: 'create', ...data(path), mode: 'persistent' }) as const),
    ...changed.map((path) => ({ type: 'set', ...standing(path), ...data(path) }) as const),
  ];
}

/** @throws {ConfigError} for a transaction that the servers would refuse, and close the connection */
export function checkSize(operations: readonly MultiOperation[]): void {
  const bytes = bytesOf(operations, OPERATION_BYTES);
  if (bytes <= LARGEST_DATA) return;
  const expected = `at most ${LARGEST_DATA} bytes in one revision, old and new values in its record included (publish them in parts)`;
  throw new ConfigError('changes', bytes, expected);
}

/** The values of all znodes after the edit, by their paths. */
function edited(tree: ContextTree, edit: Edit) {
  const after = new Map([...tree].map(([path, { value }]) => [path, value]));
  const known = new Map<string, readonly string[]>();
  for (const path of tree.keys())
    if (path !== '') known.set(keyOfPath(path), [...(known.get(keyOfPath(path)) ?? []), path]);
  // Empty znodes that stay without children, too: properties.
  const folders = parentsIn(tree.keys());
  const properties = new Set([...tree.keys()].filter((path) => path === '' || !folders.has(path)));
  for (const [key, value] of edit) {
    // A key may be at a/b, at a.b, or at both.
    for (const path of known.get(key) ?? (value === null ? [] : [pathOfKey(key)])) {
      after.set(path, value ?? '');
      if (value === null) properties.delete(path);
      else properties.add(path);
    }
  }
  for (const path of [...after.keys()])
    for (let above = parentPath(path); !after.has(above); above = parentPath(above)) after.set(above, '');
  const parents = new Set(['']);
  for (const path of [...after.keys()].sort((a, b) => b.length - a.length)) {
    if (after.get(path) !== '' || properties.has(path) || parents.has(path)) parents.add(parentPath(path));
    else after.delete(path);
  }
  return after;
}

/** Whether all keys read back as they are meant to be, and ZooKeeper can list them. */
function checkProperties(tree: ContextTree, after: ReadonlyMap<string, string>, edit: Edit) {
  const found = propertiesOf(new Map([...after].map(([path, value]) => [path, { value }])));
  for (const [key, value] of new Map<string, string | null>([...propertiesOf(tree), ...edit])) {
    if ((found.get(key) ?? null) === value) continue;
    const below = [...found.keys()].find((other) => other.startsWith(`${key}.`));
    throw new ConfigError(
      key,
      value ?? '',
      `a value that is not empty, as there is ${below} below it (Spring takes it for no property)`,
    );
  }
  const bytes = [...after.keys()].reduce((sum, path) => sum + Buffer.byteLength(path) + 4, 0);
  if (bytes > LARGEST_DATA && after.size > tree.size)
    throw new ConfigError(
      'changes',
      bytes,
      `at most ${LARGEST_DATA} bytes of keys in one context (ZooKeeper could not list more)`,
    );
}
