import { type Answer, decode, encode, type Packet } from 'dns-packet';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../test/support/virtual-clock.js';
import { replyTo, type Transport } from './message.js';
import {
  type DnsView,
  type Endpoint,
  type Facts,
  factsOf,
  type Holder,
  isHost,
  type ShardOwner,
  UNKNOWN,
  type Zone,
} from './zone.js';

interface Names {
  readonly services?: Readonly<Record<string, readonly Endpoint[] | Facts<never>>>;
  readonly nodes?: Readonly<Record<number, Holder | Facts<never>>>;
  readonly shards?: Readonly<Record<number, ShardOwner | Facts<never>>>;
  readonly hosts?: Readonly<Record<string, readonly string[] | Facts<never>>>;
  readonly staleMs?: number;
}

function known<T extends object>(named: T | Facts<never> | undefined): Facts<T> {
  return named !== undefined && 'kind' in named ? named : factsOf(named);
}

function zoneOf({ services, nodes, shards, hosts, staleMs = 0 }: Names, settings: Partial<Zone> = {}): Zone {
  const view: DnsView = {
    nodeIdOf: (taskId) => (taskId === 'task-6' ? 6 : undefined),
    service: (name) => known(services?.[name]),
    node: (id) => known(nodes?.[id]),
    shard: (shard) => known(shards?.[shard]),
    addressesOf: (host) => known(hosts?.[host]),
    staleMs: () => staleMs,
  };
  return { domain: 'nodelease', ttl: 0, negativeTtl: 1, view, random: seededRandom(1), ...settings };
}

const OPT: Answer = {
  ...{ type: 'OPT', name: '.', extendedRcode: 0, ednsVersion: 0, flags: 0, flag_do: false, options: [] },
  udpPayloadSize: 1_232,
};

type Asked = Packet & { readonly transport?: Transport };

function query(name: string, type = 'A', { transport: _, ...more }: Asked = {}): Buffer {
  const questions = [{ name, type }] as NonNullable<Packet['questions']>;
  return encode({ type: 'query', id: 7, flags: 0x100, questions, ...more });
}

/** The reply to a question, as a client reads it. */
function ask(zone: Zone, name: string, type = 'A', more: Asked = {}) {
  const reply = replyTo(query(name, type, more), zone, more.transport ?? 'udp');
  if (reply === undefined) throw new Error('there is no reply');
  const packet = decode(reply.bytes);
  const records = (list: readonly Answer[] = []) =>
    list
      .filter((record) => record.type !== 'OPT')
      .map((record) => ({ ...record, class: undefined, flush: undefined }));
  return {
    code: reply.code,
    packet,
    bytes: reply.bytes.length,
    truncated: packet.flag_tc,
    opt: packet.additionals?.find((record) => record.type === 'OPT'),
    answers: records(packet.answers),
    authorities: records(packet.authorities),
    additionals: records(packet.additionals),
    data: records(packet.answers).map((record) => ('data' in record ? record.data : undefined)),
  };
}

const instances = (count: number): Endpoint[] =>
  Array.from({ length: count }, (_, at) => ({ host: `10.0.${at >> 8}.${at & 0xff}`, port: 8_080 }));

const SOA = {
  ...{ type: 'SOA', name: 'nodelease', ttl: 1 },
  data: {
    ...{ mname: 'ns.nodelease', rname: 'hostmaster.nodelease', serial: 1, refresh: 3_600, retry: 600 },
    ...{ expire: 86_400, minimum: 1 },
  },
};

describe('a service', () => {
  it('has the addresses of its instances, of each family, with TTL 0, by a name of any case', () => {
    const zone = zoneOf({ services: { orders: [{ host: '10.0.0.7' }, { host: '2001:db8::7' }] } });
    const reply = ask(zone, 'Orders.SERVICE.nodelease');
    expect(reply).toMatchObject({
      code: 'NOERROR',
      truncated: false,
      packet: { flag_aa: true, flag_rd: true },
    });
    expect(reply.packet.questions?.[0]?.name).toBe('Orders.SERVICE.nodelease');
    expect(reply.answers).toEqual([
      expect.objectContaining({ name: 'Orders.SERVICE.nodelease', type: 'A', ttl: 0, data: '10.0.0.7' }),
    ]);
    expect(ask(zone, 'orders.service.nodelease', 'AAAA').data).toEqual(['2001:db8::7']);
  });

  it('has up to 8 addresses, drawn at random, and they are never truncated', () => {
    const zone = zoneOf({ services: { orders: instances(100) } });
    const seen = new Set<unknown>();
    for (let round = 0; round < 300; round += 1) {
      const { data, truncated } = ask(zone, 'orders.service.nodelease');
      expect([new Set(data).size, truncated]).toEqual([8, false]);
      for (const address of data) seen.add(address);
    }
    expect(seen.size).toBe(100);
  });

  it('is named by a pointer to the question, so that an address takes 16 bytes', () => {
    const zone = zoneOf({ services: { orders: instances(8) } });
    const asked = query('Orders.service.nodelease').length;
    expect(ask(zone, 'Orders.service.nodelease').bytes).toBe(asked + 8 * 16);
  });

  it('has all instances as SRV, with the names of nodes only where the tree agrees', () => {
    const node = (nodeId: number, version: number) => ({ nodeId, version });
    const zone = zoneOf({
      services: {
        orders: [
          { host: '10.0.0.7', port: 80, claim: node(7, 3) },
          { host: '10.0.0.8', port: 81, claim: node(8, 3) },
          { host: '10.0.0.9', port: 82, claim: node(9, 3) },
          { host: '10.0.0.6', port: 85, claim: null, taskId: 'task-6' },
          { host: '10.0.0.5', port: 86, claim: null, taskId: 'task-5' },
          { host: '2001:db8::1', port: 83 },
          { host: 'db.example.com', port: 84 },
          { host: '10.0.0.10' },
        ],
      },
      nodes: {
        6: { version: 3, host: '10.0.0.6' },
        7: { version: 3, host: '10.0.0.7' },
        8: { version: 4, host: '10.0.0.8' },
        9: { version: 3, host: '10.9.9.9' },
      },
    });
    for (const name of [
      'orders.service.nodelease',
      '_orders._tcp.nodelease',
      '_orders._tcp.service.nodelease',
    ]) {
      const { data, additionals } = ask(zone, name, 'SRV', { transport: 'tcp' });
      const target = (port: number, to: string) => ({ priority: 1, weight: 1, port, target: to });
      expect(data.sort((a, b) => Object(a).port - Object(b).port)).toEqual([
        target(80, '7.node.nodelease'),
        target(81, '0a000008.addr.nodelease'),
        target(82, '0a000009.addr.nodelease'),
        target(83, '20010db8000000000000000000000001.addr.nodelease'),
        target(84, 'db.example.com'),
        target(85, '6.node.nodelease'),
        target(86, '0a000005.addr.nodelease'),
      ]);
      const owners = additionals.map((record) => [record.type, record.name, Object(record).data]).sort();
      expect(owners).toEqual([
        ['A', '0a000005.addr.nodelease', '10.0.0.5'],
        ['A', '0a000008.addr.nodelease', '10.0.0.8'],
        ['A', '0a000009.addr.nodelease', '10.0.0.9'],
        ['A', '6.node.nodelease', '10.0.0.6'],
        ['A', '7.node.nodelease', '10.0.0.7'],
        ['AAAA', '20010db8000000000000000000000001.addr.nodelease', '2001:db8::1'],
      ]);
    }
  });

  it('with 40 instances is truncated by UDP and says so, and is whole by TCP', () => {
    const zone = zoneOf({ services: { orders: instances(40) } });
    const plain = ask(zone, 'orders.service.nodelease', 'SRV');
    expect(plain.truncated).toBe(true);
    expect(plain.bytes).toBeLessThanOrEqual(512);
    expect(plain.answers.length).toBeGreaterThan(0);
    const large = ask(zone, 'orders.service.nodelease', 'SRV', {
      additionals: [{ ...OPT, udpPayloadSize: 4_096 }],
    });
    expect(large).toMatchObject({ truncated: true, opt: { udpPayloadSize: 1_232 } });
    expect(large.bytes).toBeGreaterThan(512);
    expect(large.bytes).toBeLessThanOrEqual(1_232);
    const whole = ask(zone, 'orders.service.nodelease', 'SRV', { transport: 'tcp' });
    expect(whole).toMatchObject({ truncated: false, answers: { length: 40 }, additionals: { length: 40 } });
  });

  it('with no instance, or that does not exist, is NXDOMAIN with a negative TTL in the SOA record', () => {
    const zone = zoneOf({ services: { empty: [] } });
    for (const name of ['empty.service.nodelease', 'other.service.nodelease', '_other._tcp.nodelease'])
      expect(ask(zone, name)).toMatchObject({ code: 'NXDOMAIN', answers: [], authorities: [SOA] });
    const kept = zoneOf({}, { negativeTtl: 30 });
    const [soa] = ask(kept, 'other.service.nodelease').authorities;
    expect(soa).toMatchObject({ ttl: 30, data: { minimum: 30 } });
  });

  it('that has not been read is SERVFAIL, and never NXDOMAIN; with what to wait for', () => {
    const ready = Promise.resolve();
    const zone = zoneOf({ services: { away: UNKNOWN, coming: { kind: 'pending', again: ready } } });
    for (const name of ['away.service.nodelease', 'coming.service.nodelease'])
      expect(ask(zone, name)).toMatchObject({ code: 'SERVFAIL', authorities: [] });
    expect(replyTo(query('coming.service.nodelease'), zone, 'udp')?.again).toBe(ready);
    expect(replyTo(query('away.service.nodelease'), zone, 'udp')?.again).toBeUndefined();
  });

  it('of a host name is its CNAME with the addresses of that name; SERVFAIL where it has none', () => {
    const host = { host: 'db.example.com', port: 5_432 };
    const hosts = { 'db.example.com': ['192.0.2.1', '2001:db8::5'] };
    const services = { orders: [host] };
    const { answers } = ask(zoneOf({ services, hosts }), 'orders.service.nodelease');
    expect(answers.map((each) => [each.type, each.name, Object(each).data])).toEqual([
      ['CNAME', 'orders.service.nodelease', 'db.example.com'],
      ['A', 'db.example.com', '192.0.2.1'],
    ]);
    expect(ask(zoneOf({ services }), 'orders.service.nodelease').code).toBe('SERVFAIL');
    // A name with a CNAME has nothing else: an instance with an address is another draw.
    const mixed = zoneOf({ services: { orders: [host, { host: '10.0.0.7' }] }, hosts });
    const shapes = Array.from({ length: 50 }, () =>
      ask(mixed, 'orders.service.nodelease')
        .answers.map(({ type }) => type)
        .join('+'),
    );
    expect(new Set(shapes)).toEqual(new Set(['A', 'CNAME+A']));
    // The one with an address is left where the name has none.
    const half = zoneOf({ services: { orders: [host, { host: '10.0.0.7' }] } });
    for (let round = 0; round < 20; round += 1)
      expect(ask(half, 'orders.service.nodelease').data).toEqual(['10.0.0.7']);
  });

  it('may be a host name that ends with a dot', () => {
    const services = { orders: [{ host: 'db.example.com.', port: 5_432 }] };
    const zone = zoneOf({ services, hosts: { 'db.example.com.': ['192.0.2.1'] } });
    expect(ask(zone, 'orders.service.nodelease').data).toEqual(['db.example.com', '192.0.2.1']);
    const texts = ['db.example.com.', '.', '..', 'db..', '10.0.0.7.'];
    expect(texts.filter(isHost)).toEqual(['db.example.com.']);
  });

  it('of a host name has its CNAME for all types without their own records', () => {
    const services = { orders: [{ host: 'db.example.com', port: 5_432 }], plain: [{ host: '10.0.0.7' }] };
    const zone = zoneOf({ services, hosts: { 'db.example.com': ['192.0.2.1'] } });
    const cname = [{ type: 'CNAME', name: 'orders.service.nodelease', data: 'db.example.com' }];
    for (const type of ['CNAME', 'MX', 'TXT']) {
      expect(ask(zone, 'orders.service.nodelease', type)).toMatchObject({ answers: cname, authorities: [] });
      expect(ask(zone, 'plain.service.nodelease', type)).toMatchObject({ answers: [], authorities: [SOA] });
    }
    expect(ask(zone, 'orders.service.nodelease', 'SRV').answers).toMatchObject([{ type: 'SRV' }]);
  });

  it('has at most 25 times the size of its question by UDP, and says that it is cut', () => {
    const zone = zoneOf({ services: { o: instances(40) } }, { domain: 'n' });
    const more = { additionals: [OPT] };
    const { bytes, truncated } = ask(zone, 'o.service.n', 'SRV', more);
    const asked = query('o.service.n', 'SRV', more).length;
    expect([bytes > 512, bytes <= 25 * asked, 25 * asked < 1_232, truncated]).toEqual([
      true,
      true,
      true,
      true,
    ]);
  });

  it('may be kept for the TTL of the settings, but not while the data are old', () => {
    const services = { orders: [{ host: '10.0.0.7' }] };
    expect(ask(zoneOf({ services }, { ttl: 5 }), 'orders.service.nodelease').answers[0]).toMatchObject({
      ttl: 5,
    });
    const old = zoneOf({ services, staleMs: 1 }, { ttl: 5 });
    expect(ask(old, 'orders.service.nodelease').answers[0]).toMatchObject({ ttl: 0 });
  });
});

describe('a node id and a shard', () => {
  const zone = zoneOf({
    nodes: { 7: { version: 3, taskId: 'task-a', host: '10.0.0.7' }, 8: { version: 1 }, 9: UNKNOWN },
    shards: { 12: { token: 41, nodeId: 7, host: '10.0.0.7', port: 8_080 } },
  });

  it('have the address and the facts of their holder', () => {
    expect(ask(zone, '7.node.nodelease').data).toEqual(['10.0.0.7']);
    const text = (name: string) => Object(ask(zone, name, 'TXT').data[0]).map(String);
    expect(text('7.node.nodelease')).toEqual(['version=3', 'task=task-a']);
    expect(text('12.shard.nodelease')).toEqual(['token=41', 'node=7']);
    expect(ask(zone, '12.shard.nodelease').data).toEqual(['10.0.0.7']);
    expect(ask(zone, '12.shard.nodelease', 'SRV').data).toEqual([
      { priority: 1, weight: 1, port: 8_080, target: '7.node.nodelease' },
    ]);
  });

  it('are NXDOMAIN without a holder, and have no address where the holder says none', () => {
    for (const name of [
      '6.node.nodelease',
      '07.node.nodelease',
      '99999999.node.nodelease',
      '3.shard.nodelease',
    ])
      expect(ask(zone, name).code).toBe('NXDOMAIN');
    expect(ask(zone, '8.node.nodelease')).toMatchObject({ code: 'NOERROR', answers: [], authorities: [SOA] });
    expect(ask(zone, '9.node.nodelease').code).toBe('SERVFAIL');
  });

  it('have an address by its digits', () => {
    expect(ask(zone, '0a000007.addr.nodelease').data).toEqual(['10.0.0.7']);
    expect(ask(zone, '20010db8000000000000000000000001.addr.nodelease', 'AAAA').data).toEqual([
      '2001:db8::1',
    ]);
    expect(ask(zone, '0a0000.addr.nodelease').code).toBe('NXDOMAIN');
  });
});

describe('the zone', () => {
  const zone = zoneOf({ services: { orders: [{ host: '10.0.0.7' }] } });

  it('has SOA and NS at its apex, and nothing for other types', () => {
    expect(ask(zone, 'nodelease', 'SOA').answers).toMatchObject([SOA]);
    expect(ask(zone, 'nodelease', 'NS').data).toEqual(['ns.nodelease']);
    expect(ask(zone, 'nodelease')).toMatchObject({ code: 'NOERROR', answers: [], authorities: [SOA] });
    expect(ask(zone, 'orders.service.nodelease', 'MX')).toMatchObject({
      code: 'NOERROR',
      authorities: [SOA],
    });
  });

  it('does not deny names that have names below them', () => {
    for (const name of ['service', 'node', 'shard', 'addr', '_tcp', '_tcp.service'])
      expect(ask(zone, `${name}.nodelease`)).toMatchObject({ code: 'NOERROR', answers: [] });
  });

  it('answers ANY with one record, and refuses the names of others and other classes', () => {
    expect(ask(zone, 'orders.service.nodelease', 'ANY').data).toEqual(['10.0.0.7']);
    expect(ask(zone, 'nodelease', 'ANY').answers).toMatchObject([SOA]);
    for (const name of ['example.com', 'xnodelease', '.'])
      expect(ask(zone, name)).toMatchObject({ code: 'REFUSED', answers: [], authorities: [] });
    const questions = [{ name: 'orders.service.nodelease', type: 'A', class: 'CH' } as const];
    expect(ask(zone, '', 'A', { questions }).code).toBe('REFUSED');
    for (const type of ['AXFR', 'IXFR'])
      expect(ask(zone, 'nodelease', type, { transport: 'tcp' })).toMatchObject({
        code: 'REFUSED',
        answers: [],
      });
  });

  it('answers ANY with a record that there is, also where there is no IPv4 address', () => {
    const others = zoneOf({
      services: { orders: [{ host: '2001:db8::7' }] },
      nodes: { 7: { version: 3 }, 8: UNKNOWN },
    });
    expect(ask(others, 'orders.service.nodelease', 'ANY').data).toEqual(['2001:db8::7']);
    expect(ask(others, '7.node.nodelease', 'ANY').answers).toMatchObject([{ type: 'TXT' }]);
    expect(ask(others, '8.node.nodelease', 'ANY').code).toBe('SERVFAIL');
    expect(ask(others, 'node.nodelease', 'ANY')).toMatchObject({ code: 'NOERROR', authorities: [SOA] });
  });
});

describe('EDNS and malformed queries', () => {
  const zone = zoneOf({ services: { orders: instances(1) } });
  const edns = { additionals: [OPT] };

  it('has an OPT record in every reply to a query with one, and in no other', () => {
    const names = ['orders.service.nodelease', 'other.service.nodelease', 'example.com'];
    for (const name of names) {
      expect(ask(zone, name, 'A', edns).opt).toMatchObject({
        udpPayloadSize: 1_232,
        ednsVersion: 0,
        extendedRcode: 0,
      });
      expect(ask(zone, name).opt).toBeUndefined();
    }
    expect(ask(zone, 'orders.service.nodelease', 'A', { ...edns, flags: 4 << 11 })).toMatchObject({
      code: 'NOTIMP',
      opt: { ednsVersion: 0 },
    });
    const two = { name: 'orders.service.nodelease', type: 'A' } as const;
    expect(ask(zone, '', 'A', { ...edns, questions: [two, two] })).toMatchObject({
      code: 'FORMERR',
      opt: { flags: 0 },
    });
  });

  it('answers versions above 0 with BADVERS and its own version', () => {
    const later = { additionals: [{ ...OPT, ednsVersion: 1 }] as Answer[] };
    const reply = ask(zone, 'orders.service.nodelease', 'A', later);
    expect(reply).toMatchObject({ code: 'BADVERS', answers: [], opt: { extendedRcode: 1, ednsVersion: 0 } });
    expect((reply.packet.flags ?? 0) & 0xf).toBe(0);
  });

  it('takes an OPT record at the root only', () => {
    const plain = query('orders.service.nodelease', 'A', edns);
    // The record has eleven bytes, of which the first one is the root.
    const named = Buffer.concat([plain.subarray(0, -11), Buffer.from('\x01n\0'), plain.subarray(-10)]);
    expect(replyTo(plain, zone, 'udp')).toMatchObject({ code: 'NOERROR' });
    expect(replyTo(named, zone, 'udp')).toMatchObject({ code: 'FORMERR' });
  });

  it('reads a label with a dot in it as one label', () => {
    const asked = (...labels: string[]) => {
      const name = labels.map((label) => String.fromCharCode(label.length) + label).join('');
      const head = Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
      return replyTo(Buffer.concat([head, Buffer.from(`${name}\0\0\x01\0\x01`)]), zone, 'udp');
    };
    expect(asked('orders', 'service', 'nodelease')).toMatchObject({ code: 'NOERROR' });
    expect(asked('orders.service', 'nodelease')).toMatchObject({ code: 'NXDOMAIN' });
    expect(asked('orders', 'service.nodelease')).toMatchObject({ code: 'REFUSED' });
    expect(asked('orders.service.nodelease')).toMatchObject({ code: 'REFUSED' });
  });

  it('denies names that are not ASCII, as others: resolvers ask again, and other servers, after FORMERR', () => {
    for (const name of ['örders.service.nodelease', 'two words.service.nodelease', '\0.nodelease'])
      expect(ask(zone, name)).toMatchObject({
        ...{ code: 'NXDOMAIN', authorities: [SOA] },
        packet: { questions: [{ name }] },
      });
    expect(ask(zone, 'ö.example.com').code).toBe('REFUSED');
  });

  it('answers nothing to a response and to less than a head, and FORMERR to what cannot be read', () => {
    const response = query('orders.service.nodelease');
    response.writeUInt8(0x80, 2);
    expect(replyTo(response, zone, 'udp')).toBeUndefined();
    expect(replyTo(Buffer.alloc(11), zone, 'udp')).toBeUndefined();
    const torn = query('orders.service.nodelease').subarray(0, -3);
    expect(replyTo(torn, zone, 'udp')).toMatchObject({ code: 'FORMERR' });
    // Its name ends with a pointer to a zero of the head.
    const pointing = query('orders.service.nodelease');
    const end = pointing.length - 5;
    const pointer = Buffer.concat([
      pointing.subarray(0, end),
      Buffer.of(0xc0, 6),
      pointing.subarray(end + 1),
    ]);
    expect(replyTo(pointer, zone, 'udp')).toMatchObject({ code: 'FORMERR' });
    // Its name is n, and x, which is read from the id of the message.
    const head = Buffer.from([1, 0x78, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    const intoHead = Buffer.concat([head, Buffer.from([1, 0x6e, 0xc0, 0, 0, 1, 0, 1])]);
    expect(replyTo(intoHead, zone, 'udp')).toMatchObject({ code: 'FORMERR' });
    // It says that it has some hundred thousand records.
    const large = query('orders.service.nodelease');
    large.fill(0xff, 6, 12);
    expect(replyTo(large, zone, 'udp')).toMatchObject({ code: 'FORMERR' });
  });

  it('never throws, and no reply is longer than allowed: a hundred thousand mutated packets', () => {
    const zones = [
      zoneOf({
        services: { orders: instances(20) },
        nodes: { 7: { version: 1, taskId: 'x'.repeat(999), host: '10.0.0.7' } },
      }),
      zoneOf({
        services: { orders: [{ host: 'db.example.com', port: 1 }] },
        hosts: { 'db.example.com': ['::1'] },
      }),
    ];
    const random = seededRandom(20_261_126);
    const below = (bound: number) => Math.floor(random.next() * bound);
    const seeds = [
      'orders.service.nodelease',
      '7.node.nodelease',
      '0a000007.addr.nodelease',
      'nodelease',
    ].flatMap((name) =>
      ['A', 'AAAA', 'SRV', 'TXT', 'SOA', 'ANY'].flatMap((type) => [
        query(name, type),
        query(name, type, edns),
      ]),
    );
    const codes = new Set<string>();
    const longest = { udp: 0, tcp: 0 };
    for (let round = 0; round < 100_000; round += 1) {
      let bytes = Buffer.from(seeds[below(seeds.length)] as Buffer);
      for (let mutation = below(4); mutation >= 0; mutation -= 1) {
        const kind = below(8);
        if (kind === 0) bytes = bytes.subarray(0, below(bytes.length + 1));
        else if (kind === 1) bytes = Buffer.concat([bytes, seeds[below(seeds.length)] as Buffer]);
        else if (bytes.length > 0) bytes[below(bytes.length)] = below(256);
      }
      const transport = below(2) === 0 ? 'udp' : 'tcp';
      const reply = replyTo(bytes, zones[below(2)] as Zone, transport);
      codes.add(reply?.code ?? 'none');
      longest[transport] = Math.max(longest[transport], reply?.bytes.length ?? 0);
    }
    expect(longest.udp).toBeGreaterThan(512);
    expect(longest.udp).toBeLessThanOrEqual(1_232);
    expect(longest.tcp).toBeGreaterThan(1_232);
    expect(longest.tcp).toBeLessThanOrEqual(65_535);
    expect(codes).toEqual(
      new Set(['NOERROR', 'NXDOMAIN', 'REFUSED', 'FORMERR', 'NOTIMP', 'BADVERS', 'none']),
    );
  });
});
