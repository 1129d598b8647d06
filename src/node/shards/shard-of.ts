import { ConfigError } from '../../core/base/errors.js';
import { MAX_SHARDS } from '../../core/lease/model/cluster-config.js';

/** What decides on a shard: a text, or a number such as a unique id. */
export type ShardKey = string | bigint;

const UTF8 = new TextEncoder();
const WORD = new DataView(new ArrayBuffer(8));

/**
 * The shard of a key, 0 … count - 1: for a bigint the remainder of its lowest 64 bits, for a text FNV-1a (32
 * bits, of UTF-8) with the final mix of MurmurHash3, so that similar keys spread. The same in every version and
 * language.
 *
 * @throws {ConfigError} for another key, such as a number: as a text and as a bigint it has different shards
 */
export function shardOf(key: ShardKey, count: number): number {
  checkCount(count);
  if (typeof key === 'bigint') {
    // The remainder of two halves: bigints are slow to make.
    WORD.setBigUint64(0, key);
    return ((WORD.getUint32(0) % count) * (2 ** 32 % count) + (WORD.getUint32(4) % count)) % count;
  }
  if (typeof key !== 'string') throw new ConfigError('key', key, 'a text, or a bigint such as a unique id');
  let hash = 0x811c9dc5;
  let at = 0;
  for (; at < key.length; at += 1) {
    const code = key.charCodeAt(at);
    if (code > 0x7f) break;
    hash = fold(hash, code);
  }
  // Encoding a text takes ten times as long as all the rest, and most keys are ASCII.
  if (at < key.length) for (const byte of UTF8.encode(key.slice(at))) hash = fold(hash, byte);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % count;
}

function fold(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193);
}

/** @throws {ConfigError} */
export function checkCount(count: unknown): void {
  if (!Number.isInteger(count) || (count as number) < 1 || (count as number) > MAX_SHARDS)
    throw new ConfigError('count', count, `a whole number from 1 to ${MAX_SHARDS}`);
}
