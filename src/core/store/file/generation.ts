import { readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { RandomSource } from '../../base/clock.js';
import { fieldOf, parsed, textOf, textsOf } from '../../base/fields.js';
import { Damage } from '../../base/files.js';
import type { ObjectMetadata } from '../lease-store.js';
import type { Stamp } from './object-ages.js';

/**
 * One state of an object without its body: what a generation's `record` holds, and the `next` of the
 * generation before it.
 */
export interface GenerationRecord {
  /** The generation's folder, `<number>-<random hex>`. */
  readonly name: string;
  /** Of the body, in hex. */
  readonly sha256: string;
  readonly metadata: ObjectMetadata;
  /** When the write began. */
  readonly stamp: Stamp;
}

/** The folder of a generation: the fixed first one, or any later one. */
export const GENERATION_NAME = /^(?:0|[1-9][0-9]{0,14}-[0-9a-f]{8,64})$/;

/** How many generations came before the one of this name. */
export function numberOf(name: string): number {
  return Number.parseInt(name, 10);
}

/** The record as it is written: one line of JSON, for people to read. Its field `seat` is the name. */
export function encodeRecord({ name: seat, sha256, metadata, stamp }: GenerationRecord): Buffer {
  return Buffer.from(`${JSON.stringify({ seat, sha256, metadata, stamp })}\n`);
}

/**
 * The record in a file's text, of the generation of this number; unknown fields are left out.
 * @throws {@link Damage} when it is none
 */
export function decodeRecord(text: Buffer, path: string, number: number): GenerationRecord {
  const record = parsed(text.toString('utf8'));
  const seat = textOf(record, 'seat') ?? '';
  const sha256 = textOf(record, 'sha256');
  const metadata = textsOf(fieldOf(record, 'metadata'));
  const stamp = fieldOf(record, 'stamp');
  const clock = textOf(stamp, 'clock');
  const ms = fieldOf(stamp, 'ms');
  const isName = GENERATION_NAME.test(seat) && numberOf(seat) === number;
  if (!isName || !sha256 || !metadata || clock === undefined || typeof ms !== 'number')
    throw new Damage(path, 'damaged');
  return { name: seat, sha256, metadata, stamp: { clock, ms } };
}

/**
 * Removes from a log's folder the generations below this number, but for the fixed first one, and what other
 * processes left in the trash. What cannot be removed is left to the next writer. Never throws.
 */
export async function removeOldGenerations(log: string, number: number, random: RandomSource): Promise<void> {
  const names = await readdir(log).catch(() => []);
  const trash = names.filter((name) => name.startsWith('trash-'));
  for (const old of names) {
    if (old === '0' || !GENERATION_NAME.test(old) || numberOf(old) >= number) continue;
    // In one step out of sight of all processes, so that none finds it without its `next`.
    const name = `trash-${random.hex(12)}`;
    await rename(join(log, old), join(log, name)).catch(() => undefined);
    trash.push(name);
  }
  await Promise.all(trash.map((name) => removeGeneration(join(log, name))));
}

/**
 * Removes a folder of the trash, or a generation that no link has made the next one, so that no process links
 * into it. Never throws.
 */
export async function removeGeneration(folder: string): Promise<void> {
  // A link that was put there by hand must not lead to files of others.
  await unlink(folder).catch(() => undefined);
  await Promise.allSettled(['body', 'record', 'next'].map((file) => unlink(join(folder, file))));
  await rmdir(folder).catch(() => undefined);
}
