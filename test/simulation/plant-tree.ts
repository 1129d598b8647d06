import { rmSync } from 'node:fs';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../support/package-root.js';
import type { Plant } from './plants.js';

/**
 * Copies the compiled engine and simulator, and plants a mistake into the copy.
 *
 * @returns the folder of the planted simulator, to load its modules from
 * @throws Error when the place to plant it in has changed
 */
export async function plantTree(plant: Plant): Promise<URL> {
  const built = join(packageRoot, '.harness');
  // One for each process, since two may plant the same mistake at the same time.
  const planted = join(built, 'planted', `${plant.name}-${process.pid}`);
  process.once('exit', () => rmSync(planted, { recursive: true, force: true }));
  await rm(planted, { recursive: true, force: true });
  for (const part of ['src', 'test/simulation', 'test/support']) {
    await cp(join(built, part), join(planted, part), {
      recursive: true,
      filter: (source) => !source.endsWith('.map'),
    });
  }
  for (const { file, from, to } of plant.edits) {
    const path = join(planted, file);
    const text = await readFile(path, 'utf8');
    const pieces = text.split(from);
    if (pieces.length !== 2) {
      throw new Error(
        `plant ${plant.name}: expected exactly one place in ${file} that reads\n${from}\nbut found ${pieces.length - 1}`,
      );
    }
    await writeFile(path, pieces.join(to));
  }
  return pathToFileURL(`${join(planted, 'test/simulation')}/`);
}
