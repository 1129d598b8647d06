import { rmSync } from 'node:fs';
import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../support/package-root.js';
import type { Plant } from './plants.js';

/**
 * Makes a tree of links to the compiled engine and simulator, and replaces the planted files by edited ones.
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
  for (const part of ['src', 'test/model', 'test/simulation', 'test/support']) {
    for (const file of await readdir(join(built, part), { recursive: true })) {
      if (!file.endsWith('.js')) continue;
      const path = join(planted, part, file);
      await mkdir(dirname(path), { recursive: true });
      await link(join(built, part, file), path);
    }
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
    // A new file: the link leads to the one of the tree without the mistake.
    await rm(path);
    await writeFile(path, pieces.join(to));
  }
  return pathToFileURL(`${join(planted, 'test/simulation')}/`);
}
