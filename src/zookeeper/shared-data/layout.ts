import { createHash } from 'node:crypto';
import { checkArguments, TEXT, whole } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { checkPath } from '../client/znode-path.js';
import { canonicalJson } from './canonical-json.js';
import type { Kind } from './data-report.js';

/** Monastery's default root. */
export const DEFAULT_ROOT = '/monastery/root';

/** What names shared data. */
export interface Address {
  readonly name: string;
  readonly scope: string;
}

export const KINDS: readonly Kind[] = ['scalar', 'set', 'list', 'map'];

/**
 * Which znodes shared data has. All nodes of a cluster must have the same. Must be pure, and must not throw.
 */
export interface PathStrategy {
  /** The path of one datum below `<root>/data`, one name or several: `8f3a…`, or `map/8f3a…`. */
  datum(address: Address, kind: Kind): string;
  /**
   * The name of an element's znode by the text of a set's value, or of a map's key. Different elements may
   * have the same: see {@link placeName}.
   */
  element(text: string): string;
}

/** SHA-256 of the text's UTF-8, as lower-case hex. */
export function sha256(text: string): string {
  checkArguments({ text }, { text: TEXT });
  return createHash('sha256').update(text).digest('hex');
}

/** For messages. */
export const titleOf = ({ name, scope }: Address) =>
  `shared data ${JSON.stringify(name)}${scope === '' ? '' : ` of scope ${JSON.stringify(scope)}`}`;

/** Monastery's own: the hash of the address in canonical JSON (RFC 8785), and the hash of the element's text. */
export const HASHED_PATHS: PathStrategy = {
  datum: ({ name, scope }) => sha256(canonicalJson({ name, scope })),
  element: sha256,
};

/** The place `n` of a collision chain: `hash`, `hash-1`, `hash-2` … A chain has no gaps. */
export function placeName(hash: string, n: number): string {
  checkArguments({ hash, n }, { hash: TEXT, n: whole(0) });
  return n === 0 ? hash : `${hash}-${n}`;
}

/** Whether it is the name of an element of a list: a larger number is a foreign znode's. */
export const isIndex = (name: string) => /^(0|[1-9]\d{0,8})$/.test(name);

export const dataFolder = (root: string) => `${root}/data`;
export const nodesFolder = (root: string) => `${root}/nodes`;

/** @param label the setting that it comes from @throws {ConfigError} */
export const checkRoot = (root: string, label = 'root') =>
  checkPath(root, label, DEFAULT_ROOT, 'it is the root of the servers');

/** @throws {ConfigError} for an empty name, and for a text that UTF-8 cannot hold */
export function checkAddress({ name, scope }: Address): Address {
  for (const [label, text] of Object.entries({ name, scope })) {
    const isText =
      typeof text === 'string' && Buffer.from(text).toString() === text && (label === 'scope' || text !== '');
    if (!isText)
      throw new ConfigError(label, text, label === 'name' ? 'a text of at least one character' : 'a text');
  }
  return { name, scope };
}
