import {
  type CreateMode,
  type MultiOperation,
  RequestFailure,
  type ZnodeStat,
  type ZooKeeperFault,
} from '../zookeeper.js';

// Requests and answers in the bytes of ZooKeeper's protocol. Source: zookeeper.jute of Apache ZooKeeper.

/** Operations, by `ZooDefs.OpCode`. */
export const Op = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getChildren: 12,
  check: 13,
  multi: 14,
  createWithStat: 15,
  error: -1,
};

/** `CreateMode` of Apache ZooKeeper. */
const MODES: Readonly<Record<CreateMode, number>> = {
  shared: 0,
  persistent: 0,
  ephemeral: 1,
  'persistent-sequential': 2,
  'ephemeral-sequential': 3,
};

/** An entry of an access control list. */
export type Access = readonly [permissions: number, scheme: string, id: string];

/** Rights, by `ZooDefs.Perms`. */
export const Permission = { read: 1, admin: 16, all: 31 };

/**
 * A number takes 32 bits, a boolean a byte; texts and data have their length before them; a list has its own.
 */
type Field = number | boolean | string | Buffer | readonly Field[];

/** A request begins with its length, its number and its operation. Its fields follow. */
const XID_AT = 4;
const OPERATION_AT = 8;
const FIELDS_AT = 12;

/** A request, whose answer is found by its number. */
export class Request {
  readonly #bytes: Buffer;

  /** @param operation of {@link Op} @param fields in the order of its record */
  constructor(operation: number, fields: readonly Field[]) {
    const bytes = Buffer.allocUnsafe(FIELDS_AT + sizeOf(fields));
    bytes.writeInt32BE(bytes.length - XID_AT, 0);
    bytes.writeInt32BE(operation, OPERATION_AT);
    write(bytes, FIELDS_AT, fields);
    this.#bytes = bytes;
  }

  /** In bytes, as a server counts them. */
  get size(): number {
    return this.#bytes.length - XID_AT;
  }

  /** @param xid its number */
  numbered(xid: number): Buffer {
    this.#bytes.writeInt32BE(xid, XID_AT);
    return this.#bytes;
  }

  /** @param operation `create` or `createWithStat` */
  static create(
    operation: number,
    path: string,
    data: Buffer,
    access: AccessList,
    mode: CreateMode,
  ): Request {
    return new Request(operation, [path, data, access, MODES[mode]]);
  }

  /** @param accessTo the access to a znode by its create mode */
  static multi(operations: readonly MultiOperation[], accessTo: (mode: CreateMode) => AccessList): Request {
    const fields = operations.flatMap((operation): Field[] => {
      const { path } = operation;
      if (operation.type === 'create') {
        const { data, mode } = operation;
        return [...header(Op.create), path, Buffer.from(data), accessTo(mode), MODES[mode]];
      }
      const { version = -1 } = operation;
      if (operation.type === 'set')
        return [...header(Op.setData), path, Buffer.from(operation.data), version];
      return [...header(operation.type === 'remove' ? Op.delete : Op.check), path, version];
    });
    return new Request(Op.multi, [...fields, -1, true, -1]);
  }
}

/** Before each operation of a transaction. */
const header = (operation: number): Field[] => [operation, false, -1];

/** The list as it is sent. */
export type AccessList = readonly Field[];

export function accessList(access: readonly Access[]): AccessList {
  return [access.length, ...access.flat()];
}

function sizeOf(field: Field): number {
  if (typeof field === 'number') return 4;
  if (typeof field === 'boolean') return 1;
  if (typeof field === 'string') return 4 + Buffer.byteLength(field);
  if (Buffer.isBuffer(field)) return 4 + field.length;
  let size = 0;
  for (const each of field as readonly Field[]) size += sizeOf(each);
  return size;
}

/** @returns where the next one goes */
function write(bytes: Buffer, at: number, field: Field): number {
  if (typeof field === 'number') return bytes.writeInt32BE(field, at);
  if (typeof field === 'boolean') return bytes.writeUInt8(field ? 1 : 0, at);
  if (typeof field === 'string') {
    const length = bytes.write(field, at + 4);
    bytes.writeInt32BE(length, at);
    return at + 4 + length;
  }
  if (Buffer.isBuffer(field)) return at + 4 + field.copy(bytes, bytes.writeInt32BE(field.length, at));
  let next = at;
  for (const each of field as readonly Field[]) next = write(bytes, next, each);
  return next;
}

/** An answer begins with length, number, zxid and code. Its body follows. */
const ZXID_AT = 8;
const CODE_AT = 16;
const BODY_AT = 20;

/** An answer, its body from the beginning. Its methods throw a RangeError where it ends too soon. */
export class Answer {
  #at = BODY_AT;

  /** @param bytes the whole answer; values that are read from it are copied */
  constructor(private readonly bytes: Buffer) {}

  /** The last transaction that the server has seen. */
  get zxid(): Buffer {
    return Buffer.from(this.bytes.subarray(ZXID_AT, CODE_AT));
  }

  /** 0 unless the server refuses the request, see {@link failureOf}. */
  get code(): number {
    return this.bytes.readInt32BE(CODE_AT);
  }

  int(): number {
    return this.bytes.readInt32BE(this.#skip(4));
  }

  long(): bigint {
    return this.bytes.readBigInt64BE(this.#skip(8));
  }

  text(): string {
    const [from, to] = this.#part();
    return this.bytes.toString('utf8', from, to);
  }

  /** Empty for none. */
  data(): Buffer {
    return Buffer.from(this.bytes.subarray(...this.#part()));
  }

  texts(): string[] {
    const texts: string[] = [];
    for (let left = this.int(); left > 0; left -= 1) texts.push(this.text());
    return texts;
  }

  stat(): ZnodeStat {
    const [createdZxid, modifiedZxid, createdAt, modifiedAt] = [
      this.long(),
      this.long(),
      this.long(),
      this.long(),
    ];
    const [version, childrenVersion] = [this.int(), this.int()];
    this.#skip(4);
    const owner = this.bytes.readBigUInt64BE(this.#skip(8));
    this.#skip(4);
    const childCount = this.int();
    this.#skip(8);
    return {
      ...{ version, childrenVersion, createdZxid, modifiedZxid, childCount },
      ...{ createdAt: Number(createdAt), modifiedAt: Number(modifiedAt) },
      owner: owner === 0n ? undefined : owner.toString(16).padStart(16, '0'),
    };
  }

  /** Of a notification: the type, by `Watcher.Event.EventType`, and the znode. */
  event(): { readonly type: number; readonly path: string } {
    const type = this.int();
    this.#skip(4);
    return { type, path: this.text() };
  }

  /** Of a transaction. @throws {RequestFailure} the reason of a refusal, and the refused operation */
  results(): void {
    for (let index = 0; ; index += 1) {
      const type = this.int();
      const isEnd = this.bytes.readUInt8(this.#skip(1)) !== 0;
      this.#skip(4);
      if (isEnd) return;
      if (type === Op.create) this.text();
      else if (type === Op.setData) this.stat();
      else if (type === Op.error) {
        // Operations before the refused one are reported as successful, later ones as given up.
        const code = this.int();
        if (code !== 0) throw failureOf(code, index);
      } else if (type !== Op.delete && type !== Op.check)
        throw new RangeError(`a result of the unknown type ${type}`);
    }
  }

  /** Where a text or data begins and ends. */
  #part(): [number, number] {
    const length = Math.max(0, this.int());
    const from = this.#skip(length);
    return [from, from + length];
  }

  /** @returns where it was */
  #skip(bytes: number): number {
    const at = this.#at;
    this.#at += bytes;
    if (this.#at > this.bytes.length) throw new RangeError('it ends too soon');
    return at;
  }
}

/** A server's refusal, by the code of its answer (`KeeperException.Code`). */
export function failureOf(code: number, index?: number): RequestFailure {
  const known = FAILURES[code];
  if (known) return new RequestFailure(known[0], false, known[1], index);
  const why = REASONS[code] ?? `the server refused it for a reason that has no name here (code ${code})`;
  // At -100 or below, the request was judged and refused; above that the server itself failed.
  return new RequestFailure('refused', code > -100, why, index);
}

/**
 * A session that moved to another server while a request was under way: the request was dropped, and so is
 * the connection.
 */
export const SESSION_MOVED = -118;
/** The servers let in authenticated sessions only (`enforce.auth.enabled`). They close the connection after it. */
export const AUTH_REQUIRED = -124;

const FAILURES: Readonly<Record<number, readonly [ZooKeeperFault, string]>> = {
  [-6]: ['refused', 'the server does not implement it'],
  [-8]: ['refused', 'the server calls its arguments invalid'],
  [-101]: ['no-node', 'there is no such znode'],
  [-102]: ['no-auth', 'the access control list does not allow it'],
  [-103]: ['bad-version', 'the data has another version'],
  [-108]: ['no-children-for-ephemerals', 'the parent is ephemeral'],
  [-110]: ['node-exists', 'the znode exists'],
  [-111]: ['not-empty', 'the znode has children'],
  [-112]: ['session-expired', 'the session has expired'],
  [-114]: ['refused', 'the server calls the access control list invalid'],
  [-115]: ['auth-failed', 'the servers refuse the credentials'],
  [SESSION_MOVED]: ['connection-loss', 'the session has moved to another server'],
  [AUTH_REQUIRED]: [
    'auth-failed',
    'the servers want SASL, which nodelease does not speak, or a digest (--zookeeper-auth)',
  ],
};

/** The other codes of `KeeperException.Code`, as a client of ZooKeeper 3.9 has them. */
const REASONS: Readonly<Record<number, string>> = {
  [-1]: 'the server has failed',
  [-2]: 'the server found an inconsistency at run time',
  [-3]: 'the server found its data inconsistent',
  [-4]: 'the server has lost its connection',
  [-5]: 'the server could not read the request, or write the answer',
  [-7]: 'the server took too long',
  [-12]: 'the server does not know the session',
  [-13]: 'the servers of the new configuration have no quorum',
  [-14]: 'the servers are changing their configuration',
  [-100]: 'the server calls it a wrong use of its interface',
  [-113]: 'the server calls the callback invalid',
  [-119]: 'the server is read-only',
  [-120]: 'a local session has no ephemeral znodes',
  [-121]: 'there is no such watch',
  [-122]: 'the request has waited too long at the server',
  [-123]: 'the servers allow no change of their configuration',
  [-125]: 'the quota of a parent is used up',
  [-127]: 'the server is overloaded and has dropped the request',
};
