import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { packageRoot } from '../package-root.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-apt-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('scripts that install packages at the same time get new lists of them once, for apt-get fails where another one does', async () => {
  const apt = `#!/bin/sh
    cd ${folder}
    case "$*" in *update) mkdir lock || exit 100; echo update >>done; sleep 0.5; touch lists; rmdir lock ;; esac
    [ -e lists ]`;
  writeFileSync(join(folder, 'apt-get'), apt);
  chmodSync(join(folder, 'apt-get'), 0o755);
  const script = 'set -eu; . "$0"; with_lists apt-get install thing';
  const install = () =>
    promisify(execFile)('sh', ['-c', script, join(packageRoot, 'test/support/install/apt.sh')], {
      env: { PATH: `${folder}:${process.env.PATH}` },
    });
  await Promise.all([install(), install(), install()]);
  expect(readFileSync(join(folder, 'done'), 'utf8')).toBe('update\n');
});
