import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The folder of the package: the nearest one above this file with a package.json. This file runs as it
 * stands, and compiled to a place further down, so nothing may count the steps between the two.
 */
export const packageRoot: string = above(dirname(fileURLToPath(import.meta.url)));

function above(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error('no package.json in any folder above the tests');
  return above(parent);
}

/**
 * The compiled form of a module of the tests, for programs that run in processes of their own;
 * `npm run build:harness` makes it.
 */
export function harnessFile(module: string): string {
  return join(packageRoot, '.harness', module.replace(/\.ts$/, '.js'));
}
