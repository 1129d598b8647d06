import { type Browser, chromium } from 'playwright-core';
import { installed } from '../installed.js';

/**
 * A headless Chromium: that of `NODELEASE_TEST_CHROMIUM`, or the one that is installed, or installed now. To
 * be closed by the caller.
 *
 * @throws Error saying what to install where there is none
 */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = await installed(
    'install-chromium.sh',
    [],
    'set NODELEASE_TEST_CHROMIUM to a Chromium',
  );
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-sync',
    '--no-first-run',
  ];
  return chromium.launch({ executablePath, headless: true, args });
}
