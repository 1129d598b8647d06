import { isIP } from 'node:net';
import { type Answer, encode, type SrvAnswer } from 'dns-packet';
import { MAX_PORT } from '../../core/base/arguments.js';
import type { RandomSource } from '../../core/base/clock.js';
import type { LeaseClaim } from '../../zookeeper/services/instance/lease-claim.js';

/** What a view knows of a name. */
export type Facts<T> =
  | { readonly kind: 'known'; readonly value: T }
  /** There is no such name. */
  | { readonly kind: 'absent' }
  /** That cannot be said now. */
  | { readonly kind: 'unknown' }
  /** They are being read: ask again when the promise resolves. */
  | { readonly kind: 'pending'; readonly again: Promise<unknown> };

export const ABSENT = { kind: 'absent' } as const;
export const UNKNOWN = { kind: 'unknown' } as const;

/** @param value undefined where there is no such name */
export function factsOf<T>(value: T | undefined): Facts<T> {
  return value === undefined ? ABSENT : { kind: 'known', value };
}

/** @param make returns undefined where there is no such name */
function mapped<T, U>(facts: Facts<T>, make: (value: T) => U | undefined): Facts<U> {
  return facts.kind === 'known' ? factsOf(make(facts.value)) : facts;
}

/** Where something can be reached. */
export interface Endpoint {
  /** An IP address, or a host name with labels that DNS can carry. */
  readonly host: string;
  readonly port?: number | undefined;
  /** The node that it says it is. */
  readonly claim?: LeaseClaim | null;
  /** The task that it may be, where it does not say. */
  readonly taskId?: string;
}

/** An endpoint of a task that need not have said one. */
export interface Reachable {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}

/** The holder of a node id. */
export interface Holder extends Reachable {
  readonly version: number;
  readonly taskId?: string | undefined;
}

/** The owner of a shard. */
export interface ShardOwner extends Reachable {
  readonly token: number;
  readonly nodeId: number;
}

/** What answers are made of. It answers from memory, and its methods do not throw. */
export interface DnsView {
  /** The instances of a service that are enabled and in service. @param name in lower case */
  service(name: string): Facts<readonly Endpoint[]>;
  node(id: number): Facts<Holder>;
  /** The node id that a task holds, as far as that is known. */
  nodeIdOf(taskId: string): number | undefined;
  shard(shard: number): Facts<ShardOwner>;
  /** The addresses of a host name; absent where none are found. */
  addressesOf(host: string): Facts<readonly string[]>;
  /** How long changes may have gone unnoticed, in milliseconds; 0 while every change is seen. */
  staleMs(): number;
}

/** What names are answered from. */
export interface Zone {
  /** In lower case, without a dot at its end. */
  readonly domain: string;
  /** How long others may keep an answer, in seconds. */
  readonly ttl: number;
  /** How long others may keep it that a name or a type does not exist, in seconds. */
  readonly negativeTtl: number;
  readonly view: DnsView;
  readonly random: Pick<RandomSource, 'next'>;
}

/** The result of a lookup, before it is written. The name '' of a record is the name in question. */
export interface Lookup {
  readonly code: 'NOERROR' | 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED';
  readonly answers: Answer[];
  readonly authorities?: Answer[];
  readonly additionals?: Answer[];
  /** Resolves when the same question may have another answer. */
  readonly again?: Promise<unknown>;
}

/** What is at a name. */
interface Entry {
  readonly endpoints: readonly Endpoint[];
  readonly text?: readonly string[];
}

/** How many addresses an answer has: one is enough for its reader, and a few spread the load. */
const MAX_ADDRESSES = 8;
const MAX_TEXT_BYTES = 255;

/**
 * The names below the domain. Those without a group have only names below them: to deny one would deny these
 * (RFC 8020).
 */
const NAMES = new RegExp(
  [
    '^(?:|_tcp\\.service|_tcp|service|node|shard|addr',
    '_(?<service>.+)\\._tcp(?:\\.service)?',
    '(?<plain>.+)\\.service',
    '(?<node>0|[1-9]\\d{0,5})\\.node',
    '(?<shard>0|[1-9]\\d{0,5})\\.shard',
    '(?<hex>[0-9a-f]{8}|[0-9a-f]{32})\\.addr)$',
  ].join('|'),
);

/** Answers a question from what is known now. Never throws. */
export function lookUp({ name, type }: { readonly name: string; readonly type: string }, zone: Zone): Lookup {
  const { domain, view } = zone;
  const [lower, below] = [name.toLowerCase(), `.${domain}`];
  const isApex = lower === domain;
  if (!isApex && !lower.endsWith(below)) return { code: 'REFUSED', answers: [] };
  const entry = entryAt(isApex ? '' : lower.slice(0, -below.length), view);
  const lookup = entry.kind === 'known' ? recordsOf(entry.value, type, isApex, zone) : without(entry);
  const isNegative = lookup.answers.length === 0 && lookup.code !== 'SERVFAIL';
  return isNegative ? { ...lookup, authorities: [apexRecord('SOA', zone)] } : lookup;
}

/** The answer without facts. */
function without(facts: Facts<never>): Lookup {
  if (facts.kind === 'absent') return { code: 'NXDOMAIN', answers: [] };
  return { code: 'SERVFAIL', answers: [], ...(facts.kind === 'pending' && { again: facts.again }) };
}

function entryAt(name: string, view: DnsView): Facts<Entry> {
  const match = NAMES.exec(name);
  if (match === null) return ABSENT;
  const { plain, service = plain, node, shard, hex } = match.groups as Partial<Record<string, string>>;
  if (service !== undefined)
    return mapped(view.service(service), (endpoints) => (endpoints.length > 0 ? { endpoints } : undefined));
  if (hex !== undefined) {
    const host = hex.length === 8 ? Buffer.from(hex, 'hex').join('.') : hex.replace(/.{4}(?=.)/g, '$&:');
    return factsOf({ endpoints: [{ host }] });
  }
  if (node !== undefined)
    return mapped(view.node(Number(node)), ({ version, taskId, ...where }) =>
      entryOf(where, [`version=${version}`, ...(taskId === undefined ? [] : [`task=${taskId}`])]),
    );
  if (shard === undefined) return factsOf({ endpoints: [] });
  return mapped(view.shard(Number(shard)), ({ token, nodeId, ...where }) =>
    entryOf(where, [`token=${token}`, `node=${nodeId}`], { nodeId, version: null }),
  );
}

function entryOf({ host, port }: Reachable, text: readonly string[], claim: LeaseClaim | null = null): Entry {
  return { endpoints: host === undefined ? [] : [{ host, port, claim }], text };
}

function recordsOf(entry: Entry, type: string, isApex: boolean, zone: Zone): Lookup {
  const { endpoints, text } = entry;
  if (type === 'ANY') {
    // One record set is a full answer, and no amplifier (RFC 8482).
    const types = isApex ? ['SOA'] : ['A', 'AAAA', 'TXT'];
    const all = types.map((each) => recordsOf(entry, each, isApex, zone));
    return all.find(({ answers }) => answers.length > 0) ?? (all[0] as Lookup);
  }
  if (type === 'A' || type === 'AAAA') return addressRecords(endpoints, type, zone);
  if (type === 'SRV') return serverRecords(endpoints, zone);
  if (type === 'TXT' && text) {
    const data = text.map((each) => Buffer.from(each).subarray(0, MAX_TEXT_BYTES));
    return found([{ type, name: '', ttl: ttlOf(zone), data }]);
  }
  if ((type === 'SOA' || type === 'NS') && isApex) return found([{ ...apexRecord(type, zone), name: '' }]);
  return addressRecords(endpoints, 'CNAME', zone);
}

function found(answers: Answer[], additionals: Answer[] = []): Lookup {
  return { code: 'NOERROR', answers, additionals };
}

/** The addresses of one family, or the other name that stands for them: the answer to `CNAME` is that alone. */
function addressRecords(endpoints: readonly Endpoint[], type: 'A' | 'AAAA' | 'CNAME', zone: Zone): Lookup {
  const hosts = new Set<string>();
  for (const { host } of turned(endpoints, zone)) {
    if (type === 'CNAME' || (typeOf(host) ?? type) === type) hosts.add(host);
    if (hosts.size === MAX_ADDRESSES) break;
  }
  const ttl = ttlOf(zone);
  const records = (name: string, addresses: Iterable<string>) =>
    Array.from(addresses).flatMap((data) => (typeOf(data) === type ? { type, name, ttl, data } : []));
  // A name has addresses or one other name: the first one decides.
  for (const host of hosts) {
    if (typeOf(host) !== undefined) return found(records('', hosts));
    const addresses = zone.view.addressesOf(host);
    if (addresses.kind === 'absent') continue;
    if (addresses.kind !== 'known') return without(addresses);
    return found([{ type: 'CNAME', name: '', ttl, data: host }, ...records(host, addresses.value)]);
  }
  return hosts.size === 0 ? found([]) : without(UNKNOWN);
}

function serverRecords(endpoints: readonly Endpoint[], zone: Zone): Lookup {
  const ttl = ttlOf(zone);
  const targets = new Map<string, Answer[]>();
  const answers: Answer[] = [];
  for (const endpoint of turned(endpoints, zone)) {
    const { host, port } = endpoint;
    if (port === undefined || port < 1 || port > MAX_PORT) continue;
    const type = typeOf(host);
    const target = type === undefined ? host : `${ownNameOf(endpoint, type, zone)}.${zone.domain}`;
    const data: SrvAnswer['data'] = { priority: 1, weight: 1, port, target };
    answers.push({ type: 'SRV', name: '', ttl, data });
    targets.set(target, type === undefined ? [] : [{ type, name: target, ttl, data: host }]);
  }
  return found(answers, [...targets.values()].flat());
}

/** The name of an address: that of its node, where the tree agrees, or one that says the address. */
function ownNameOf({ host, claim, taskId }: Endpoint, type: 'A' | 'AAAA', { view }: Zone): string {
  const nodeId = claim?.nodeId ?? (taskId === undefined ? undefined : view.nodeIdOf(taskId));
  const facts = nodeId === undefined ? ABSENT : view.node(nodeId);
  const holder = facts.kind === 'known' ? facts.value : undefined;
  if (holder?.host === host && [null, holder.version].includes(claim?.version ?? null))
    return `${nodeId}.node`;
  // The end of a message with such a record is its address.
  const message = encode({ answers: [{ type, name: '.', data: host }] });
  return `${message.subarray(type === 'A' ? -4 : -16).toString('hex')}.addr`;
}

const DIGITS = /^[\d.]+$/;

/** Whether it is an IP address without a zone, or a host name that DNS can carry, also with a dot last. */
export function isHost(text: string): boolean {
  const labels = text.replace(/\.$/, '').split('.');
  const isName = text.length <= 253 && labels.every((label) => /^[A-Za-z0-9_-]{1,63}$/.test(label));
  return isIP(text) === 0 ? isName && !DIGITS.test(text) : !text.includes('%');
}

/** The type of the record of an address; undefined for a host name. The text is one of {@link isHost}. */
function typeOf(host: string): 'A' | 'AAAA' | undefined {
  if (host.includes(':')) return 'AAAA';
  return DIGITS.test(host) ? 'A' : undefined;
}

/** What may be old already is not kept. */
function ttlOf({ ttl, view }: Zone): number {
  return ttl > 0 && view.staleMs() > 0 ? 0 : ttl;
}

/** From a random one on, so that each comes first as often: an answer may not have room for all. */
function turned<T>(all: readonly T[], { random }: Zone): readonly T[] {
  const first = Math.floor(random.next() * all.length);
  return all.map((_, at) => all[(first + at) % all.length] as T);
}

/**
 * Resolvers keep a negative answer for the lesser of the TTL of this record and its minimum (RFC 2308), so
 * both are the same.
 */
function apexRecord(type: 'SOA' | 'NS', { domain, negativeTtl: ttl }: Zone): Answer {
  const mname = `ns.${domain}`;
  if (type === 'NS') return { type, name: domain, ttl, data: mname };
  const rname = `hostmaster.${domain}`;
  const data = { mname, rname, serial: 1, refresh: 3_600, retry: 600, expire: 86_400, minimum: ttl };
  return { type, name: domain, ttl, data };
}
