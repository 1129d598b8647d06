import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from './package-root.js';

/** README and the pages for users, whose code blocks are run by tests: `docs/guide/run.md`. */
export const guidePages: readonly string[] = ['README.md', ...pagesIn('docs'), ...pagesIn('docs/guide')];

function pagesIn(folder: string): string[] {
  const files = readdirSync(join(packageRoot, folder)).sort();
  return files.filter((file) => file.endsWith('.md')).map((file) => `${folder}/${file}`);
}
