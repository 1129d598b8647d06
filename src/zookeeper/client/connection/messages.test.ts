import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { Answer, accessList, Op, Permission, Request } from './messages.js';

// What the library itself would send: its encoding is proven by the servers of many years.
const jute = createRequire(import.meta.url)('node-zookeeper-client/lib/jute/index.js');

function bySpecification(type: number, record: string, fields: Record<string, unknown>): Buffer {
  const header = new jute.protocol.RequestHeader();
  header.type = type;
  header.xid = 7;
  return new jute.Request(header, Object.assign(new jute.protocol[record](), fields)).toBuffer();
}

function sent(request: Request): Buffer {
  return request.numbered(7);
}

const access = [
  [Permission.all, 'auth', ''],
  [Permission.read, 'world', 'anyone'],
] as const;
const acl = access.map(
  ([permissions, scheme, id]) => new jute.data.ACL(permissions, new jute.data.Id(scheme, id)),
);
const data = Buffer.from('größe');

describe('a request', () => {
  it.each([
    [
      'create',
      Request.create(Op.create, '/ä', data, accessList(access), 'ephemeral-sequential'),
      1,
      'CreateRequest',
      { path: '/ä', data, acl, flags: 3 },
    ],
    [
      'createWithStat',
      Request.create(Op.createWithStat, '/a', data, accessList(access), 'shared'),
      15,
      'CreateRequest',
      { path: '/a', data, acl, flags: 0 },
    ],
    ['remove', new Request(Op.delete, ['/a/b', -1]), 2, 'DeleteRequest', { path: '/a/b', version: -1 }],
    ['exists', new Request(Op.exists, ['/a', true]), 3, 'ExistsRequest', { path: '/a', watch: true }],
    ['read', new Request(Op.getData, ['/a', false]), 4, 'GetDataRequest', { path: '/a', watch: false }],
    [
      'setData',
      new Request(Op.setData, ['/a', Buffer.alloc(0), 3]),
      5,
      'SetDataRequest',
      { path: '/a', data: Buffer.alloc(0), version: 3 },
    ],
    [
      'children',
      new Request(Op.getChildren, ['/', true]),
      12,
      'GetChildren2Request',
      { path: '/', watch: true },
    ],
  ] as const)('%s is what the library sends', (_name, request, type, record, fields) => {
    expect(sent(request)).toEqual(bySpecification(type, record, fields));
  });

  it('multi is what the library sends', () => {
    const ops = [
      {
        type: 1,
        path: '/n',
        data: Buffer.from('x'),
        acls: access.map((_, at) => ({ toRecord: () => acl[at] })),
        mode: 1,
      },
      { type: 5, path: '/s', data, version: 0 },
      { type: 2, path: '/r', version: -1 },
      { type: 13, path: '/c', version: 4 },
    ];
    const header = new jute.protocol.RequestHeader();
    header.type = 14;
    header.xid = 7;
    const multi = Request.multi(
      [
        { type: 'create', path: '/n', data: 'x', mode: 'ephemeral' },
        { type: 'set', path: '/s', data, version: 0 },
        { type: 'remove', path: '/r' },
        { type: 'check', path: '/c', version: 4 },
      ],
      () => accessList(access),
    );
    expect(sent(multi)).toEqual(new jute.Request(header, new jute.TransactionRequest(ops)).toBuffer());
  });
});

const HEAD = Buffer.alloc(20);
const int = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const text = (value: string) => Buffer.concat([int(Buffer.byteLength(value)), Buffer.from(value)]);
const answer = (...parts: readonly Buffer[]) => new Answer(Buffer.concat([HEAD, ...parts]));

describe('an answer', () => {
  it('is read field by field', () => {
    const stat = new jute.data.Stat();
    const long = (value: bigint) => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64BE(value);
      return bytes;
    };
    Object.assign(stat, {
      czxid: long(1n << 40n),
      mzxid: long(9n),
      ctime: long(1_700_000_000_000n),
      mtime: long(1_700_000_000_001n),
    });
    Object.assign(stat, {
      version: 5,
      cversion: 6,
      aversion: 7,
      ephemeralOwner: long(0x0100_0000_0000_00ffn),
      numChildren: 8,
    });
    const bytes = Buffer.alloc(stat.byteLength());
    stat.serialize(bytes, 0);
    const read = answer(text('größe'), int(2), text('a'), text(''), bytes, int(-1));
    expect(read.data().toString()).toBe('größe');
    expect(read.texts()).toEqual(['a', '']);
    expect(read.stat()).toEqual({
      ...{ version: 5, childrenVersion: 6, createdZxid: 1n << 40n, modifiedZxid: 9n, childCount: 8 },
      ...{ createdAt: 1_700_000_000_000, modifiedAt: 1_700_000_000_001, owner: '01000000000000ff' },
    });
    expect(read.data()).toEqual(Buffer.alloc(0));
  });

  it('that ends too soon is an error, however long it says that it is', () => {
    expect(() => answer(int(5), Buffer.from('four')).data()).toThrow(RangeError);
    expect(() => answer(int(0x7fff_ffff), text('a')).texts()).toThrow(RangeError);
    expect(() => answer(Buffer.alloc(67)).stat()).toThrow(RangeError);
    expect(() => answer(int(2), Buffer.from([0]), int(0)).results()).toThrow(RangeError);
  });

  it('of a transaction says which operation was refused, and for what', () => {
    const refused = (code: number) => [int(-1), Buffer.from([0]), int(code), int(code)];
    const results = () =>
      answer(...refused(0), ...refused(-110), ...refused(-2), int(-1), Buffer.from([1]), int(-1)).results();
    expect(results).toThrow(expect.objectContaining({ fault: 'node-exists', index: 1 }));
    expect(() => answer(int(99), Buffer.from([0]), int(0)).results()).toThrow(RangeError);
  });
});
