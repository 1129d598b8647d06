import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest';
import { type CamundaTask, camundaBucket } from '../support/camunda-bucket.js';
import { CAMUNDA_MARKER, camundaFree, camundaReleased, camundaRestore } from '../support/camunda-objects.js';
import { killAll, runCli } from '../support/processes.js';
import { launchBrowser } from '../support/programs/browser.js';
import { nameless, overflow, pale } from './page-audit.js';
import { openPage, type WatchedPage } from './watched-page.js';

const DURATION_MS = 6_000;

let browser: Browser;
let watched: WatchedPage | undefined;
let renewals: ReturnType<typeof setInterval> | undefined;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser?.close());
afterEach(async () => {
  clearInterval(renewals);
  await watched?.page.context().close();
  await killAll();
});

it('nodelease console of a moving fleet of Camunda 8: renewals, clocks that disagree, a take-over, and a version that is used twice', async () => {
  const bucket = await camundaBucket(inject('s3'));
  for (const id of [0, 1, 2, 3]) await bucket.put(camundaFree(id));
  await bucket.put(camundaReleased(4, 2, false));
  await bucket.put({ ...camundaFree(5), body: '{}' });
  await bucket.put(CAMUNDA_MARKER);
  await bucket.put(camundaRestore('backup-7', [0, 1]));
  const starter = (id: number, taskId: string, aheadMs = 0) =>
    bucket.starter(id, taskId, { durationMs: DURATION_MS, aheadMs });
  const first = await starter(0, 'broker-a');
  const third = await starter(2, 'broker-c');
  const paused = await starter(2, 'broker-e');
  const alive = new Set<CamundaTask>([first, await starter(1, 'broker-b', 30_000), third]);
  for (const task of alive) await task.renew();
  const renewing = new Map<CamundaTask, Promise<unknown>>();
  renewals = setInterval(() => {
    for (const task of alive)
      renewing.set(
        task,
        task.renew().catch(() => alive.delete(task)),
      );
  }, DURATION_MS / 3);

  const env = bucket.env;
  const command = runCli(['console', '--http', '127.0.0.1:0', ...bucket.options], { env });
  const [, url = ''] = await command.waitForOutput(/^(http:\/\/\S+)$/m, 30_000);
  watched = await openPage(browser, `${url}/`);
  const { page, faults } = watched;
  const cell = (id: number) => page.locator(`.cell[data-id="${id}"]`);
  const label = (id: number) => cell(id).getAttribute('aria-label');

  await expect.poll(() => label(0)).toBe('Node id 0, held, by broker-a, version 1');
  expect(await label(1)).toMatch(
    /^Node id 1, held, by broker-b, version 1, its holder’s clock is (29|30|31|32) s ahead of the other holders’/,
  );
  expect(await label(3)).toBe('Node id 3, free, never held');
  expect(await label(4)).toBe('Node id 4, retired, version 2');
  expect(await label(5)).toMatch(/^Node id 5, damaged, never held, lease object has no usable "taskId"/);
  expect(await page.locator('#settings').innerText()).toMatch(
    /^6 node ids · leases of about [567] s · Camunda 8, read only$/,
  );
  expect(await page.locator('#store').innerText()).toMatch(
    /Format\s+Camunda 8\s+Marker\s+there\s+Restore backup-7\s+node ids 0, 1/,
  );
  // Renewed again and again, it never runs out; what it knows of the others is shown.
  alive.delete(third);
  await renewing.get(third);
  await third.renew({ 0: 1, 2: 1 });
  alive.add(third);
  await page.waitForTimeout(2 * DURATION_MS);
  expect(await page.locator('.event').count()).toBe(0);
  await cell(0).click();
  await expect.poll(() => page.locator('#details').innerText()).toContain('1 of 2 do · 1 not yet');
  expect(await page.locator('#details').innerText()).toMatch(
    /by its holder’s clock, as written[\s\S]*Acquirable\s+yes/,
  );
  // Renewals leave the panel alone, although no two of them are as long after the holder's time.
  const panel = await page.locator('#details h2').elementHandle();
  await page.waitForTimeout(DURATION_MS);
  expect(await panel?.evaluate((node) => node.isConnected)).toBe(true);

  // A holder that has gone is overdue, and then another task takes its node id over.
  alive.delete(first);
  await page.locator('.event[data-kind="overdue"]', { hasText: 'node id 0' }).waitFor();
  const heir = await starter(0, 'broker-d');
  await heir.renew();
  alive.add(heir);
  await page
    .locator('.event[data-kind="taken-over"]', {
      hasText: 'broker-d took over node id 0 from broker-a at version 2',
    })
    .waitFor();
  // A starter that was paused has read an empty object a whole tenure ago: its If-Match holds, and its
  // version is in use already.
  alive.delete(third);
  await renewing.get(third);
  await third.release();
  await page.locator('.event[data-kind="released"]', { hasText: 'node id 2' }).waitFor();
  await paused.renew();
  alive.add(paused);
  const repeated = page.locator('.event[data-kind="version-repeated"]');
  await repeated.waitFor();
  expect(await repeated.innerText()).toContain(
    'version 1 of node id 2 is used again by broker-e, after its use by broker-c',
  );
  await expect.poll(() => label(2)).toBe('Node id 2, held, by broker-e, version 1');

  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toContain('nodelease_cluster_node_ids{state="held"} 3\n');
  expect(metrics).toContain('nodelease_cluster_version{node_id="0"} 2\n');
  expect(metrics).toMatch(/nodelease_cluster_holder_clock_offset_seconds\{node_id="1"\} (29|3[01])\n/);

  const audit = [await nameless(page), await pale(page), await overflow(page)];
  expect(audit).toEqual([[], [], 0]);
  const file = process.env.NODELEASE_SCREENSHOT;
  if (file) await page.screenshot({ path: file, fullPage: true });
  expect(faults).toEqual([]);
});
