import { NodeLeaseError } from '../../base/errors.js';
import { isObject, isTooDeep, MAX_NESTING } from '../../base/fields.js';
import { foreignFormatOf } from './foreign-format.js';
import {
  DURATION_MS,
  END_OF_TIME,
  type HeldLease,
  type KnownNodes,
  type LeaseMark,
  type LeaseState,
  type ReleasedLease,
} from './lease-state.js';

/** A lease object as it is stored. */
export interface EncodedLease {
  readonly body: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Turns lease states into objects and back. */
export interface LeaseCodec {
  /** The object of a lease in this state. */
  encode(state: LeaseState): EncodedLease;

  /** @throws {LeaseUnreadableError} when the object is not one that this codec can understand. */
  decode(body: string, metadata: Readonly<Record<string, string>>): LeaseState;

  /** Maximum size of a tombstone, in bytes. Every held lease is larger, so a LIST distinguishes them. */
  readonly tombstoneMaxBytes: number;
}

/** A lease object has content that no nodelease wrote. The object stays as it is, and its id is not used. */
export class LeaseUnreadableError extends NodeLeaseError {
  readonly code = 'LEASE_UNREADABLE';

  constructor(
    /** What is wrong, as the rest of the sentence "the object …". */
    readonly problem: string,
    cause?: unknown,
    /** Whether it belongs to another program's cluster: then it is never overwritten, in any state. */
    readonly isForeign = false,
    /** What it is called in the message. */
    object = 'lease object',
  ) {
    super(`${object} ${problem}`, { cause });
  }
}

/** Has the errors of `read` name another object than a lease. @throws {LeaseUnreadableError} */
export function readAs<T>(object: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof LeaseUnreadableError)) throw error;
    throw new LeaseUnreadableError(error.problem, error.cause, false, object);
  }
}

/** Of the texts that are taken for a history, in characters. */
const MOST_HISTORY = 1_000;

/**
 * The native format (docs/design/protocol.md, "Lease objects"): JSON, required fields first, then optional
 * ones. The metadata repeats the facts, so that a HEAD shows them. Unknown fields are ignored.
 */
export const nativeCodec: LeaseCodec = {
  tombstoneMaxBytes: 135,

  encode(state) {
    switch (state.kind) {
      case 'vacant':
        return { body: '', metadata: {} };
      case 'held':
        return { body: encodeHeld(state), metadata: { taskid: state.taskId, ...facts(state) } };
      case 'released':
        return encodeTombstone({ released: true }, state);
      case 'retired':
        return encodeTombstone({ retired: true }, state, state.generation);
    }
  },

  decode(body, metadata) {
    refuseForeign(metadata);
    if (body === '') return decodeEmpty(metadata);
    const fields = parseObject(body);
    refuseForeign(metadata, fields);
    const isTombstone = fields.taskId === undefined || fields.taskId === null;
    const isRetired = isTombstone && fields.retired === true;
    const version = readInteger(fields, 'version', isRetired ? 0 : 1);
    if (toNumber(metadata.version ?? '0') > version)
      throw new LeaseUnreadableError(`has version ${version}, where version ${metadata.version} was written`);
    if (isTombstone) {
      const tombstone = {
        version,
        timestamp: fields.timestamp === undefined ? 0 : readTime(fields, 'timestamp'),
        durationMs:
          fields.durationMs === undefined ? 0 : readInteger(fields, 'durationMs', 0, DURATION_MS.most),
        stampedUntil: fields.stampedUntil === undefined ? undefined : readTime(fields, 'stampedUntil'),
        ...hints(metadata),
      };
      if (!isRetired) return { kind: 'released', ...tombstone };
      return { kind: 'retired', ...tombstone, generation: readInteger(fields, 'generation', 0) };
    }
    // What a holder need not say counts as what is safe: the fewest bits for its ids, until its lease ends.
    const all = {
      ...{ nonce: 'none', renewal: 0, acquiredAt: 0, idWidth: 8, narrowIdsUntil: fields.timestamp },
      ...fields,
    };
    return {
      kind: 'held',
      taskId: readString(fields, 'taskId'),
      version,
      timestamp: readTime(fields, 'timestamp'),
      durationMs: readInteger(fields, 'durationMs', 1, DURATION_MS.most),
      knownNodes: readKnownNodes(fields.knownNodesMapping),
      nonce: readString(all, 'nonce'),
      renewal: readInteger(all, 'renewal', 0),
      acquiredAt: readTime(all, 'acquiredAt'),
      idWidth: readInteger(all, 'idWidth', 8, 16),
      narrowIdsUntil: readTime(all, 'narrowIdsUntil'),
      ...hints(metadata),
      ...readMark(fields),
    };
  },
};

/** @throws {LeaseUnreadableError} when another program wrote the object */
function refuseForeign(...object: Parameters<typeof foreignFormatOf>): void {
  const format = foreignFormatOf(...object);
  if (format) throw new LeaseUnreadableError(format.lease, undefined, true);
}

/** The mark of the last holder's sticky key. */
export function readSticky({ sticky }: Readonly<Record<string, string>>): string | undefined {
  return hexMark(sticky);
}

function hexMark(text = ''): string | undefined {
  return /^[\da-f]{16}$/.test(text) ? text : undefined;
}

/**
 * Renewals write it again, so nothing passes that a store might refuse: a hint must not cost a lease.
 */
function readHistory({ history = '' }: Readonly<Record<string, string>>): string | undefined {
  return history.length <= MOST_HISTORY && /^[!-~]+( [!-~]+)*$/.test(history) ? history : undefined;
}

/** What is in the metadata alone: in the body it would make a tombstone as large as a lease. */
function hints(metadata: Readonly<Record<string, string>>): Pick<HeldLease, 'sticky' | 'history' | 'epoch'> {
  return { sticky: readSticky(metadata), history: readHistory(metadata), epoch: hexMark(metadata.epoch) };
}

function facts({
  version,
  timestamp,
  sticky,
  history,
  epoch,
}: HeldLease | Omit<ReleasedLease, 'kind'>): Record<string, string> {
  return {
    version: `${version}`,
    expiry: `${timestamp}`,
    ...(sticky !== undefined && { sticky }),
    ...(history && { history }),
    // That of the settings may be a text that stores refuse.
    ...(epoch !== undefined && hexMark(epoch) && { epoch }),
  };
}

function encodeTombstone(
  kind: object,
  state: Omit<ReleasedLease, 'kind'>,
  generation?: number,
): EncodedLease {
  const { version, timestamp, durationMs, stampedUntil } = state;
  const body = {
    ...kind,
    version,
    timestamp,
    ...(durationMs > 0 ? { durationMs } : { stampedUntil }),
    generation,
  };
  return { body: JSON.stringify(body), metadata: facts(state) };
}

function encodeHeld(held: HeldLease): string {
  return JSON.stringify({
    taskId: held.taskId,
    version: held.version,
    timestamp: held.timestamp,
    durationMs: held.durationMs,
    knownNodesMapping: held.knownNodes,
    acquiredAt: held.acquiredAt,
    idWidth: held.idWidth,
    narrowIdsUntil: held.narrowIdsUntil,
    shards: held.shards,
    address: held.address,
    nonce: held.nonce,
    renewal: held.renewal,
  });
}

/** Never held, or released by a writer that clears the body and keeps the version in the metadata. */
function decodeEmpty(metadata: Readonly<Record<string, string>>): LeaseState {
  if (metadata.version === undefined) return { kind: 'vacant' };
  if (metadata.taskid !== undefined)
    throw new LeaseUnreadableError(`has been emptied: task ${metadata.taskid} held it`);
  const fields = { version: toNumber(metadata.version), expiry: toNumber(metadata.expiry ?? '0') };
  const version = readInteger(fields, 'version', 0);
  if (version === 0) return { kind: 'vacant' };
  return {
    kind: 'released',
    version,
    timestamp: readTime(fields, 'expiry'),
    durationMs: 0,
    stampedUntil: undefined,
    ...hints(metadata),
  };
}

function toNumber(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
}

/** Maximum number of characters that are shown of a text from outside. */
const SHOWN = 100;

const shown = (value: unknown) => `${JSON.stringify(value)}`.slice(0, SHOWN);

/** A JSON object's fields. @throws {LeaseUnreadableError} */
export function parseObject(body: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new LeaseUnreadableError(`is not JSON: ${JSON.stringify(body.slice(0, SHOWN))}`);
  }
  if (!isObject(value)) throw new LeaseUnreadableError('is not a JSON object');
  // To show a value of it, or to write it again, would exhaust the stack.
  if (isTooDeep(value, body)) throw new LeaseUnreadableError(`has more than ${MAX_NESTING} levels of JSON`);
  return value;
}

/**
 * The highest accepted counter. No counter of nodelease comes near it: a higher one is an error or an attack.
 */
export const MOST_COUNT = 2 ** 52;

/** A whole number from `min` to `max`. @throws {LeaseUnreadableError} */
export function readInteger(
  fields: Record<string, unknown>,
  name: string,
  min: number,
  max = MOST_COUNT,
): number {
  const value = fields[name];
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new LeaseUnreadableError(
    `has no usable "${name}": expected a whole number from ${min} to ${max}, got ${shown(value)}`,
  );
}

/** Milliseconds since the Unix epoch. @throws {LeaseUnreadableError} */
export function readTime(fields: Record<string, unknown>, name: string): number {
  return readInteger(fields, name, 0, END_OF_TIME - 1);
}

export function readString(fields: Record<string, unknown>, name: string): string {
  const value = fields[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new LeaseUnreadableError(`has no usable "${name}": expected a non-empty string, got ${shown(value)}`);
}

/** Known nodes are hints: invalid entries are left out, and the lease stays readable. */
function readKnownNodes(value: unknown): KnownNodes {
  return Object.fromEntries(
    Object.entries(Object(value) as object).filter(
      ([id, version]) =>
        /^\d+$/.test(id) && Number.isSafeInteger(version) && version >= 0 && version <= MOST_COUNT,
    ),
  );
}

/** A mark is a hint, too. */
function readMark({ shards, address }: Record<string, unknown>): LeaseMark {
  const { epoch } = Object(shards) as { epoch?: unknown };
  return {
    ...(Number.isSafeInteger(epoch) && { shards: { epoch: epoch as number } }),
    ...(typeof address === 'string' && { address }),
  };
}
