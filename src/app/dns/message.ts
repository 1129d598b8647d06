import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  answer,
  type DecodedPacket,
  decode,
  type OptAnswer,
  type Question,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { type Lookup, lookUp, type Zone } from './zone.js';

declare module 'dns-packet' {
  /** Writes one record. The package exports it, its types do not. */
  export const answer: {
    readonly encode: {
      (record: Answer, message: Buffer, at: number): Buffer;
      readonly bytes: number;
    };
  };
}

/** The response codes, as on the wire; the one above 15 has its upper bits in the OPT record. */
const CODES = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  BADVERS: 16,
} as const;

/** A reply, and what is counted of it. */
export interface Reply {
  readonly bytes: Buffer;
  /** The type that was asked for; `other` for one without records here. */
  readonly type: string;
  readonly code: keyof typeof CODES;
  /** Whether answers did not fit. */
  readonly truncated: boolean;
  /** Resolves when the same query may have another reply. */
  readonly again?: Promise<unknown> | undefined;
}

export type Transport = 'udp' | 'tcp';

const HEAD_BYTES = 12;
/** Of the second two bytes of the head. */
const [RESPONSE, OPCODE] = [0x8000, 0x7800];
/** A pointer to the question, which follows the head. */
const QUESTION = 0xc000 | HEAD_BYTES;
/** The least first byte of such a pointer. */
const POINTER = 0xc0;
/** A query has one question and an OPT record. More records are decoded so far, to find the OPT. */
const MAX_RECORDS = 16;
/** What every client takes by UDP, what is sent to clients that take more, and what TCP can carry. */
const [MIN_BYTES, UDP_BYTES, TCP_BYTES] = [512, 1_232, 65_535];
/** The most bytes of an answer by UDP for a byte of its question, whose sender may be forged. */
const AMPLIFICATION = 25;
const OPT_BYTES = 11;
const TYPES = new Set(['A', 'AAAA', 'SRV', 'TXT', 'SOA', 'NS', 'ANY']);

/**
 * The reply to a query; undefined for what must not be answered: a response, and less than a head. Never
 * throws. No reply is longer than the transport and the client allow.
 */
export function replyTo(query: Buffer, zone: Zone, transport: Transport): Reply | undefined {
  if (query.length < HEAD_BYTES || (query.readUInt16BE(2) & RESPONSE) !== 0) return undefined;
  const { questions: [question, another] = [], additionals = [] } = decoded(query) ?? {};
  const [opt, second] = additionals.filter((record) => record.type === 'OPT');
  const refused = (code: Reply['code']) => written(query, undefined, { code, answers: [] }, opt, transport);
  if ((query.readUInt16BE(2) & OPCODE) !== 0) return refused('NOTIMP');
  const isOne = another === undefined && second === undefined && (opt?.name ?? '.') === '.';
  const asked = question && questionIn(query);
  if (asked === undefined || !isOne) return refused('FORMERR');
  if (opt !== undefined && opt.ednsVersion > 0) return refused('BADVERS');
  const { type, class: ofClass } = question as Question;
  // No names are listed (RFC 5936).
  const isLookup = ofClass === 'IN' && type !== 'AXFR' && type !== 'IXFR';
  const lookup: Lookup = isLookup ? lookUp({ ...asked, type }, zone) : { code: 'REFUSED', answers: [] };
  return written(query, { ...asked, type }, lookup, opt, transport);
}

/** Undefined for a message that is malformed. */
function decoded(query: Buffer): DecodedPacket | undefined {
  let records = 0;
  for (let at = 4; at < HEAD_BYTES; at += 2) records += query.readUInt16BE(at);
  if (records > MAX_RECORDS) return undefined;
  try {
    return decode(query);
  } catch {
    return undefined;
  }
}

/**
 * The name of the question, and where it ends; undefined for one with a pointer. A dot within a label is a
 * backslash here: it separates no labels.
 */
function questionIn(query: Buffer) {
  const labels: string[] = [];
  let at = HEAD_BYTES;
  for (let length = query[at]; length; length = query[at]) {
    if (length >= POINTER) return undefined;
    labels.push(query.toString('latin1', at + 1, at + 1 + length).replaceAll('.', '\\'));
    at += 1 + length;
  }
  // With the zero, its type and its class.
  return { name: labels.join('.'), end: at + 5 };
}

function written(
  query: Buffer,
  question: { readonly type: string; readonly end: number } | undefined,
  lookup: Omit<Lookup, 'code'> & { readonly code: Reply['code'] },
  asked: OptAnswer | undefined,
  transport: Transport,
): Reply {
  const { code, answers, authorities = [], additionals = [], again } = lookup;
  const clientBytes = Math.max(MIN_BYTES, Math.min(asked?.udpPayloadSize ?? 0, UDP_BYTES));
  const limit = transport === 'tcp' ? TCP_BYTES : Math.min(clientBytes, AMPLIFICATION * query.length);
  let end = query.copy(message, 0, 0, question?.end ?? HEAD_BYTES);
  // As many records as fit.
  const append = (records: readonly Answer[], max: number): number => {
    let count = 0;
    for (const each of records) {
      // The name in question is a pointer to it (RFC 1035, 4.1.4): a byte more than the empty name.
      const start = each.name === '' ? end + 1 : end;
      answer.encode(each, message, start);
      const next = start + answer.encode.bytes;
      if (next > max) break;
      if (start > end) message.writeUInt16BE(QUESTION, end);
      end = next;
      count += 1;
    }
    return count;
  };
  const rest = limit - OPT_BYTES;
  const count = append(answers, rest);
  const truncated = count < answers.length;
  const isOwn = code === 'NOERROR' || code === 'NXDOMAIN';
  const flags =
    (isOwn ? AUTHORITATIVE_ANSWER : 0) | (truncated ? TRUNCATED_RESPONSE : 0) | (CODES[code] & 0xf);
  const counts = [question ? 1 : 0, count, append(authorities, rest)];
  counts.push(append(additionals, rest) + append(asked ? [optOf(code)] : [], limit));
  const head = [RESPONSE | (query.readUInt16BE(2) & (OPCODE | RECURSION_DESIRED)) | flags, ...counts];
  let at = 2;
  for (const value of head) at = message.writeUInt16BE(value, at);
  const { type = '' } = question ?? {};
  const bytes = Buffer.allocUnsafe(end);
  message.copy(bytes, 0, 0, end);
  return { bytes, type: TYPES.has(type) ? type : 'other', code, truncated, again };
}

/** The message that is being written, with room for a record that does not fit. */
const message = Buffer.alloc(TCP_BYTES + 2_048);

/** The OPT record of a reply (RFC 6891). */
function optOf(code: Reply['code']): OptAnswer {
  return {
    type: 'OPT',
    name: '.',
    udpPayloadSize: UDP_BYTES,
    flags: 0,
    flag_do: false,
    options: [],
    extendedRcode: CODES[code] >> 4,
    ednsVersion: 0,
  };
}
