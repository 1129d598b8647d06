import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest';
import { configPublisher, openConfiguration } from '../../src/zookeeper/configuration/index.js';
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
afterEach(async () => {
  await killAll();
  // Another chroot, too.
  await scene.close();
});
afterAll(async () => {
  await browser?.close();
  removeFolders();
});

/** The options of a console of the scene. */
const options = () => [
  ...['--store', `file:${newFolder()}`],
  ...['--zookeeper', `${inject('zookeeper').connect}${scene.chroot}`],
];

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

  const server = runCli(['console', '--http', '127.0.0.1:0', ...options()]);
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

it('the page of configurations has the values, nodes, history and differences of a context, and follows them', async () => {
  const client = await scene.open();
  const long = JSON.stringify({ text: 'nothing breaks inside of a word '.repeat(9) });
  const publish = (changes: Readonly<Record<string, string | null>>, app = 'shop', nodes?: string) =>
    configPublisher(client, { app, profile: 'prod', nodes, author: 'ada' }).publish(
      Object.entries(changes).map(([key, value]) => ({ key, new: value })),
      { message: 'why' },
    );
  await publish({ 'db.url': 'pg://db1', html: '<img src=x onerror="document.title=1">', size: '10' });
  await publish({ size: '20', long });
  await publish({ size: '30' }, 'shop', '0-3');
  await publish({ a: '1' }, 'cart');
  const config = await openConfiguration(await scene.open(), { app: 'shop', profile: 'prod', nodeId: 3 });
  // It has said what it runs, and does not follow.
  const late = '/config/.nodelease/seen/shop,prod/7';
  const seen = '{"revisions":{"shop,prod":1},"at":"2026-01-01T00:00:00.000Z"}';
  await client.createWithParents(late, seen, 'ephemeral');
  const server = runCli(['console', '--http', '127.0.0.1:0', ...options()]);
  const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m);

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1280, 360]) {
      const viewport = { width, height: 800 };
      const { page, faults } = await openPage(browser, url, { colorScheme, viewport });
      await page.getByRole('link', { name: 'Configurations' }).click();
      await page.getByRole('link', { name: 'shop,prod', exact: true }).focus();
      await page.keyboard.press('Enter');
      await page.getByText('Differences').waitFor();
      const audit = async () => [await nameless(page), await pale(page), await overflow(page)];
      expect([...(await audit()), await violations(page)], `${colorScheme} ${width}`).toEqual([
        [],
        [],
        0,
        [],
      ]);
      expect([await page.title(), faults]).toEqual(['configurations · nodelease', []]);
      await page.screenshot({ path: `/tmp/conf-${colorScheme}-${width}.png`, fullPage: true });
      await page.context().close();
    }
  }

  const { page, faults } = await openPage(browser, `${url}/configurations#context=shop%2Cprod`);
  const rowsOf = async (folder: string) => {
    const details = page.locator('.folders > details', { has: page.locator('summary', { hasText: folder }) });
    const texts = await details.locator('> table > tbody > tr:visible').allInnerTexts();
    return texts.map((text) => text.replace(/\s+/g, ' ').trim());
  };
  await page.getByText('Differences').waitFor();
  expect(await rowsOf('Contexts')).toEqual([
    'cart,prod 1 1 0',
    'shop,prod 2 4 2 1 behind',
    'shop,prod@nodes=0-3 1 1 1',
  ]);
  expect(await rowsOf('Values')).toEqual([
    'db.url pg://db1',
    'html <img src=x onerror="document.title=1">',
    `long ${long.slice(0, 60)}…`,
    'size 20',
  ]);
  const [first, second] = await rowsOf('Nodes');
  expect([first, second?.replace(/\S+Z/, 'AT')]).toEqual([
    '7 1 2026-01-01T00:00:00.000Z shop,prod behind',
    '3 2 AT shop,prod',
  ]);
  expect((await rowsOf('History')).map((row) => row.replace(/\S+Z/, 'AT'))).toEqual([
    '2 AT ada why size, long from to',
    '1 AT ada why db.url, html, size from to',
  ]);
  expect(await rowsOf('Differences')).toEqual(['size changed 10 20', `long added ${long.slice(0, 60)}…`]);
  await page.getByRole('button', { name: 'to revision 1' }).click();
  await page.getByText('from 0 to 1').waitFor();
  expect(await rowsOf('Differences')).toHaveLength(3);
  await page.goBack();
  await page.getByRole('button', { name: 'from revision 1' }).click();

  // What is published, and what is changed by hand, comes by itself.
  await publish({ html: null, size: '40' });
  await page.getByText('from 1 to 3').waitFor();
  expect((await rowsOf('History'))[0]?.replace(/\S+Z/, 'AT')).toBe('3 AT ada why html, size from to');
  await client.setData('/config/shop,prod/db/url', 'pg://db2');
  await expect
    .poll(() => rowsOf('Values'))
    .toEqual(['db.url pg://db2', `long ${long.slice(0, 60)}…`, 'size 40']);
  await page.keyboard.press('/');
  await page.keyboard.type('behind');
  await expect.poll(() => rowsOf('Nodes')).toHaveLength(1);
  expect([await rowsOf('Values'), faults]).toEqual([[], []]);
  await config.close();
});

it('a console that other hosts reach has no page with secrets, unless it asks for a token', async () => {
  const server = runCli(['console', '--http', '0.0.0.0:0', ...options()]);
  const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m);
  const statusOf = async (path: string) => (await fetch(`${url}/${path}`)).status;
  expect([
    await statusOf('services'),
    await statusOf('configurations'),
    await statusOf('api/configurations'),
  ]).toEqual([200, 404, 404]);
});
