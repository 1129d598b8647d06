import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../src/core/base/system.js';
import { TypedText } from '../../src/zookeeper/shared-data/scalar-codec.js';
import { sharedData } from '../../src/zookeeper/shared-data/shared-data.js';
import { newFolder, removeFolders } from '../integration/app/cli/run-support.js';
import { RecipeScene } from '../integration/zookeeper/recipes/recipe-scene.js';
import { killAll, runCli } from '../support/processes.js';
import { launchBrowser } from '../support/programs/browser.js';
import { nameless, overflow, pale, violations } from './page-audit.js';
import { openPage } from './watched-page.js';

let browser: Browser;
let scene: RecipeScene;

beforeAll(async () => {
  browser = await launchBrowser();
  scene = new RecipeScene();
});
afterAll(async () => {
  await browser?.close();
  await killAll();
  await scene?.close();
  removeFolders();
});

it('the console shows a thousand entries of shared data, by name, type and owner, and changes as they happen', async () => {
  const client = await scene.open();
  const shared = sharedData(client, { clock, random });
  const limits = await shared.map<string, number>('limits', { scope: 'prod' });
  await Promise.all(
    Array.from({ length: 1_000 }, (_, n) => limits.set(`customer-${n}`, n, { timeoutMs: 60_000 })),
  );
  const node = await shared.announce();
  await (await shared.set('online', { lifespan: 'ephemeral' })).add('node-a');
  const ids = await shared.set('ids');
  for (const value of [3, '3', new TypedText('Instant', '3')]) await ids.add(value);
  await client.create('/monastery/root/data/other', '<img src=x onerror=alert(1)>', 'persistent');

  const connect = `${inject('zookeeper').connect}${scene.chroot}`;
  const options = [
    '--http',
    '127.0.0.1:0',
    '--store',
    `file:${newFolder()}`,
    '--zookeeper',
    connect,
    '--console-data',
    '/monastery/root',
  ];
  const server = runCli(['console', ...options]);
  const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m);
  const { page, faults } = await openPage(browser, url);
  const region = page.getByRole('region', { name: 'Shared data' });
  await region.getByText('4 data with 1,004 entries').waitFor();
  const summaries = await region.locator('summary').allInnerTexts();
  expect(summaries.map((text) => text.replace(/\s+/g, ' ').trim())).toEqual([
    'ids persistent set 3',
    'limits of scope prod persistent map 1000',
    'online ephemeral set 1',
    expect.stringContaining('no shared data: <img src=x onerror=alert(1)>'),
  ]);
  const datum = (name: string) =>
    region.locator('details', { has: page.locator('summary', { hasText: name }) });
  expect(await datum('online').locator('tbody tr').innerText()).toContain(`node-a\tString\t${node.id}`);
  expect(await datum('ids').locator('tbody').innerText()).toMatch(
    /\n3\tInstant\tcollides: place 2 unknown type Instant$/,
  );

  await datum('limits').locator('summary').click();
  const row = datum('limits').locator('tr', {
    has: page.getByRole('cell', { name: 'customer-777', exact: true }),
  });
  expect(await row.innerText()).toBe('customer-777\t777\tInteger');
  expect(await datum('limits').locator('tbody tr').count()).toBe(1_000);
  await limits.set('customer-777', 42);
  await expect.poll(() => row.innerText(), { timeout: 15_000 }).toBe('customer-777\t42\tInteger');
  expect(await region.locator('tr[data-new]').allInnerTexts()).toEqual(['customer-777\t42\tInteger']);
  expect(await datum('limits').getAttribute('open')).toBe('');
  await limits.remove('customer-0');
  await region.getByText('4 data with 1,003 entries').waitFor();

  await page.getByLabel('Entries that contain').fill('customer-99');
  expect(await region.locator('tbody tr:visible').count()).toBe(11);
  if (process.env.NODELEASE_TEST_SCREENSHOT)
    writeFileSync(process.env.NODELEASE_TEST_SCREENSHOT, await region.screenshot());
  // Its title comes with the node id that it shows.
  const unnamed = (await nameless(page)).filter((element) => !element.includes('id="details"'));
  expect([unnamed, await overflow(page), await pale(page)]).toEqual([[], 0, []]);

  await client.close();
  await region.getByText('4 data with 1,002 entries').waitFor();
  await shared.close();
  expect(faults).toEqual([]);
});

it('the console changes and removes an entry for a holder of the token, and leaves ephemeral data alone', async () => {
  const shared = sharedData(await scene.open(), { root: '/other', clock, random });
  const limits = await shared.map<string, number>('limits');
  for (const key of ['eu', 'us']) await limits.set(key, 1);
  await (await shared.set('online', { lifespan: 'ephemeral' })).add('node-a');
  const folder = newFolder();
  writeFileSync(join(folder, 'token'), 'a-token-for-the-tests');
  const connect = `${inject('zookeeper').connect}${scene.chroot}`;
  const options = [
    '--http',
    '127.0.0.1:0',
    '--store',
    `file:${folder}/store`,
    '--zookeeper',
    connect,
    '--console-data',
    '/other',
  ];
  const server = runCli([
    'console',
    ...options,
    '--allow-writes',
    '--bearer-token-file',
    join(folder, 'token'),
  ]);
  const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m);
  const { page } = await openPage(browser, url);
  await page.getByRole('textbox', { name: 'Token' }).fill('a-token-for-the-tests');
  await page.keyboard.press('Enter');
  const region = page.getByRole('region', { name: 'Shared data' });
  await region.getByText('2 data with 3 entries').waitFor();
  expect(await region.getByRole('button').allInnerTexts()).toEqual(['Change', 'Remove', 'Change', 'Remove']);
  await region.getByRole('button', { name: 'Change eu of limits' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Text').fill('7');
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Change' }).click();
  await expect.poll(() => limits.get('eu'), { timeout: 15_000 }).toBe(7);
  await region.getByRole('cell', { name: '7', exact: true }).waitFor();
  const remove = region.getByRole('button', { name: 'Remove us of limits' });
  await remove.click();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await remove.click();
  expect(await dialog.innerText()).toContain('Remove us of limits?');
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await expect.poll(() => limits.size, { timeout: 15_000 }).toBe(1);
  await region.getByText('2 data with 2 entries').waitFor();
  await shared.close();
});
