import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { configPublisher, openConfiguration } from '../../src/configuration/index.js';
import { newFolder, removeFolders } from '../integration/cli/run-support.js';
import { RecipeScene } from '../integration/recipes/recipe-scene.js';
import { killAll, runCli } from '../support/processes.js';
import { launchBrowser } from '../support/programs/browser.js';
import { nameless, overflow, pale } from './page-audit.js';
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

it('the console shows which revision each node runs, the ones that are behind first, as it changes', async () => {
  const client = await scene.open();
  const name = { app: 'shop', profile: 'prod' };
  const publish = (value: string) =>
    configPublisher(client, { ...name, author: 'ada' }).publish([{ key: 'a', new: value }]);
  await publish('1');
  const nodes = await Promise.all(
    [0, 1, 2].map(async (nodeId) => openConfiguration(await scene.open(), { ...name, nodeId })),
  );
  // It has said what it runs, and does not follow.
  await client.createWithParents(
    '/config/.nodelease/seen/shop,prod/7',
    '{"revisions":{"shop,prod":1},"at":"2026-01-01"}',
    'ephemeral',
  );

  const options = [
    '--http',
    '127.0.0.1:0',
    '--store',
    `file:${newFolder()}`,
    '--zookeeper',
    `${inject('zookeeper').connect}${scene.chroot}`,
  ];
  const server = runCli(['console', ...options]);
  const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m);
  const { page, faults } = await openPage(browser, url);
  const tree = page.getByRole('region', { name: 'Discovery tree' });
  await tree.getByText('shop,prod, revision 1: 0 of 4 behind').waitFor();
  await publish('2');
  await tree.getByText('shop,prod, revision 2: 1 of 4 behind').waitFor();
  const folder = tree.locator('details', { has: page.locator('summary', { hasText: 'shop,prod' }) }).last();
  if ((await folder.getAttribute('open')) === null) await folder.locator('summary').click();
  const texts = async () =>
    (await folder.locator('li').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim());
  expect(await texts()).toEqual([
    '7 revision 1 behind in shop,prod',
    '0 revision 2',
    '1 revision 2',
    '2 revision 2',
  ]);
  // Its title comes with the node id that it shows.
  const unnamed = (await nameless(page)).filter((element) => !element.includes('id="details"'));
  expect([unnamed, await overflow(page), await pale(page)]).toEqual([[], 0, []]);
  await Promise.all(nodes.map((config) => config.close()));
  await tree.getByText('shop,prod, revision 2: 1 of 1 behind').waitFor();
  expect(faults).toEqual([]);
});
