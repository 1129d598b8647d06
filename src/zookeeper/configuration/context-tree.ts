import { concurrentCalls } from '../client/call-limits.js';
import type { CallOptions, ZnodeReader } from '../client/zookeeper.js';
import { keyOfPath } from './layout.js';

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
export const parentsIn = (paths: Iterable<string>): ReadonlySet<string> =>
  new Set([...paths].filter((path) => path !== '').map(parentPath));

/** The path above, the empty one for the context itself. */
export const parentPath = (path: string) => path.slice(0, path.lastIndexOf('/'));
