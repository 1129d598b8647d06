import { ConfigError } from '../base/errors.js';
import { checkZnodeName, pathProblem } from '../zookeeper/znode-path.js';

// The layout of Spring Cloud Zookeeper Config (ZookeeperPropertySources, ZookeeperPropertySource):
//   /config/<app>,<profile> before /config/<app> before /config/application,<profile> before /config/application
// Below a context the path of a znode, with "." for "/", is the key of a property, and its data the value, in UTF-8. An empty znode with
// children is no property. Beside that, and not read by Spring:
//   /config/<context>@nodes=0-3             overrides of the context for the readers with these node ids
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

export const DEFAULT_ROOT = '/config';
const SHARED = 'application';
const OVERRIDE = '@nodes=';
const MAX_NODE_ID = 1_000_000;

/** The contexts of a configuration, the most specific first. @throws {ConfigError} */
export function contextsOf(name: ConfigName): readonly [string, ...string[]] {
  const { app, profile } = checkName(name);
  const both = (base: string) => (profile === undefined ? [base] : [`${base},${profile}`, base]);
  return [...new Set([...both(app), ...both(SHARED)])] as [string, ...string[]];
}

/** The parent of all contexts. @throws {ConfigError} */
export function rootOf({ root = DEFAULT_ROOT }: ConfigName): string {
  const problem = root === '/' ? 'it is the root' : pathProblem(root);
  if (problem === undefined) return root;
  throw new ConfigError('root', root, `an absolute path of ZooKeeper, such as ${DEFAULT_ROOT} (${problem})`);
}

export const historyPath = (root: string, context: string) => `${root}/.nodelease/history/${context}`;
export const lockPath = (root: string, context: string) => `${root}/.nodelease/locks/${context}`;
export const turnsPath = (root: string, context: string) => `${root}/.nodelease/turns/${context}`;
export const seenPath = (root: string, context: string) => `${root}/.nodelease/seen/${context}`;
export const revisionPath = (root: string, context: string, revision: number) =>
  `${historyPath(root, context)}/rev-${String(revision).padStart(10, '0')}`;

/** The number of a revision's znode; undefined for a znode that is none. */
export function revisionOf(name: string): number | undefined {
  const [, digits] = /^rev-(\d{10})$/.exec(name) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** The path of a context, or of its overrides for a range of node ids. */
export const contextPath = (root: string, context: string, nodes?: string) =>
  `${root}/${context}${nodes === undefined ? '' : OVERRIDE + nodes}`;

/** Whether a path or name of a context is that of overrides. */
export const isOverride = (context: string) => context.includes(OVERRIDE);

/** The ranges for which a context has overrides, by the names of the root's children; in the order of the node ids. */
export function rangesOf(context: string, names: readonly string[]): readonly NodeRange[] {
  const prefix = context + OVERRIDE;
  const texts = names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  const ranges = texts.map(rangeOf).filter((range, at) => range?.text === texts[at]) as NodeRange[];
  return ranges.sort((a, b) => a.from - b.from || a.to - b.to);
}

/** Node ids from one to another, both included. */
export interface NodeRange {
  readonly from: number;
  readonly to: number;
  /** `0-3`, or `5`: the one way to write it. */
  readonly text: string;
}

/** @throws {ConfigError} naming the setting `label` */
export function parseNodeRange(text: string, label: string): NodeRange {
  const range = rangeOf(text);
  if (range) return range;
  throw new ConfigError(label, text, `a node id or a range of them, such as 5 or 0-3, up to ${MAX_NODE_ID}`);
}

function rangeOf(given: string): NodeRange | undefined {
  const [, first = '', last = first] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(given) ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (first === '' || from > to || to > MAX_NODE_ID) return undefined;
  return { from, to, text: from === to ? String(from) : `${from}-${to}` };
}

export const overlap = (a: NodeRange, b: NodeRange) => a.from <= b.to && b.from <= a.to;

/** The path of a key below its context, where no znode has it yet. */
export const pathOfKey = (key: string) => `/${key.replaceAll('.', '/')}`;

/** The key of a path below its context. */
export const keyOfPath = (path: string) => path.slice(1).replaceAll('/', '.');

/** @throws {ConfigError} for a key that no path stands for */
export function checkKey(key: string): void {
  const expected = 'names with "." between them, such as db.pool-size, without "/" and control characters';
  const isPath = typeof key === 'string' && key !== '' && !key.includes('/') && pathProblem(pathOfKey(key)) === undefined;
  if (!isPath) throw new ConfigError('key', key, expected);
}

/** @throws {ConfigError} for what is no text, or cannot be written as UTF-8 */
export function checkValue(key: string, value: string): void {
  if (typeof value !== 'string') throw new ConfigError(key, typeof value, 'a text');
  if (Buffer.from(value).toString('utf8') !== value)
    throw new ConfigError(key, '…', 'a text of whole characters (a half of a surrogate pair is none)');
}

function checkName({ app, profile }: ConfigName): Pick<ConfigName, 'app' | 'profile'> {
  for (const [label, name] of [['app', app], ...(profile === undefined ? [] : [['profile', profile]])] as [string, string][]) {
    checkZnodeName(name, label);
    if (name.startsWith('.') || name.includes(',') || name.includes(OVERRIDE))
      throw new ConfigError(label, name, `a name without ",", "${OVERRIDE}" and a "." at its beginning`);
  }
  return { app, profile };
}
