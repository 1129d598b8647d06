import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  encodingLength,
  type OptAnswer,
  type Packet,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { type Lookup, lookUp, type Zone } from './zone.js';

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
const RESPONSE = 0x80;
/** A query has one question and an OPT record. More records are decoded so far, to find the OPT. */
const MAX_RECORDS = 16;
/** What every client takes by UDP, what is sent to those that take more, and what TCP can carry. */
const [MIN_BYTES, UDP_BYTES, TCP_BYTES] = [512, 1_232, 65_535];
const TYPES = new Set(['A', 'AAAA', 'SRV', 'TXT', 'SOA', 'NS', 'ANY']);

/**
 * The reply to a query; undefined for what must not be answered: a response, and less than a head. Never
 * throws. No reply is longer than the transport and the client allow.
 */
export function replyTo(query: Buffer, zone: Zone, transport: Transport): Reply | undefined {
  if (query.length < HEAD_BYTES || (query.readUInt8(2) & RESPONSE) !== 0) return undefined;
  const head = { id: query.readUInt16BE(0), flags: query.readUInt16BE(2) };
  const packet = decoded(query);
  if (packet === undefined) return written(head, [], { code: 'FORMERR', answers: [] }, undefined, transport);
  const { questions = [], additionals = [] } = packet;
  const [opt, second] = additionals.filter((record) => record.type === 'OPT');
  const [question] = questions;
  const refused = (code: Reply['code']) => written(head, [], { code, answers: [] }, opt, transport);
  if (((head.flags >> 11) & 0xf) !== 0) return refused('NOTIMP');
  // A name that is no ASCII would not be the same again in the reply.
  const isWellFormed =
    questions.length === 1 && second === undefined && /^[!-~]+$/.test(question?.name ?? '');
  if (question === undefined || !isWellFormed) return refused('FORMERR');
  if (opt !== undefined && opt.ednsVersion > 0) return refused('BADVERS');
  const lookup: Lookup = question.class === 'IN' ? lookUp(question, zone) : { code: 'REFUSED', answers: [] };
  return written(head, [question], lookup, opt, transport);
}

/** Undefined for a message that is malformed. */
function decoded(query: Buffer): DecodedPacket | undefined {
  const records = [4, 6, 8, 10].reduce((sum, at) => sum + query.readUInt16BE(at), 0);
  if (records > MAX_RECORDS) return undefined;
  try {
    return decode(query);
  } catch {
    return undefined;
  }
}

function written(
  head: { readonly id: number; readonly flags: number },
  questions: NonNullable<DecodedPacket['questions']>,
  lookup: Omit<Lookup, 'code'> & { readonly code: Reply['code'] },
  asked: OptAnswer | undefined,
  transport: Transport,
): Reply {
  const { code, answers, authorities = [], additionals = [], again } = lookup;
  const opt: Answer[] = asked ? [optOf(code)] : [];
  const clientBytes = Math.max(MIN_BYTES, Math.min(asked?.udpPayloadSize ?? 0, UDP_BYTES));
  const limit = transport === 'tcp' ? TCP_BYTES : clientBytes;
  const isOwn = code === 'NOERROR' || code === 'NXDOMAIN';
  const packet: Packet = {
    type: 'response',
    id: head.id,
    flags:
      (head.flags & (0x7800 | RECURSION_DESIRED)) | (isOwn ? AUTHORITATIVE_ANSWER : 0) | (CODES[code] & 0xf),
    questions,
    answers,
    authorities,
    additionals: asked ? [...additionals, ...opt] : additionals,
  };
  let bytes = encoded(packet, limit);
  let truncated = false;
  if (bytes === undefined) {
    let left = limit - encodingLength({ questions, additionals: opt });
    const fitting = (records: Answer[]) => {
      const end = records.findIndex((record) => {
        left -= encodingLength({ answers: [record] }) - HEAD_BYTES;
        return left < 0;
      });
      return end < 0 ? records : records.slice(0, end);
    };
    packet.answers = fitting(answers);
    packet.authorities = fitting(authorities);
    packet.additionals = [...fitting(additionals), ...opt];
    truncated = packet.answers.length < answers.length;
    if (truncated) packet.flags = (packet.flags ?? 0) | TRUNCATED_RESPONSE;
    bytes = encode(packet);
  }
  const type = questions[0]?.type ?? '';
  return { bytes, type: TYPES.has(type) ? type : 'other', code, truncated, again };
}

const scratch = Buffer.alloc(TCP_BYTES);

/** Undefined where it is longer. To measure it first would take as long. */
function encoded(packet: Packet, limit: number): Buffer | undefined {
  try {
    encode(packet, scratch, 0);
  } catch {
    return undefined;
  }
  if (encode.bytes > limit) return undefined;
  const bytes = Buffer.allocUnsafe(encode.bytes);
  scratch.copy(bytes);
  return bytes;
}

/** The OPT record of a reply (RFC 6891). */
function optOf(code: Reply['code']): OptAnswer {
  return {
    ...{ type: 'OPT', name: '.', udpPayloadSize: UDP_BYTES, flags: 0, flag_do: false, options: [] },
    extendedRcode: CODES[code] >> 4,
    ednsVersion: 0,
  };
}
