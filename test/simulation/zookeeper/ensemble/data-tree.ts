import type { CreateMode, MultiOperation, ZnodeStat } from '../../../../src/zookeeper/client/zookeeper.js';

/** Answers of a server, as `KeeperException.Code` numbers them. */
export const Code = {
  ok: 0,
  noNode: -101,
  badVersion: -103,
  noChildrenForEphemerals: -108,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  sessionMoved: -118,
} as const;

/** One change of the tree, as the leader has decided it: nothing about it can fail. */
export type Change =
  | {
      readonly type: 'create';
      readonly path: string;
      readonly data: Buffer;
      readonly owner: string | undefined;
    }
  | { readonly type: 'set'; readonly path: string; readonly data: Buffer }
  | { readonly type: 'remove'; readonly path: string };

/** When and where in the order of all transactions. */
export interface Moment {
  readonly zxid: number;
  /** The leader's wall clock. */
  readonly time: number;
}

/** A refusal: of which operation of a transaction, from 0. */
export class Refusal {
  constructor(
    readonly code: number,
    readonly index: number | undefined = undefined,
  ) {}
}

interface Node {
  readonly czxid: number;
  readonly ctime: number;
  readonly owner: string | undefined;
  readonly children: Set<string>;
  data: Buffer;
  mzxid: number;
  mtime: number;
  version: number;
  /** How many children were ever made: the next sequential child's number. */
  creates: number;
}

/** The znodes as one server has them. */
export class DataTree {
  readonly #nodes = new Map<string, Node>();

  constructor() {
    this.#nodes.set('/', newNode({ zxid: 0, time: 0 }, Buffer.alloc(0), undefined));
  }

  clone(): DataTree {
    const copy = new DataTree();
    for (const [path, node] of this.#nodes)
      copy.#nodes.set(path, { ...node, children: new Set(node.children) });
    return copy;
  }

  has(path: string): boolean {
    return this.#nodes.has(path);
  }

  data(path: string): Buffer | undefined {
    return this.#nodes.get(path)?.data;
  }

  children(path: string): readonly string[] | undefined {
    const node = this.#nodes.get(path);
    return node && [...node.children];
  }

  owner(path: string): string | undefined {
    return this.#nodes.get(path)?.owner;
  }

  /** The transaction that made it; 0 for an absent one. */
  czxid(path: string): number {
    return this.#nodes.get(path)?.czxid ?? 0;
  }

  /** The paths of a session's ephemeral znodes. */
  ownedBy(session: string): string[] {
    return [...this.#nodes].filter(([, { owner }]) => owner === session).map(([path]) => path);
  }

  stat(path: string): ZnodeStat | undefined {
    const node = this.#nodes.get(path);
    if (node === undefined) return undefined;
    return {
      version: node.version,
      // As the servers count: every making and every removal of a child.
      childrenVersion: node.creates * 2 - node.children.size,
      createdZxid: BigInt(node.czxid),
      modifiedZxid: BigInt(node.mzxid),
      createdAt: node.ctime,
      modifiedAt: node.mtime,
      owner: node.owner,
      childCount: node.children.size,
    };
  }

  /**
   * Judges a write and carries it out, all of it or nothing.
   *
   * @param session whose ephemeral znodes it makes
   * @returns what was changed, for the other servers
   */
  decide(
    operations: readonly MultiOperation[],
    session: string,
    moment: Moment,
  ): readonly Change[] | Refusal {
    const changes: Change[] = [];
    const before = new Map<string, Node | undefined>();
    for (const [index, operation] of operations.entries()) {
      const change = this.#judge(operation, session);
      if (typeof change === 'number') {
        for (const [path, node] of before) {
          if (node) this.#nodes.set(path, node);
          else this.#nodes.delete(path);
        }
        return new Refusal(change, operations.length > 1 ? index : undefined);
      }
      if (change === undefined) continue;
      for (const path of [change.path, parentOf(change.path)]) {
        const node = this.#nodes.get(path);
        if (!before.has(path)) before.set(path, node && { ...node, children: new Set(node.children) });
      }
      this.apply(change, moment);
      changes.push(change);
    }
    return changes;
  }

  /** Undefined for what changes nothing; a code for a refusal. */
  #judge(operation: MultiOperation, session: string): Change | number | undefined {
    const { path } = operation;
    const node = this.#nodes.get(path);
    if (operation.type === 'create') return this.#judgeCreate(path, operation, session);
    if (node === undefined) return Code.noNode;
    const { version = -1 } = operation;
    if (version !== -1 && version !== node.version) return Code.badVersion;
    if (operation.type === 'set') return { type: 'set', path, data: Buffer.from(operation.data) };
    if (operation.type === 'check') return undefined;
    return node.children.size > 0 ? Code.notEmpty : { type: 'remove', path };
  }

  #judgeCreate(
    wanted: string,
    { data, mode }: { readonly data: string | Uint8Array; readonly mode: CreateMode },
    session: string,
  ) {
    const parent = this.#nodes.get(parentOf(wanted));
    if (parent === undefined) return Code.noNode;
    const path = mode.endsWith('-sequential')
      ? `${wanted}${String(parent.creates).padStart(10, '0')}`
      : wanted;
    if (this.#nodes.has(path)) return Code.nodeExists;
    if (parent.owner !== undefined) return Code.noChildrenForEphemerals;
    const owner = mode.startsWith('ephemeral') ? session : undefined;
    return { type: 'create' as const, path, data: Buffer.from(data), owner };
  }

  /** Carries out what was decided. */
  apply(change: Change, { zxid, time }: Moment): void {
    const { path } = change;
    if (change.type === 'set') {
      const node = this.#nodes.get(path) as Node;
      node.data = change.data;
      node.version += 1;
      node.mzxid = zxid;
      node.mtime = time;
      return;
    }
    const parent = this.#nodes.get(parentOf(path)) as Node;
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (change.type === 'remove') {
      this.#nodes.delete(path);
      parent.children.delete(name);
    } else {
      this.#nodes.set(path, newNode({ zxid, time }, change.data, change.owner));
      parent.children.add(name);
      parent.creates += 1;
    }
  }
}

function newNode({ zxid, time }: Moment, data: Buffer, owner: string | undefined): Node {
  return {
    czxid: zxid,
    mzxid: zxid,
    ctime: time,
    mtime: time,
    version: 0,
    creates: 0,
    owner,
    children: new Set(),
    data,
  };
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf('/')));
}
