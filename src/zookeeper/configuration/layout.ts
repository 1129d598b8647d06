import { ConfigError } from '../../core/base/errors.js';
import { checkPath, checkZnodeName, pathProblem } from '../client/znode-path.js';

// The layout of Spring Cloud Zookeeper Config (ZookeeperPropertySources, ZookeeperPropertySource):
//   /config/<app>,<profile> before /config/<app> before /config/application,<profile> before /config/application
// Below a context the path of a znode, with "." for "/", is the key of a property, and its data the value, in
// UTF-8. An empty znode with children is no property. In addition, and not read by Spring:
//   /config/<context>@nodes=0-3             a context too: the overrides of the other one for the readers with these node ids
//   /config/.nodelease/history/<context>    the head of the context's history, and below it the revisions
//   /config/.nodelease/locks/<context>      a lock for publishers that others keep coming before
//   /config/.nodelease/seen/<context>/<id>  ephemeral: the revisions that a node runs
//   /config/.nodelease/turns/<context>      a lock for nodes that restart one by one

/** Which configuration: that of an application, perhaps in a profile. */
export interface ConfigName {
  readonly app: string;
  readonly profile?: string | undefined;
  /** The parent of all contexts, within the chroot. @default /config */
  readonly root?: string | undefined;
}

const DEFAULT_ROOT = '/config';
const SHARED = 'application';
const OVERRIDE = '@nodes=';
const MAX_NODE_ID = 1_000_000;

/** The contexts of a configuration, the most specific first. @throws {ConfigError} */
export function contextsOf({ app, profile }: ConfigName): readonly [string, ...string[]] {
  checkName('app', app);
  if (profile !== undefined) checkName('profile', profile);
  const both = (base: string) => (profile === undefined ? [base] : [`${base},${profile}`, base]);
  return [...new Set([...both(app), ...both(SHARED)])] as [string, ...string[]];
}

/**
 * The context of the overrides for a node id, or a range of them.
 * @throws {ConfigError} naming the setting `label`
 */
export function overridesOf(context: string, nodes: string, label: string): string {
  const range = rangeOf(nodes);
  if (range) return context + OVERRIDE + range.text;
  throw new ConfigError(label, nodes, `a node id or a range of them, such as 5 or 0-3, up to ${MAX_NODE_ID}`);
}

/**
 * The contexts of one node: before each its overrides, the narrowest range first, and the lowest of equal
 * ones.
 * @param names of all contexts
 */
export function contextsOfNode(
  contexts: readonly string[],
  names: readonly string[],
  nodeId: number,
): readonly string[] {
  return contexts.flatMap((context) => {
    const prefix = context + OVERRIDE;
    const ranges = names.flatMap((name) =>
      name.startsWith(prefix) ? (rangeOf(name.slice(prefix.length)) ?? []) : [],
    );
    const own = ranges.filter(
      ({ from, to, text }) => from <= nodeId && nodeId <= to && names.includes(prefix + text),
    );
    own.sort((a, b) => a.to - a.from - (b.to - b.from) || a.from - b.from);
    return [...new Set(own.map(({ text }) => prefix + text)), context];
  });
}

/** Node ids from one to another, both included, and the one way to write it. */
function rangeOf(given: string) {
  const [, first = '', last = first] =
    /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(typeof given === 'string' ? given : '') ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (first === '' || from > to || to > MAX_NODE_ID) return undefined;
  return { from, to, text: from === to ? String(from) : `${from}-${to}` };
}

/** The parent of all contexts. @throws {ConfigError} naming the setting `label` */
export const rootOf = ({ root = DEFAULT_ROOT }: Partial<ConfigName>, label = 'root') =>
  checkPath(root, label, DEFAULT_ROOT);

/** Makes the path of something of a context, or of all. */
const ownPath = (folder: string) => (root: string, context?: string) =>
  `${root}/.nodelease/${folder}${context === undefined ? '' : `/${context}`}`;

export const historyPath = ownPath('history');
export const lockPath = ownPath('locks');
export const turnsPath = ownPath('turns');
/** The parent of the nodes. */
export const seenPath = ownPath('seen');
export const revisionPath = (root: string, context: string, revision: number) =>
  `${historyPath(root, context)}/rev-${String(revision).padStart(10, '0')}`;

/** The number of a revision's znode; undefined for a znode that is none. */
export function revisionOf(name: string): number | undefined {
  const [, digits] = /^rev-(\d{10})$/.exec(name) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** The path of a key below its context, where no znode has it yet. */
export const pathOfKey = (key: string) => `/${key.replaceAll('.', '/')}`;

/** The key of a path below its context. */
export const keyOfPath = (path: string) => path.slice(1).replaceAll('/', '.');

/**
 * @throws {ConfigError} for a key that no path means, and a value that is no text or cannot be written as
 * UTF-8
 */
export function checkProperty(key: string, value: string | null): void {
  const expected = 'names with "." between them, such as db.pool-size, without "/" and control characters';
  const isPath =
    typeof key === 'string' && key !== '' && !key.includes('/') && pathProblem(pathOfKey(key)) === undefined;
  if (!isPath) throw new ConfigError('key', key, expected);
  if (value === null) return;
  if (typeof value !== 'string') throw new ConfigError(key, typeof value, 'a text');
  if (Buffer.from(value).toString('utf8') !== value)
    throw new ConfigError(key, '…', 'a text of whole characters (a half of a surrogate pair is none)');
}

function checkName(label: string, name: string) {
  checkZnodeName(name, label);
  if (name.startsWith('.') || name.includes(',') || name.includes(OVERRIDE))
    throw new ConfigError(label, name, `a name without ",", "${OVERRIDE}" and a "." at its beginning`);
}
