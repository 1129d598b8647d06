import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../support/package-root.js';
import { launchBrowser } from '../support/programs/browser.js';
import { DRAFTS, SCENES } from './scenes.js';
import { ScriptedConsole } from './scripted-console.js';
import { scriptedTenures } from './scripted-tenures.js';

// `npm run screenshots` makes the pictures of the documentation; with a folder, those and further ones are
// put there.
const [folder] = process.argv.slice(2);
const target = folder ?? join(packageRoot, 'docs/images');
mkdirSync(target, { recursive: true });
const browser = await launchBrowser();
for (const { name, theme, viewport, hello, services, play } of folder === undefined
  ? SCENES
  : [...SCENES, ...DRAFTS]) {
  const server = await new ScriptedConsole(hello, services).start();
  const { report } = hello();
  if (report) server.history = scriptedTenures(report, 3_000_000);
  const page = await browser.newPage({ viewport, colorScheme: theme });
  page.on('pageerror', (error) => process.stderr.write(`${name}: ${error.stack}\n`));
  page.on('console', (message) => process.stderr.write(`${name}: ${message.text()}\n`));
  await page.goto(`${server.url}/${services ? 'services' : ''}`);
  await page.locator('.cell, #services tbody tr').first().waitFor();
  await play?.(page, server);
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(target, `${name}.png`) });
  await page.close();
  await server.close();
}
await browser.close();
