import type { CreateMode, MultiOperation, ZnodeStat } from '../zookeeper.js';
import { failureOf } from '../zookeeper-error.js';

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

/** A request as the library's queue takes it, which numbers it, and finds its answer by the number. */
export class Request {
  /** For the library it is one whose answer has no body: that is read here. */
  readonly header = { type: Op.delete, xid: 0 };
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

  toBuffer(): Buffer {
    this.#bytes.writeInt32BE(this.header.xid, XID_AT);
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
const BODY_AT = 20;

/** The body of an answer, from its beginning. Its methods throw a RangeError where it ends too soon. */
export class Answer {
  #at = BODY_AT;

  /** @param bytes the whole answer; values that are read from it are copied */
  constructor(private readonly bytes: Buffer) {}

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
