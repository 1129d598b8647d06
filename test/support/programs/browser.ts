import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import { packageRoot } from '../package-root.js';

/**
 * A headless Chromium: that of `NODELEASE_TEST_CHROMIUM`, or the one that is installed, or installed now. To be closed by the caller.
 *
 * @throws Error saying what to install where there is none
 */
export async function launchBrowser(): Promise<Browser> {
  const { stdout } = await promisify(execFile)('sh', [join(packageRoot, 'test/support/install/install-chromium.sh')]);
  const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync', '--no-first-run'];
  return chromium.launch({ executablePath: stdout.trim(), headless: true, args });
}
