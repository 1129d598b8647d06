import { execFileSync } from 'node:child_process';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { killAll, runCli } from '../support/processes.js';
import { launchBrowser } from '../support/programs/browser.js';
import { openPage, type WatchedPage } from './watched-page.js';

/** Notes every state that the cell of node id 2 is in from now on: some last for a second only. */
const NOTE_STATES = `
  const cell = document.querySelector('.cell[data-id="2"]');
  globalThis.states = [];
  new MutationObserver(() => states.push(cell.dataset.state)).observe(cell, { attributeFilter: ['data-state'] });
`;

let browser: Browser;
let watched: WatchedPage | undefined;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(() => browser?.close());

afterEach(async () => {
  await watched?.page.context().close();
  await killAll();
});

it('nodelease demo in a browser: a task is killed from the shell, others are by buttons, and the page shows the loss and the take-over without a reload', async () => {
  const demo = runCli(['demo', '--http', '127.0.0.1:0']);
  const [, url = ''] = await demo.waitForOutput(/Console: (http:\/\/\S+)/, 30_000);
  watched = await openPage(browser, `${url}/`);
  const { page, faults } = watched;
  await page.evaluate('document.documentElement.dataset.since = "the first load"');
  const held = page.locator('.cell[data-state="held"]');
  await expect.poll(() => held.count(), { timeout: 30_000 }).toBe(3);
  await expect.poll(() => page.locator('#connection').innerText()).toBe('live');

  // From this act on the demo kills no task by itself.
  await page.getByRole('button', { name: 'stop the task of node id 0' }).click();
  await page.locator('.event[data-kind="acquired"]', { hasText: 'node id 0 at version 2' }).waitFor();
  await page.getByRole('button', { name: 'kill the task of node id 1' }).waitFor({ timeout: 30_000 });

  const cell = page.locator('.cell[data-id="2"]');
  const label = (await cell.getAttribute('aria-label')) ?? '';
  const [, taskId, version] = /^Node id 2, held, by (task-\d+), version (\d+)$/.exec(label) ?? [];
  const [, pid = ''] = await demo.waitForOutput(new RegExp(`${taskId} \\(pid (\\d+)\\) started`));
  await page.evaluate(NOTE_STATES);
  execFileSync('sh', ['-c', `kill -9 ${pid}`]);

  await page.locator('.event[data-kind="overdue"]', { hasText: 'node id 2' }).waitFor({ timeout: 30_000 });
  const takeOver = page.locator('.event[data-kind="taken-over"]', { hasText: 'node id 2' });
  await takeOver.waitFor({ timeout: 30_000 });
  const successor = /(task-\d+) took over/.exec(await takeOver.innerText())?.[1];
  expect(successor).not.toBe(taskId);
  await expect
    .poll(() => cell.getAttribute('aria-label'))
    .toBe(`Node id 2, held, by ${successor}, version ${Number(version) + 1}`);
  expect(await page.evaluate('states')).toEqual(expect.arrayContaining(['overdue', 'held']));
  expect(await page.evaluate('document.documentElement.dataset.since')).toBe('the first load');

  await page.getByRole('button', { name: 'kill the task of node id 1' }).click();
  await page
    .locator('.event[data-kind="taken-over"]', { hasText: 'took over node id 1' })
    .waitFor({ timeout: 30_000 });
  expect(faults).toEqual([]);

  demo.kill('SIGTERM');
  await page.locator('#banner-text', { hasText: /What you see is .* old/ }).waitFor({ timeout: 30_000 });
  expect(await demo.exit).toEqual({ code: 0, signal: null });
});
