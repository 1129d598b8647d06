import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, it } from 'vitest';
import { client, data } from '../integration/zookeeper/discovery/discovery-support.js';
import {
  closeRegistrants,
  orders,
  registrant,
  until,
} from '../integration/zookeeper/services/services-support.js';
import { killAll, runCli } from '../support/processes.js';
import { launchBrowser } from '../support/programs/browser.js';
import { uniqueChroot } from '../support/zookeeper.js';
import { nameless, overflow, pale, violations, workOf } from './page-audit.js';
import { openPage, type WatchedPage } from './watched-page.js';

const TOKEN = 'a-token-for-the-tests';
const INSTANCES = 1_000;

let browser: Browser;
let address: string;
let folder: string;
const opened: WatchedPage[] = [];
/** Faults that a test brings about on purpose. */
let expected: RegExp | undefined;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(() => browser?.close());

beforeEach(async () => {
  address = `${inject('zookeeper').connect}${uniqueChroot('page')}`;
  folder = await mkdtemp(join(tmpdir(), 'nodelease-page-'));
  await writeFile(join(folder, 'token'), `${TOKEN}\n`);
});

afterEach(async () => {
  const faults = opened.flatMap((each) => each.faults).filter((fault) => !expected?.test(fault));
  for (const { page } of opened.splice(0)) await page.context().close();
  await killAll();
  await closeRegistrants();
  await rm(folder, { recursive: true });
  expected = undefined;
  expect(faults).toEqual([]);
});

const writable = () => ['--allow-writes', '--bearer-token-file', join(folder, 'token')];

async function open(path: string, command: readonly string[], options?: Parameters<typeof openPage>[2]) {
  const server = runCli([...command, '--http', '127.0.0.1:0', '--zookeeper', address]);
  const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m);
  const watched = await openPage(browser, `${url}${path}`, options);
  opened.push(watched);
  return { page: watched.page, url };
}

it('1,000 instances: found by the filter, changed before one’s eyes, and disabled for a discovery client', async () => {
  const tree = client(address);
  await tree.ensurePath('/services/orders');
  const idOf = (index: number) => `i-${String(index).padStart(4, '0')}`;
  const jsonOf = (index: number) =>
    JSON.stringify({
      id: idOf(index),
      address: `10.0.${index >> 8}.${index & 255}`,
      port: 8080,
      serviceType: 'STATIC',
      payload: { nodeId: index, version: 3 },
    });
  await Promise.all(
    Array.from({ length: INSTANCES }, (_, index) =>
      tree.create(`/services/orders/${idOf(index)}`, jsonOf(index), 'persistent'),
    ),
  );
  await tree.createWithParents('/discovery/nodes/00/0f', data(7, 3), 'ephemeral');
  const { discovery } = registrant(address);
  const provider = discovery.provider('orders');
  await provider.ready;

  const { page } = await open('/', ['discovery', 'serve', ...writable()]);
  await page.getByText(`1,000 instances`).waitFor();
  const work = await workOf(page);
  const before = await work();
  await page.locator('#services > details > summary').click();
  const rows = page.locator('#services tbody tr:visible');
  await expect.poll(() => rows.count()).toBe(INSTANCES);
  expect((await work()) - before).toBeLessThan(5);
  expect(await page.getByText('node id 7, version 3, task task-7').count()).toBe(1);
  expect(
    await page
      .getByText('node id 8, version 3, says its payload: the discovery tree has no such node')
      .count(),
  ).toBe(1);

  await tree.remove(`/services/orders/${idOf(4)}`);
  await tree.createWithParents('/services/orders/new', jsonOf(1_000), 'persistent');
  await page.locator('#services tr', { hasText: 'new' }).waitFor({ state: 'attached' });
  await expect.poll(() => rows.count()).toBe(INSTANCES);
  expect(await page.getByText(idOf(4), { exact: true }).count()).toBe(0);

  await page.keyboard.press('/');
  await page.keyboard.type('i-0007 8080');
  await expect.poll(() => rows.count()).toBe(1);
  await page.getByRole('button', { name: 'Disable orders i-0007' }).click();
  await page.getByRole('dialog').getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.locator('tr[data-state="disabled"]').waitFor();
  await until(() => !discoverable().includes('i-0007'));
  await page.getByRole('button', { name: 'Enable orders i-0007' }).click();
  await page.locator('tr[data-state="enabled"]:visible').waitFor();
  await until(() => discoverable().includes('i-0007'));
  await page.getByRole('button', { name: 'Remove orders i-0007' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await expect.poll(() => rows.count()).toBe(0);
  expect(await tree.read('/services/orders/i-0007')).toBeUndefined();

  /** What a client that follows the service sends requests to. */
  function discoverable(): string[] {
    return Array.from({ length: 2 * INSTANCES }, () => provider.pick()?.id ?? '');
  }
});

it('others’ texts are texts, damaged znodes are shown as such, and everything can be read, named and reached', async () => {
  const { discovery } = registrant(address);
  const html = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
  await discovery.register(
    orders({ id: html.replaceAll('/', '-'), payload: { zone: html, more: 'x'.repeat(100) } }),
  );
  await discovery.register(orders({ id: 'gone', enabled: false }));
  await discovery.register(
    orders({ id: 'resting', payload: { metadata: { instance_status: 'OUT_OF_SERVICE' } } }),
  );
  const tree = client(address);
  await tree.createWithParents('/services/orders/broken', html, 'persistent');
  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1280, 360]) {
      const { page } = await open('/', ['discovery', 'serve', ...writable()], {
        colorScheme: theme,
        viewport: { width, height: 800 },
      });
      await page.locator('#services tbody tr').nth(3).waitFor();
      expect(
        await page
          .locator('#services tbody tr')
          .evaluateAll((rows) => rows.map((row) => row.getAttribute('data-state'))),
        theme,
      ).toEqual(['enabled', 'damaged', 'disabled', 'out of service']);
      expect([await nameless(page), await pale(page), await overflow(page)], `${theme} ${width}`).toEqual([
        [],
        [],
        0,
      ]);
      expect(await violations(page)).toEqual([]);
      expect(await page.locator('#services img, #services script').count()).toBe(0);
      expect(await page.title()).toBe('services · nodelease');
    }
  }
  const page = opened.at(-1)?.page;
  await page?.locator('td summary').first().focus();
  await page?.keyboard.press('Enter');
  expect(await page?.locator('td details[open]').innerText()).toContain(JSON.stringify(html).slice(1, -1));
});

it('a token that is wrong changes nothing, and a change that was given up is not done later', async () => {
  expected = /401/;
  const tree = client(address);
  await tree.createWithParents('/services/orders/one', '{}', 'persistent');
  const { page } = await open('/', ['discovery', 'serve', ...writable()]);
  await page.getByRole('button', { name: 'Disable orders one' }).click();
  await page.getByRole('textbox', { name: 'Token' }).fill('a-wrong-token-of-some-length');
  await page.keyboard.press('Enter');
  await page.getByText('That is not the right token.').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#connection').click();
  await page.getByRole('textbox', { name: 'Token' }).fill(TOKEN);
  await page.keyboard.press('Enter');
  await tree.createWithParents('/services/orders/two', '{}', 'persistent');
  await page.getByRole('button', { name: 'Disable orders two' }).click();
  await page.locator('tr[data-state="disabled"]').waitFor();
  expect((await tree.read('/services/orders/one'))?.data.toString()).toBe('{}');
});

it('the console leads to the same page, which is read-only without --allow-writes, and says so', async () => {
  const { discovery } = registrant(address);
  await discovery.register(orders());
  const { page } = await open('/', ['console', '--store', `file:${folder}/store`]);
  await page.getByRole('link', { name: 'Services' }).click();
  await page.locator('#services tbody tr').waitFor();
  expect(await page.locator('#access').innerText()).toBe('Read-only: started without --allow-writes');
  expect(await page.getByRole('button', { name: /Disable|Remove/ }).count()).toBe(0);
  // Nothing but an address and a payload: no column for what is not there.
  expect(await page.locator('#services th:visible').allInnerTexts()).not.toContain('Actions');
  await page.getByRole('link', { name: 'Node ids' }).click();
  await page.getByText('There is no cluster').waitFor();
});

it('applications of Dubbo are shown as what they are, and cannot be disabled, which Dubbo would ignore', async () => {
  const tree = client(address);
  const json = await readFile('test/fixtures/dubbo/registered.znode');
  await tree.createWithParents('/services/demo-provider/192.0.2.2:20880', json, 'persistent');
  await tree.createWithParents('/services/demo-provider/providers', '10.0.0.7', 'persistent');
  await tree.createWithParents('/services/demo-provider/other', '{}', 'persistent');
  const { page } = await open('/', ['discovery', 'serve', ...writable()]);
  await page.getByText('2 enabled, 1 of a Dubbo interface').waitFor();
  expect(await page.getByText('dubbo:20880, tri:50051 · revision b049').count()).toBe(1);
  const buttons = page.getByRole('button', { name: /^(Disable|Remove) demo-provider/ });
  expect(await buttons.evaluateAll((all) => all.map((each) => each.getAttribute('aria-label')))).toEqual([
    'Remove demo-provider 192.0.2.2:20880',
    'Disable demo-provider other',
    'Remove demo-provider other',
    'Remove demo-provider providers',
  ]);
  expect(await nameless(page)).toEqual([]);
});
