import { readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { RandomSource } from '../../base/clock.js';
import { generationOf, SEAT_NAME } from './seat-record.js';

/** All that a seat may hold. */
const SEAT_FILES = ['body', 'record', 'next'];

/**
 * Removes the seats that are older than this generation, but for the fixed first one, and what others left in the trash. What cannot be
 * removed is left to the next writer. Never throws.
 *
 * @param folder of the chain
 * @param generation of the oldest seat that readers still need
 */
export async function removeOldSeats(folder: string, generation: number, random: RandomSource): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  const trash = names.filter((name) => name.startsWith('trash-'));
  for (const seat of names) {
    if (seat === '0' || !SEAT_NAME.test(seat) || generationOf(seat) >= generation) continue;
    // In one step out of everybody's sight, so that nobody finds it without its `next`.
    const name = `trash-${random.hex(12)}`;
    await rename(join(folder, seat), join(folder, name)).catch(() => undefined);
    trash.push(name);
  }
  await Promise.all(trash.map((name) => removeSeat(join(folder, name))));
}

/**
 * Removes a folder of the trash, or a seat that was never decided: nobody links into one of those, so it needs no detour. Never throws.
 */
export async function removeSeat(folder: string): Promise<void> {
  // A link that somebody has put there instead must not lead to files of others.
  await unlink(folder).catch(() => undefined);
  await Promise.allSettled(SEAT_FILES.map((file) => unlink(join(folder, file))));
  await rmdir(folder).catch(() => undefined);
}
