// `node docs/make.js` makes the site of the documentation in docs/site/html, with the API's pages below it.
// `node docs/make.js api …` makes the API's pages alone, with TypeDoc's arguments.
// What each of the two needs is installed into its own folder when it is not there yet: TypeDoc does not take
// the TypeScript that builds the product, and the product needs no VitePress.

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

function run(cwd, command, args) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

/** Runs a program of a folder's own packages. */
function runIn(folder, program, args) {
  const cwd = here(folder);
  const lock = `${cwd}/package-lock.json`;
  const installed = `${cwd}/node_modules/.installed-lock.json`;
  if (!existsSync(installed) || !readFileSync(installed).equals(readFileSync(lock))) {
    run(cwd, 'npm', ['ci', '--no-audit', '--no-fund', '--prefer-offline']);
    copyFileSync(lock, installed);
  }
  // Here, since VitePress resolves what pages import from where it is started.
  run(here('.'), process.execPath, [`${cwd}/node_modules/${program}`, ...args]);
}

const [part, ...args] = process.argv.slice(2);
const api = ['--options', here('api/typedoc.config.js')];
if (part === 'api') runIn('api', 'typedoc/bin/typedoc', [...api, ...args]);
else {
  runIn('site', 'vitepress/bin/vitepress.js', ['build', 'site']);
  runIn('api', 'typedoc/bin/typedoc', api);
}
