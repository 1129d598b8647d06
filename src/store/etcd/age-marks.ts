import type { Interval, StoreCallOptions } from '../lease-store.js';
import { senseless } from '../store-request.js';
import type { EtcdRequest } from './classify-reply.js';
import type { EtcdGateway } from './gateway.js';
import type { DecodedValue } from './key-value.js';

/** How much longer than asked a mark stays, in seconds: for clocks of etcd's members that run fast. */
const MARGIN_S = 2;

/**
 * The key that is put with an object by a write of it, and removed by etcd some time later. It comes right
 * after the object's in the order of keys.
 */
export function markOf(key: string): string {
  return `${key}~`;
}

export function isMark(key: string): boolean {
  return key.endsWith('~');
}

/**
 * Grants a lease of etcd's on which a mark stays for at least `ms` after this call began. It is never
 * renewed, so that no member ever believes in an earlier end: renewals are known to the leader alone, and one
 * that has lost its place revokes what another one has renewed.
 *
 * @throws {StoreError}
 */
export async function grantMark(
  gateway: EtcdGateway,
  request: EtcdRequest,
  ms: number,
  options: StoreCallOptions | undefined,
): Promise<string> {
  const seconds = Math.ceil(ms / 1_000) + MARGIN_S;
  const term = { TTL: String(seconds) };
  const { body } = await gateway.call(request, 'lease/grant', term, { ...options, repeatable: true });
  if (typeof body.ID === 'string' && Number(body.TTL) >= seconds) return body.ID;
  throw senseless(request, 'no lease of the time that was asked for');
}

/**
 * The age of an object, as of one revision of etcd's data. etcd does not report when a key was written. But if
 * the mark of the current value's write is gone, the time of the mark has passed.
 */
export function ageOf({ markedForMs }: DecodedValue, isMarked: boolean): Interval {
  return { min: markedForMs === undefined || isMarked ? 0 : markedForMs + 1, max: Number.POSITIVE_INFINITY };
}
