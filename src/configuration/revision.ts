import { ConfigHistoryError } from './config-error.js';

/** One change of a key. */
export interface KeyChange {
  readonly key: string;
  /** The node ids whose override it is; undefined for the context itself. */
  readonly nodes?: string | undefined;
  /** Null: not set. */
  readonly old: string | null;
  readonly new: string | null;
}

/** What was published at once. */
export interface Revision {
  /** 1 for the first of a context, and one more for each further one. */
  readonly revision: number;
  /** The revision that it was made of. */
  readonly base: number;
  readonly author: string;
  /** By the publisher's clock, ISO 8601. */
  readonly at: string;
  readonly message: string;
  readonly changes: readonly KeyChange[];
}

/** The newest revision of a context; 0 where there is none. Its id tells two publishers of the same revision apart. */
export type Head = Pick<Revision, 'revision' | 'author' | 'at'> & { readonly id: string };

export const NO_HEAD: Head = { revision: 0, id: '', author: '', at: '' };

/** The data of a revision's znode, as JSON. */
export type RevisionRecord = Revision & { readonly id: string };

/** @throws {ConfigHistoryError} `damaged` */
export function decodeHead(path: string, data: Buffer): Head {
  const { revision, id, author, at } = objectOf<Head>(path, data);
  if (!Number.isSafeInteger(revision) || ![id, author, at].every((text) => typeof text === 'string')) throw damaged(path);
  return { revision, id, author, at } as Head;
}

/** @throws {ConfigHistoryError} `damaged` */
export function decodeRevision(path: string, data: Buffer): RevisionRecord {
  const { base, message, changes } = objectOf<RevisionRecord>(path, data);
  const head = decodeHead(path, data);
  const isText = (value: unknown) => value === null || typeof value === 'string';
  const isChange = (change: unknown) => {
    const { key, nodes = '', old, new: now } = (change ?? {}) as Partial<KeyChange>;
    return typeof key === 'string' && typeof nodes === 'string' && isText(old) && isText(now);
  };
  if (!Number.isSafeInteger(base) || typeof message !== 'string' || !Array.isArray(changes) || !changes.every(isChange))
    throw damaged(path);
  return { ...head, base: base as number, message, changes: changes as readonly KeyChange[] };
}

/** The changes from before the first revision to after the last: those of several revisions, in their order, as one. */
export function combined(revisions: readonly Pick<Revision, 'changes'>[]): readonly KeyChange[] {
  const all = new Map<string, KeyChange>();
  for (const change of revisions.flatMap(({ changes }) => changes)) {
    const slot = `${change.nodes ?? ''}/${change.key}`;
    all.set(slot, { ...change, old: (all.get(slot) ?? change).old });
  }
  return [...all.values()].filter((change) => change.old !== change.new);
}

export const inverted = (changes: readonly KeyChange[]): readonly KeyChange[] =>
  changes.map((change) => ({ ...change, old: change.new, new: change.old }));

function objectOf<T>(path: string, data: Buffer): Partial<T> {
  try {
    const value: unknown = JSON.parse(data.toString('utf8'));
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Told below.
  }
  throw damaged(path);
}

const damaged = (path: string) => new ConfigHistoryError(`${path} is damaged: expected the JSON of a revision`, 'damaged');
