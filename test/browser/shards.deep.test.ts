import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ShardsReport } from '../../src/node/wire/cluster-snapshot.js';
import { launchBrowser } from '../support/programs/browser.js';
import { nameless, overflow, pale, violations } from './page-audit.js';
import { ScriptedConsole } from './scripted-console.js';
import { ScriptedFleet } from './scripted-fleet.js';
import { scriptedShards } from './scripted-shards.js';
import { openPage, type WatchedPage } from './watched-page.js';

let browser: Browser;
const opened: WatchedPage[] = [];
const servers: ScriptedConsole[] = [];

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(() => browser?.close());

afterEach(async () => {
  const faults = opened.flatMap((each) => each.faults);
  for (const { page } of opened.splice(0)) await page.context().close();
  for (const server of servers.splice(0)) await server.close();
  expect(faults).toEqual([]);
});

async function open(
  nodes: number,
  shards: ShardsReport | undefined,
  options: Parameters<typeof openPage>[2] = {},
) {
  const fleet = new ScriptedFleet({ size: nodes, durationMs: 3_600_000, graceMs: 60_000 });
  fleet.change(2, { expiresInMs: -1_000 });
  const hello = () => ({ epoch: 'e', instance: null, ...fleet.snapshot(), shards });
  const server = await new ScriptedConsole(hello).start();
  servers.push(server);
  const watched = await openPage(browser, `${server.url}/`, options);
  opened.push(watched);
  const { page } = watched;
  return { fleet, server, page, map: page.locator('.shard-map'), text: page.locator('#shards-cursor') };
}

const WINDOWS = [
  ['light', 1_280],
  ['dark', 1_280],
  ['light', 360],
  ['dark', 360],
] as const;

describe.each([
  [64, 5],
  [4_096, 100],
])('%d shards of %d nodes', (count, nodes) => {
  it.each(WINDOWS)('can be read and operated: %s, %d pixels wide', async (colorScheme, width) => {
    const viewport = { width, height: 800 };
    const { page, map } = await open(nodes, scriptedShards(count, nodes), { colorScheme, viewport });
    await map.waitFor();
    await map.focus();
    await page.keyboard.press('ArrowRight');
    await page.locator('#shards').scrollIntoViewIfNeeded();
    expect([await nameless(page), await pale(page), await overflow(page)]).toEqual([[], [], 0]);
    expect(await violations(page)).toEqual([]);
    await page.locator('#help-open').click();
    expect(await violations(page)).toEqual([]);
  });

  it('are counted for each owner, in as many elements as there are owners', async () => {
    const shards = scriptedShards(count, nodes);
    const { page, map } = await open(nodes, shards);
    await map.waitFor();
    const shown = await page.locator('.owner').allInnerTexts();
    const numbers = shown.map((text) => text.match(/\d+/g)?.map(Number) ?? []);
    expect(numbers).toHaveLength(nodes);
    for (const [id, owned] of numbers)
      expect(shards.shards.filter(([owner]) => owner === id)).toHaveLength(owned ?? -1);
    const counts = numbers.map(([, owned]) => owned ?? 0);
    expect(counts).toEqual([...counts].sort((a, b) => b - a));
    expect(shown.filter((text) => text.includes('overdue'))).toEqual([expect.stringMatching(/^node 2\b/)]);
    expect(await map.locator('path').count()).toBe(nodes + 2);
    const moving = shards.shards.filter(([, , next]) => next >= 0).length;
    const orphaned = shards.shards.filter(([owner]) => owner < 0).length;
    const title = await page.locator('#shards .panel-title').innerText();
    for (const part of [
      `${moving} moving`,
      `${orphaned} without an owner`,
      `${count.toLocaleString('en')} shards`,
    ])
      expect(title).toContain(part);
  });
});

describe('the panel of shards', () => {
  it('names the shard that arrow keys, the pointer or a tap lead to, and shows what else its owner has', async () => {
    const { page, map, text } = await open(5, scriptedShards(64, 5));
    await map.focus();
    for (let step = 0; step < 8; step += 1) await page.keyboard.press('ArrowRight');
    const seven =
      'shard 7: node 1 (version 1), token 8, next node 2 (version 1), waits for node 1 to stop it';
    expect(await text.innerText()).toBe(seven);
    expect(await page.locator('.owner[aria-pressed="true"]').innerText()).toMatch(/^node 1\b/);
    await page.keyboard.press('ArrowDown');
    expect(await text.innerText()).toMatch(/^shard 23: /);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await text.innerText()).toMatch(/^shard 55: /);
    const { width = 0, height = 0 } = (await map.boundingBox()) ?? {};
    await map.hover({ position: { x: width - 15, y: height - 15 } });
    await expect
      .poll(() => text.innerText())
      .toBe('shard 63: no owner, token 23, waits for a node that takes it');
    await map.click({ position: { x: 10, y: 10 } });
    await expect.poll(() => text.innerText()).toMatch(/^shard 0: /);
    await page.getByRole('button', { name: /^node 2\b/ }).click();
    await expect
      .poll(() => text.innerText())
      .toMatch(/^shard \d+: node 2 .*, waits for the proof that node 2 is over: its lease is overdue$/);
    expect(await map.locator('.current').count()).toBe(1);
  });

  it('follows another map, says why a repair is due, and is absent where there are no shards', async () => {
    const { server, page, map } = await open(5, undefined);
    await page.locator('.cell').first().waitFor();
    expect(await map.count()).toBe(0);
    const shards = scriptedShards(64, 5);
    server.send('shards', shards);
    await map.waitFor();
    server.send('shards', { ...shards, epoch: 0, problem: 'is gone' });
    await page.getByText('shards.json is gone: nodelease init --repair mends it.').waitFor();
    server.send('shards', null);
    await map.waitFor({ state: 'detached' });
  });
});
