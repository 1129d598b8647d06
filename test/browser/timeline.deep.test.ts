import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../src/core/base/system.js';
import { packageRoot } from '../support/package-root.js';
import { launchBrowser } from '../support/programs/browser.js';
import { tenureScene } from '../support/tenure-scene.js';
import { overflow } from './page-audit.js';
import { ScriptedConsole } from './scripted-console.js';
import { ScriptedFleet } from './scripted-fleet.js';
import { scriptedTenures } from './scripted-tenures.js';
import { openPage, type WatchedPage } from './watched-page.js';

const HOUR_MS = 3_600_000;

let browser: Browser;
const opened: WatchedPage[] = [];
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(() => browser?.close());

afterEach(async () => {
  const faults = opened.flatMap((each) => each.faults);
  for (const { page } of opened.splice(0)) await page.context().close();
  for (const close of closing.splice(0).reverse()) await close();
  expect(faults).toEqual([]);
});

async function open(url: string, options: Parameters<typeof openPage>[2] = {}): Promise<Page> {
  const watched = await openPage(browser, url, { timezoneId: 'UTC', ...options });
  opened.push(watched);
  return watched.page;
}

async function openScripted(fleet: ScriptedFleet, options?: Parameters<typeof openPage>[2]) {
  const server = new ScriptedConsole(() => ({ epoch: 'e', instance: null, ...fleet.snapshot() }));
  server.history = scriptedTenures(fleet, HOUR_MS);
  await server.start();
  closing.push(() => server.close());
  return { server, page: await open(`${server.url}/`, options) };
}

/** A fleet of which each id has had this many tenures. */
function fleetOf(size: number, version: number): ScriptedFleet {
  const fleet = new ScriptedFleet({ size, durationMs: HOUR_MS, graceMs: 60_000 });
  fleet.nodes = fleet.nodes.map(({ id }) => fleet.held(id, version));
  return fleet;
}

const cursor = (page: Page) => page.locator('#timeline-cursor').innerText();
const lanes = (page: Page) => page.locator('[data-lane^="id"]');
const span = (page: Page, id: number, kind: string) =>
  page.locator(`[data-lane="id ${id}"] [data-kind="${kind}"]`);

/** Every tenure of the lane of the cursor as that names it, the newest first, from the keyboard. */
async function walk(page: Page): Promise<string[]> {
  const texts = [await cursor(page)];
  for (;;) {
    await page.keyboard.press('ArrowLeft');
    const text = await cursor(page);
    if (text === texts.at(-1)) return texts.filter((each) => !each.endsWith(', free'));
    texts.push(text);
  }
}

const TENURE =
  /^id (\d+) at \S+ \S+: (\S+), version (\d+)(?:, taken over)?, from (\S+ \S+?)(?:, until (\S+ \S+?))?, (\S+)$/;
const timeOf = (at: number) => new Date(at).toISOString().slice(0, 19).replace('T', ' ');

describe('the timeline', () => {
  it('has the last eight tenures of each id, to the second, in a browser that is opened after forty of them', async () => {
    const begin = Date.now() - HOUR_MS / 3;
    const { seen, session } = await tenureScene(begin);
    // As it is shipped: sources have no page.
    const http: typeof import('../../src/app/http/index.js') = await import(
      `${packageRoot}/dist/app/http/index.js`
    );
    const view = new http.ClusterFollower({ clock: systemClock, random: systemRandom, session });
    closing.push(() => view.close());
    const server = await http.startNodeServer({
      clock: systemClock,
      cluster: async () => view,
      listen: { host: '127.0.0.1', port: 0 },
    });
    closing.push(() => server.close());
    const page = await open(`${server.url}/`);
    await page.locator('.track [data-kind="expired"]').first().waitFor();
    await page.getByRole('application').focus();
    expect(await lanes(page).count()).toBe(5);
    // The first row has the take-overs.
    await page.keyboard.press('ArrowDown');
    for (let id = 0; id < 5; id += 1) {
      await page.keyboard.press('ArrowDown');
      // To the newest tenure.
      await page.keyboard.press('ArrowRight');
      for (let before = ''; before !== (await cursor(page)); await page.keyboard.press('ArrowRight'))
        before = await cursor(page);
      const all = seen.filter((each) => each.id === id).reverse();
      const kept = all.slice(0, all[0]?.end === null ? 9 : 8);
      const shown = (await walk(page)).map((text) => TENURE.exec(text)?.slice(1) ?? [text]);
      expect(shown.map(([node, task, version, , , end]) => [node, task, version, end])).toEqual(
        kept.map(({ taskId, version, end }) => [`${id}`, taskId, `${version}`, end ?? 'held']),
      );
      const [known] = view.tenures(new Set([id]));
      expect(shown.map(([, , , from, until]) => [from, until])).toEqual(
        known?.tenures.map(({ acquiredAt, endedAt }) => [
          timeOf(acquiredAt ?? 0),
          endedAt === null ? undefined : timeOf(endedAt),
        ]),
      );
      // And by the script's own record: it knows when it asked for an id, and when it ended a tenure.
      for (const [index, { from, until, end }] of kept.entries()) {
        const { acquiredAt = 0, endedAt = 0 } = known?.tenures[index] ?? {};
        expect(Math.abs((acquiredAt ?? 0) - from)).toBeLessThan(1_000);
        if (end !== null) expect((endedAt ?? 0) - until).toBeLessThan(end === 'expired' ? 5_000 : 1_000);
        if (end !== null) expect(until - (endedAt ?? 0)).toBeLessThan(1_000);
      }
    }
  });

  it('shows a take-over as it happens, as the lease object says it', async () => {
    const fleet = fleetOf(3, 1);
    const { server, page } = await openScripted(fleet);
    await span(page, 1, 'held').waitFor();
    const now = Date.now();
    const past = { version: 1, taskId: 'task-2', acquiredAt: now - 600_000, endedAt: now - 9_000 };
    server.history = () => [
      {
        id: 1,
        knownSince: now - 600_000,
        tenures: [
          { version: 2, taskId: 'successor', acquiredAt: now - 5_000, endedAt: null, end: null },
          { ...past, end: 'expired' },
        ],
      },
    ];
    const { event } = fleet.takeOver(1, 'successor');
    server.send('report', fleet.snapshot().report);
    server.send('change', event);
    await span(page, 1, 'expired').waitFor();
    expect(await span(page, 1, 'held').getAttribute('data-taken')).toBe('');
    await page.getByRole('application').focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowRight'])
      await page.keyboard.press(key);
    await expect
      .poll(() => cursor(page))
      .toMatch(
        new RegExp(`^id 1 at .*: successor, version 2, taken over, from ${timeOf(now - 5_000)}, held$`),
      );
  });

  it('claims nothing of the time before the page where the lease objects have no history', async () => {
    const fleet = fleetOf(2, 5);
    const server = new ScriptedConsole(() => ({ epoch: 'e', instance: null, ...fleet.snapshot() }));
    server.history = (ids) =>
      [...ids].map((id) => ({
        id,
        knownSince: null,
        tenures: [{ version: 5, taskId: 'task', acquiredAt: null, endedAt: null, end: null }],
      }));
    await server.start();
    closing.push(() => server.close());
    const page = await open(`${server.url}/`);
    await span(page, 1, 'no known tenure').waitFor();
    await span(page, 1, 'held').waitFor();
    const track = await page.locator('[data-lane="id 1"]').boundingBox();
    await page.mouse.click((track?.x ?? 0) + 40, (track?.y ?? 0) + 5);
    await expect.poll(() => cursor(page)).toMatch(/^id 1 at \S+ \S+: until \S+ \S+, no known tenure$/);
  });

  it('zooms at the cursor, goes back in time, and forward again', async () => {
    const { page } = await openScripted(fleetOf(5, 9));
    await span(page, 0, 'held').waitFor();
    const shown = async () => {
      const labels = await page.locator('.axis span').allInnerTexts();
      let date = '';
      const moments = labels.map((label) => {
        const [time, own = date] = label.trim().split(/\s+/);
        date = own;
        return Date.parse(`${date} ${time}Z`);
      });
      const [from = 0, to = 0] = [moments[0], moments[4]];
      return {
        to,
        seconds: (to - from) / 1_000,
        dates: labels.filter((label) => label.includes('-')).length,
      };
    };
    // What holds the tenures.
    expect((await shown()).seconds).toBe(3_600);
    expect([1, 2]).toContain((await shown()).dates);
    expect((await shown()).seconds).toBe(3_600);
    await page.getByRole('application').focus();
    for (let step = 0; step < 8; step += 1) await page.keyboard.press(step < 2 ? 'ArrowDown' : 'ArrowLeft');
    const text = await cursor(page);
    await page.getByLabel('How much time').selectOption({ label: '5 min' });
    expect((await shown()).seconds).toBe(300);
    expect(await cursor(page)).toBe(text);
    const place = await page
      .locator('.cursor')
      .evaluate((line) => (line as unknown as { style: { left: string } }).style.left);
    expect(Number.parseFloat(place)).toBeCloseTo(50, 0);
    // To yesterday, and to the present again.
    const at = async (label: string, share: number) => {
      await page.getByLabel('How much time').selectOption({ label });
      const { width = 0 } = (await page.locator('[data-lane="id 0"]').boundingBox()) ?? {};
      await page.locator('[data-lane="id 0"]').click({ position: { x: share * width, y: 5 }, force: true });
      await page.getByLabel('How much time').selectOption({ label: '5 min' });
    };
    await at('1 d', 0.1);
    expect(await cursor(page)).toMatch(/^id 0 at \S+ \S+: until \S+ \S+, no known tenure$/);
    expect(Date.now() - (await shown()).to).toBeGreaterThan(10 * HOUR_MS);
    await at('7 d', 0.999);
    await at('1 d', 0.999);
    expect(Date.now() - (await shown()).to).toBeLessThan(HOUR_MS);
  });

  it('of many ids has a lane for a hundred, and one for each that is selected or fits the filter', async () => {
    const { page } = await openScripted(fleetOf(1_000, 4));
    await expect.poll(() => lanes(page).count()).toBe(10);
    await page.locator('[data-lane="ids 900–999"] [data-kind="held"]').first().waitFor();
    await page.locator('#node-645').click();
    await expect.poll(() => lanes(page).count()).toBe(11);
    expect(await page.locator('[data-lane="id 645"] .span').count()).toBeGreaterThan(1);
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('10-29');
    await expect.poll(() => lanes(page).count()).toBe(30);
    await page.locator('.lane-name', { hasText: 'id 12' }).click();
    expect(await page.getByRole('heading', { name: /^Node id / }).innerText()).toBe('Node id 12');
  });

  it.each([
    [360, 5],
    [360, 200],
    [1_440, 1_000],
  ])('stays within a window %d pixels wide, with %d ids', async (width, size) => {
    const { page } = await openScripted(fleetOf(size, 9), { viewport: { width, height: 800 } });
    await lanes(page).first().waitFor();
    expect(await overflow(page)).toBe(0);
  });
});
