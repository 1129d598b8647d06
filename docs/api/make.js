// Makes the API documentation in docs/api/html. Further arguments are TypeDoc's. What it needs is installed into this folder when it is not there
// yet: TypeDoc does not take the TypeScript that builds the product, so the two do not share a node_modules.

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: here('.'), stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

const lock = here('package-lock.json');
const installed = here('node_modules/.installed-lock.json');
if (!existsSync(installed) || !readFileSync(installed).equals(readFileSync(lock))) {
  run('npm', ['ci', '--no-audit', '--no-fund', '--prefer-offline']);
  copyFileSync(lock, installed);
}
run(process.execPath, [here('node_modules/typedoc/bin/typedoc'), ...process.argv.slice(2)]);
