import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from './package-root.js';

/** README and the pages for users, whose code blocks are run by tests: `docs/guides/node-ids.md`. */
export const guidePages: readonly string[] = [
  'README.md',
  ...['start', 'guides', 'zookeeper', 'operate'].flatMap((part) => pagesIn(`docs/${part}`)),
];

function pagesIn(folder: string): string[] {
  const files = readdirSync(join(packageRoot, folder)).sort();
  return files.filter((file) => file.endsWith('.md')).map((file) => `${folder}/${file}`);
}
