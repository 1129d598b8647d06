import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HttpProblem } from '../../src/app/http/problem.js';
import { launchBrowser } from '../support/programs/browser.js';
import { nameless, overflow, pale, violations, workOf } from './page-audit.js';
import { type Hello, ScriptedConsole } from './scripted-console.js';
import { ScriptedFleet } from './scripted-fleet.js';
import { scriptedTree } from './scripted-tree.js';
import { openPage, type WatchedPage } from './watched-page.js';

const HOUR_MS = 3_600_000;
/** How often something is read out while the banner changes five times. */
const SPOKEN = `new Promise((resolve) => {
  let [changes, spoken] = [0, 0];
  const watch = (element, onChange) => new MutationObserver(onChange).observe(element, { subtree: true, childList: true, characterData: true });
  for (const region of document.querySelectorAll('[role=status]:not([aria-live=off])')) watch(region, () => spoken++);
  watch(document.getElementById('banner-text'), () => ++changes === 5 && resolve(spoken));
})`;

let browser: Browser;
let server: ScriptedConsole;
let opened: WatchedPage[] = [];
/** Faults that a test brings about on purpose. */
let expected: RegExp | undefined;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(() => browser?.close());

afterEach(async () => {
  const faults = opened.flatMap((each) => each.faults).filter((fault) => !expected?.test(fault));
  for (const { page } of opened) await page.context().close();
  opened = [];
  expected = undefined;
  await server.close();
  expect(faults).toEqual([]);
});

/** The page of a server that begins with what the fleet is then. */
async function openConsole(
  fleet: ScriptedFleet,
  facts: Partial<Hello> = {},
  options?: Parameters<typeof openPage>[2],
): Promise<Page> {
  server = await new ScriptedConsole(() => ({
    epoch: 'e',
    instance: null,
    ...fleet.snapshot(),
    ...facts,
  })).start();
  const watched = await openPage(browser, `${server.url}/`, options);
  opened.push(watched);
  return watched.page;
}

// Leases that last for an hour do not run out while a loaded machine takes its time.
const fleetOf = (size: number) => new ScriptedFleet({ size, durationMs: HOUR_MS, graceMs: 60_000 });
const cell = (page: Page, id: number) => page.locator(`.cell[data-id="${id}"]`);
const focusedId = (page: Page) => page.evaluate<string | undefined>('document.activeElement?.dataset.id');

/** A fleet with a node id in every state. */
function oddFleet(size: number): ScriptedFleet {
  const fleet = fleetOf(size);
  fleet.change(1, { expiresInMs: -1_000 });
  fleet.change(2, { state: 'expired', expiresInMs: -90_000 });
  fleet.free(3);
  fleet.free(4, 7);
  fleet.change(5, { state: 'evicted', taskId: null, version: 9, expiresInMs: HOUR_MS / 2 });
  fleet.change(6, { state: 'retired', taskId: null, expiresInMs: null });
  fleet.change(7, { state: 'unreadable', taskId: null, expiresInMs: null, problem: 'the body is no JSON' });
  fleet.change(8, {
    state: 'absent',
    taskId: null,
    version: 0,
    expiresInMs: null,
    problem: 'lease object is absent',
  });
  fleet.change(9, { expiresInMs: HOUR_MS / 5 });
  return fleet;
}

describe('the console shows', () => {
  it('every node id with its state, holder and version, and in words for screen readers', async () => {
    const page = await openConsole(oddFleet(12));
    await cell(page, 11).waitFor();
    const labels = await page
      .locator('.cell')
      .evaluateAll((cells) => cells.map((each) => each.getAttribute('aria-label')));
    expect(labels.slice(0, 9)).toEqual([
      'Node id 0, held, by task-1, version 1',
      'Node id 1, overdue, by task-2, version 1',
      'Node id 2, expired, last by task-3, version 1',
      'Node id 3, free, never held',
      'Node id 4, free, version 7',
      'Node id 5, evicted, version 9',
      'Node id 6, retired, version 1',
      'Node id 7, damaged, version 1, the body is no JSON',
      'Node id 8, damaged, never held, lease object is absent',
    ]);
    expect(await page.locator('#states .chip:visible').allTextContents()).toEqual([
      '4 held',
      '1 overdue',
      '1 expired',
      '2 damaged',
      '1 evicted',
      '2 free',
      '1 retired',
    ]);
  });

  it('a bar that runs to the deadline and past it by itself, and is full again with a renewal', async () => {
    const fleet = new ScriptedFleet({ size: 1, durationMs: 4_000, graceMs: HOUR_MS });
    const page = await openConsole(fleet);
    const share = () =>
      page.evaluate<number>("new DOMMatrix(getComputedStyle(document.querySelector('.bar i')).transform).a");
    await cell(page, 0).waitFor();
    const early = await share();
    await page.locator('.cell[data-state="overdue"]').waitFor();
    await expect.poll(() => page.locator('.cell-left').innerText()).toContain('free in 59 min');
    fleet.change(0, { expiresInMs: HOUR_MS });
    server.send('report', fleet.snapshot().report);
    await page.locator('.cell[data-state="held"]').waitFor();
    await expect.poll(share).toBe(1);
    expect(early).toBeLessThanOrEqual(1);
  });

  it('who knows whose version, once a node id is selected', async () => {
    const fleet = fleetOf(4);
    const { node } = fleet.takeOver(1, 'successor');
    fleet.change(0, { knownNodes: { 1: 2, 2: 1, 3: 1 } });
    fleet.change(3, { knownNodes: {} });
    expect(node.version).toBe(2);
    fleet.discovery = { state: 'ok', problem: null, nodes: [] };
    const page = await openConsole(fleet);
    await cell(page, 1).click();
    expect(await cell(page, 0).getAttribute('data-known')).toBe('current');
    expect(await cell(page, 2).getAttribute('data-known')).toBe('behind');
    expect(await cell(page, 3).getAttribute('data-known')).toBe('unknown');
    const details = page.getByRole('region', { name: 'Node id 1' });
    expect(await details.innerText()).toContain('1 of 3 do · 1 behind · 1 not yet');
    expect(await details.getByRole('button', { name: 'Node id 2: behind, at version 1' }).isVisible()).toBe(
      true,
    );
    fleet.change(2, { knownNodes: { 1: 2 } });
    server.send('report', fleet.snapshot().report);
    await expect.poll(() => cell(page, 2).getAttribute('data-known')).toBe('current');
  });

  it('the locks of the store, and nothing of ZooKeeper without one', async () => {
    const fleet = fleetOf(1);
    const times = { since: Date.now() - 60_000, until: Date.now() };
    const facts = { state: 'held', problem: null, once: null, ...times } as const;
    const locks = [
      { ...facts, name: 'nightly', holder: 'task-9', token: 7 },
      { ...facts, name: 'report', state: 'released', holder: null, token: 3, since: null, until: null },
      { ...facts, name: 'weekly', holder: 'task-9', token: 2, problem: 'tick.json is no JSON' },
    ] as const;
    const page = await openConsole(fleet, { locks });
    const panel = page.getByRole('region', { name: 'Locks' });
    await expect
      .poll(() => panel.locator('li').allInnerTexts())
      .toEqual([
        expect.stringMatching(/^nightly\s+held by task-9, token 7, since \S+ \S+, until \S+$/),
        expect.stringMatching(/^report\s+free, last token 3$/),
        expect.stringMatching(/^weekly\s+held by task-9, token 2, since .* tick\.json is no JSON$/),
      ]);
    expect(await page.locator('#settings').innerText()).toMatch(/^1 node id · lease 1 h and 1 min of grace/);
    await cell(page, 0).click();
    await page.keyboard.press('?');
    const text = await page.locator('body').innerText();
    expect(text).toContain('Node id 0');
    expect(text).not.toMatch(/discovery|knows|behind|ZooKeeper/i);
    await page.keyboard.press('Escape');
    server.send('locks', []);
    await panel.waitFor({ state: 'detached' });
  });

  it('tasks without ZooKeeper without an alarm, and a tree without an empty count', async () => {
    const fleet = fleetOf(3);
    for (const { id } of fleet.nodes) fleet.change(id, { knownNodes: {} });
    const missing = (ids: readonly number[]) => ({
      state: 'degraded' as const,
      problem: `of 3 held node ids ${ids.length} missing`,
      nodes: ids.map((id) => ({ id, state: 'missing' as const, version: null })),
    });
    const tree = { ...scriptedTree([]), locks: undefined, configurations: [] };
    const report = { ...fleet.snapshot().report, discovery: missing([0, 1, 2]) };
    const page = await openConsole(fleet, { tree, report });
    await page.locator('#store').getByText('of 3 held node ids 3 missing').waitFor();
    expect(await page.locator('#store .bad').count()).toBe(0);
    expect(await page.locator('#tree').innerText()).not.toMatch(/^0$/m);
    fleet.change(1, { knownNodes: { 0: 1 } });
    server.send('report', { ...fleet.snapshot().report, discovery: missing([1]) });
    await page.locator('#store .bad').waitFor();
    const offers = { hasServices: true, hasConfigurations: true } as const;
    server.send('hello', { epoch: 'e', instance: null, ...fleet.snapshot(), ...offers });
    const boxes = async () => Promise.all([0, 1].map((at) => page.locator('#pages a').nth(at).boundingBox()));
    await page.getByText('Configurations').waitFor();
    const [first, second] = await boxes();
    expect((second?.x ?? 0) - (first?.x ?? 0) - (first?.width ?? 0)).toBeGreaterThan(5);
  });

  it('a take-over as it happens: on the cell, in the list, and aloud', async () => {
    const fleet = fleetOf(3);
    const page = await openConsole(fleet);
    await cell(page, 2).waitFor();
    const { event } = fleet.takeOver(2, 'successor');
    const flashed = page.locator('.cell[data-id="2"][data-flash="taken-over"]').waitFor();
    server.send('report', fleet.snapshot().report);
    server.send('change', event);
    await flashed;
    await expect
      .poll(() => cell(page, 2).innerText())
      .toMatch(/successor[\s\S]*v2[\s\S]*taken over from task-3, /);
    expect(await page.locator('.event').first().innerText()).toContain(
      'successor took over node id 2 from task-3 at version 2',
    );
    await expect
      .poll(() => page.locator('#announcer').textContent())
      .toContain('successor took over node id 2');
  });

  it('the last 200 events, and the ones that fit a filter', async () => {
    const fleet = fleetOf(3);
    for (let index = 0; index < 230; index += 1)
      fleet.event(index % 10 === 0 ? 'overdue' : 'acquired', index % 3, `event number ${index}`);
    const page = await openConsole(fleet);
    await expect.poll(() => page.locator('.event').count()).toBe(200);
    expect(await page.locator('.event').first().innerText()).toContain('event number 229');
    server.send('change', fleet.event('taken-over', 0, 'one more'));
    await page.locator('.event', { hasText: 'one more' }).waitFor();
    expect(await page.locator('.event').count()).toBe(200);
    await page.getByLabel('Which events').selectOption('losses');
    expect(await page.locator('.event:visible').count()).toBe(19);
    await page.getByLabel('Events that contain').fill('number 40');
    expect(await page.locator('.event:visible').count()).toBe(1);
    await page.getByLabel('Events that contain').fill('nothing like it');
    expect(await page.getByText('No event fits the filter.').isVisible()).toBe(true);
  });

  it('the events of a mass expiry as one, which can be opened', async () => {
    const fleet = fleetOf(12);
    for (const { id, taskId } of fleet.nodes)
      fleet.event('overdue', id, `${taskId} did not renew node id ${id}`);
    const at = Date.now();
    fleet.events = fleet.events.map((event) => ({ ...event, at }));
    fleet.event('taken-over', 0, 'successor took over node id 0');
    const page = await openConsole(fleet);
    const mass = page.locator('.event-list > .event', { hasText: /node ids?: overdue/ });
    await mass.getByText('12 node ids').waitFor();
    expect(await page.locator('.event-list > .event').count()).toBe(2);
    await mass.locator('summary').click();
    expect(await mass.locator('.event:visible').count()).toBe(12);
    await page.getByLabel('Events that contain').fill('node id 11');
    await expect.poll(() => page.locator('.event:visible').count()).toBe(1);
    expect(await page.locator('.event:visible').innerText()).toContain('did not renew node id 11');
  });

  it('long names of tasks by their beginning and end, on a phone after the events', async () => {
    const fleet = new ScriptedFleet({
      ...{ size: 3, durationMs: HOUR_MS, graceMs: 60_000 },
      taskOf: (id) => `4f0c2a91-77b0-4c3e-9f60-5d2a0000000${id}`,
    });
    const { event } = fleet.takeOver(1, '9b1f5e77-22aa-4c3e-9f60-5d2a00000009');
    const page = await openConsole(fleet, {}, { viewport: { width: 360, height: 740 } });
    const text = page.locator('.event', { hasText: '9b1f5e77-2…a00000009 took over node id 1 from' });
    await text.waitFor();
    expect(await text.locator('.event-text').getAttribute('title')).toBe(event.text);
    // The end of a name has its room in every cell.
    const end = await cell(page, 2).locator('.cell-holder span').last().boundingBox();
    expect(end?.width).toBeGreaterThan(20);
    const [events, ids] = await Promise.all(
      ['#events', '.ids'].map((part) => page.locator(part).boundingBox()),
    );
    expect(events?.y).toBeLessThan(ids?.y ?? 0);
  });

  it('the discovery tree, the store, and the instance that serves it', async () => {
    const fleet = fleetOf(3);
    const instance = {
      state: 'lost',
      live: false,
      ready: false,
      reason: 'the lease is lost',
      nodeId: 1,
      version: 4,
      taskId: 'task-2',
    };
    const page = await openConsole(fleet, {
      tree: scriptedTree(fleet.nodes),
      instance: { ...instance, validForMs: null, idWidth: 8, discovery: null },
    });
    const tree = page.getByRole('region', { name: 'Discovery tree' });
    await tree.getByText('orders', { exact: true }).waitFor();
    expect(await tree.innerText()).toContain('10.0.0.2:8080');
    expect(await page.locator('#instance').innerText()).toContain('the lease is lost');
    expect(await page.locator('#store').innerText()).toMatch(
      /s3:\/\/orders-prod\/leases[\s\S]*18 ms[\s\S]*within 580 ms/,
    );
    server.send('tree', null);
    await tree.waitFor({ state: 'detached' });
  });

  it('the discovery tree as it is left open, to users with a keyboard too, and no more of it than can be drawn', async () => {
    const fleet = fleetOf(3);
    const tree = scriptedTree(fleet.nodes);
    const page = await openConsole(fleet, { tree });
    const region = page.getByRole('region', { name: 'Discovery tree' });
    const summary = region.locator('summary', { hasText: /^endpoints/ });
    await summary.press('Enter');
    const isOpen = () => region.locator('details[open] > summary', { hasText: /^endpoints/ }).count();
    const hasFocus = () => region.locator('summary:focus', { hasText: /^endpoints/ }).count();
    await expect.poll(isOpen).toBe(1);
    const drawn = await summary.elementHandle();
    // The same again: nothing is replaced.
    server.send('tree', tree);
    await page.waitForTimeout(400);
    expect([await drawn?.evaluate((element) => element.isConnected), await hasFocus()]).toEqual([true, 1]);
    const [first] = tree.services;
    const services = Array.from({ length: 500 }, (_, index) => ({
      service: `service-${index}`,
      nodes: first?.nodes ?? [],
    }));
    server.send('tree', { ...tree, services });
    await region.getByText('and 300 more').waitFor();
    expect(await region.getByText(/^service-/).count()).toBe(200);
    expect([await isOpen(), await hasFocus()]).toEqual([1, 1]);
  });

  it('the locks that are followed: holder, token and age, and who waits, in the order of their turns', async () => {
    const fleet = fleetOf(1);
    const since = Date.now() - 125_000;
    const contender = (data: string, token: number) => ({
      data,
      sessionId: '100000000000000a',
      token: String(token),
      since,
    });
    const held = {
      path: '/locks/report',
      kind: 'lock',
      holders: [contender('task-1', 4711)],
      waiting: [contender('<b>two', 4712)],
    } as const;
    const free = { ...scriptedTree(fleet.nodes), exists: false };
    const page = await openConsole(fleet, { tree: { ...free, locks: [held] } });
    const lock = page.locator('summary', { hasText: '/locks/report' }).locator('..');
    await lock.waitFor();
    expect(await lock.locator('summary').innerText()).toMatch(/^\/locks\/report \(lock\)\s*2$/);
    const entries = await lock.locator('li').allInnerTexts();
    expect(entries[0]?.replace(/\s+/g, ' ')).toMatch(/^task-1 token 4711, 2 min \d+ s$/);
    expect(entries[1]?.replace(/\s+/g, ' ')).toMatch(/^<b>two waiting, 2 min \d+ s$/);
    const age = () => lock.locator('.entry-note span').first().innerText();
    const before = await age();
    await expect.poll(age).not.toBe(before);
    server.send('tree', { ...free, locks: null });
    await page.getByText('They cannot be read.').waitFor();
    server.send('tree', { ...free, locks: undefined });
    await expect.poll(() => page.locator('#tree summary', { hasText: /^locks/ }).count()).toBe(0);
  });

  it('that there is no cluster yet, and the cluster as soon as there is one', async () => {
    const fleet = fleetOf(3);
    const { report, store } = fleet.snapshot();
    const page = await openConsole(fleet, { report: { ...report, cluster: null, nodes: [] } });
    await page.getByText('There is no cluster at s3://orders-prod/leases yet').waitFor();
    server.send('report', report);
    server.send('store', store);
    await expect.poll(() => page.locator('.cell').count()).toBe(3);
    expect(await page.locator('#empty').isVisible()).toBe(false);
  });

  it('whatever tasks call themselves as text, and nothing but text', async () => {
    const fleet = fleetOf(3);
    const evil = '<img src=x onerror="document.title=1">';
    fleet.takeOver(0, evil);
    fleet.change(1, { state: 'unreadable', problem: evil });
    const page = await openConsole(fleet, { tree: scriptedTree(fleet.nodes) });
    await cell(page, 0).click();
    expect(await page.locator('#details').innerText()).toContain(evil);
    expect(await page.locator('main img').count()).toBe(0);
  });
});

describe('what is not live is not shown as if it were:', () => {
  it('without a connection everything freezes, dimmed and with its age, and goes on after the reconnect', async () => {
    expected = /ERR_|Failed to load|503/;
    // The first of them runs out after two thirds of it: time enough to end the connection before.
    const fleet = new ScriptedFleet({ size: 3, durationMs: 8_000, graceMs: 1_000 });
    fleet.event('acquired', 0, 'first');
    const page = await openConsole(fleet);
    await cell(page, 0).waitFor();
    await expect.poll(() => page.locator('#connection').innerText()).toBe('live');
    server.refusal = new HttpProblem('unavailable', 'not now');
    server.drop();
    await page.locator('#banner-text', { hasText: /What you see is .* old: not now/ }).waitFor();
    expect(await page.locator('#connection').innerText()).toMatch(/^reconnecting in \d+ s$|^connecting/);
    await expect.poll(() => page.locator('#banner-text').innerText()).toMatch(/is (9\.|\d\d).* s old/);
    expect(await page.locator('.cell[data-state="held"]').count()).toBe(3);
    fleet.event('released', 1, 'meanwhile');
    const retry = await page.getByRole('button', { name: 'Try now' }).elementHandle();
    server.refusal = undefined;
    // Within the page: by the time that a mouse is there, it may have reconnected by itself, and the button
    // be gone.
    await retry?.evaluate('(button) => button.click()');
    await page.getByText('meanwhile').waitFor();
    expect(await page.locator('.event').count()).toBe(2);
    await expect.poll(() => page.locator('#banner').isVisible()).toBe(false);
  });

  it('a page that is opened while the store fails has the time of the last listing', async () => {
    const fleet = fleetOf(3);
    const facts = { state: 'failing', problem: 'denied', lookedAt: Date.now() - HOUR_MS } as const;
    const page = await openConsole(fleet, { store: { ...fleet.snapshot().store, ...facts } });
    await cell(page, 0).waitFor();
    expect(await page.locator('.axis small').first().innerText()).toMatch(/^20\d\d-/);
  });

  it('while the store fails, with the reason', async () => {
    const fleet = fleetOf(3);
    const page = await openConsole(fleet);
    await cell(page, 0).waitFor();
    server.send('store', {
      ...fleet.snapshot().store,
      state: 'failing',
      problem: 'access to the bucket is denied',
    });
    await page
      .locator('#banner-text', { hasText: 'the leases cannot be read: access to the bucket is denied' })
      .waitFor();
    expect(await page.evaluate("'stale' in document.documentElement.dataset")).toBe(true);
    // It is read out once, and not with each new age, ten times a second.
    expect(await page.locator('#announcer').textContent()).toContain('access to the bucket is denied');
    expect(await page.evaluate(SPOKEN)).toBe(0);
    server.send('store', fleet.snapshot().store);
    await expect.poll(() => page.locator('#banner').isVisible()).toBe(false);
  });
});

it('a token is asked for where the server wants one, and again when it was the wrong one', async () => {
  expected = /401/;
  const fleet = fleetOf(3);
  server = await new ScriptedConsole(() => ({ epoch: 'e', instance: null, ...fleet.snapshot() })).start();
  server.token = 'open-sesame';
  const watched = await openPage(browser, `${server.url}/`);
  opened.push(watched);
  const { page } = watched;
  const input = page.getByLabel('Token', { exact: true });
  await input.fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByText('That is not the right token.').waitFor();
  await input.fill('open-sesame');
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await expect.poll(() => page.locator('.cell').count()).toBe(3);
  expect(
    await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie])'),
  ).not.toContain('sesame');
});

describe('without a mouse', () => {
  it('one gets to every node id, sees its details, and goes back', async () => {
    const page = await openConsole(fleetOf(120));
    await cell(page, 0).waitFor();
    await page.getByRole('searchbox', { name: 'Filter the node ids' }).focus();
    await page.keyboard.press('Tab');
    expect(await focusedId(page)).toBe('0');
    await page.keyboard.press('ArrowRight');
    expect(await focusedId(page)).toBe('1');
    await page.keyboard.press('ArrowDown');
    const below = Number(await focusedId(page));
    expect(below).toBeGreaterThan(2);
    await page.keyboard.press('ArrowUp');
    expect(await focusedId(page)).toBe('1');
    await page.keyboard.press('End');
    expect(await focusedId(page)).toBe('119');
    await page.keyboard.press('PageUp');
    expect(await focusedId(page)).toBe('19');
    await page.keyboard.press('Enter');
    const heading = page.getByRole('heading', { name: /^Node id / });
    expect(await heading.innerText()).toBe('Node id 19');
    await page.keyboard.press('ArrowRight');
    expect(await heading.innerText()).toBe('Node id 20');
    expect(await cell(page, 20).getAttribute('aria-selected')).toBe('true');
    await page.keyboard.press('Escape');
    expect(await page.locator('#details').isVisible()).toBe(false);
    expect(await focusedId(page)).toBe('20');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Tab');
    expect(await focusedId(page)).toBe('20');
  });

  it('the link that skips to the content leads there, and leaves the address as it is', async () => {
    const page = await openConsole(fleetOf(3));
    await cell(page, 0).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect([await page.evaluate('document.activeElement?.id'), page.url()]).toEqual([
      'content',
      `${server.url}/`,
    ]);
  });

  it('/ filters, Enter goes to what was found, Escape takes the filter away, ? helps', async () => {
    const fleet = oddFleet(120);
    const page = await openConsole(fleet);
    await cell(page, 0).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('damaged');
    expect(await page.locator('.cell:visible').count()).toBe(2);
    await page.keyboard.press('Enter');
    expect(await focusedId(page)).toBe('7');
    await page.keyboard.press('Escape');
    expect(await page.locator('.cell:not([hidden])').count()).toBe(120);
    await page.keyboard.press('/');
    await page.keyboard.type('no such task');
    expect(await page.getByText('No node id fits the filter.').isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    expect(await page.getByRole('dialog', { name: 'Help' }).isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    expect(await page.getByRole('dialog', { name: 'Help' }).isVisible()).toBe(false);
  });
});

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  it.each([12, 120, 300])(
    'every control has a name, and every text can be read: %d node ids',
    async (size) => {
      const fleet = oddFleet(size);
      fleet.event('damaged', 7, 'node id 7 is damaged');
      const page = await openConsole(fleet, { tree: scriptedTree(fleet.nodes) }, { colorScheme });
      await cell(page, 0).waitFor();
      await page.locator('#banner').evaluate((banner) => banner.removeAttribute('hidden'));
      expect(await pale(page)).toEqual([]);
      expect(await violations(page)).toEqual([]);
      await cell(page, 0).click();
      expect(await nameless(page)).toEqual([]);
      expect(await violations(page)).toEqual([]);
      await page.locator('#help-open').click();
      expect(await pale(page)).toEqual([]);
      expect(await violations(page)).toEqual([]);
    },
  );
});

it('the colours follow the system until the user chooses, and stay as chosen', async () => {
  const page = await openConsole(fleetOf(3), {}, { colorScheme: 'dark' });
  const background = () =>
    page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
  await cell(page, 0).waitFor();
  const dark = await background();
  await page.getByRole('button', { name: 'Colours: as the system' }).click();
  const light = await background();
  expect(light).not.toBe(dark);
  await page.reload();
  await page.getByRole('button', { name: 'Colours: light' }).click();
  expect(await background()).toBe(dark);
});

it.each([
  [360, 3],
  [360, 300],
  [768, 120],
  [1_920, 300],
])('nothing goes beyond the edge of a window %d pixels wide, with %d node ids', async (width, size) => {
  const fleet = oddFleet(Math.max(12, size));
  const page = await openConsole(
    fleet,
    { tree: scriptedTree(fleet.nodes) },
    { viewport: { width, height: 800 } },
  );
  await cell(page, 0).waitFor();
  expect(await overflow(page)).toBe(0);
  await cell(page, 0).click();
  expect(await overflow(page)).toBe(0);
});

describe('of many node ids', () => {
  it('1,000 that are renewed all the time leave the page most of its time', async () => {
    const fleet = new ScriptedFleet({ size: 1_000, durationMs: 15_000, graceMs: 5_000 });
    const page = await openConsole(fleet);
    await cell(page, 999).waitFor({ state: 'attached' });
    const busy = await workOf(page);
    const before = { busy: await busy(), at: performance.now() };
    // A snapshot a second; every lease is renewed once in five seconds.
    for (let turn = 0; turn < 5; turn += 1) {
      for (let id = turn * 200; id < turn * 200 + 200; id += 1) fleet.change(id, { expiresInMs: 15_000 });
      server.send('report', fleet.snapshot().report);
      await page.waitForTimeout(1_000);
    }
    const share = ((await busy()) - before.busy) / ((performance.now() - before.at) / 1_000);
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThan(0.3);
  });

  it('10,000 can be filtered, selected and walked through', async () => {
    const fleet = fleetOf(10_000);
    const page = await openConsole(fleet);
    await cell(page, 9_999).waitFor({ state: 'attached' });
    await page.keyboard.press('/');
    await page.keyboard.type('9876');
    expect(await page.locator('.cell:not([hidden])').count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    expect(await page.getByRole('heading', { name: /^Node id / }).innerText()).toBe('Node id 9876');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    expect(await page.locator('.cell:not([hidden])').count()).toBe(10_000);
  });

  it('10,000 become 300 and 10,000 again under the page, with those named who hold on to what is given up', async () => {
    const fleet = fleetOf(10_000);
    const page = await openConsole(fleet);
    await cell(page, 9_999).waitFor({ state: 'attached' });
    const { report } = fleet.snapshot();
    const sized = (size: number) => ({ ...report, cluster: report.cluster && { ...report.cluster, size } });
    const draining = [{ id: 7_000, version: 1, taskId: 'task-7001' }];
    server.send('report', { ...sized(300), draining, nodes: report.nodes.slice(0, 300) });
    await expect.poll(() => page.locator('.cell').count()).toBe(300);
    expect(await page.locator('#settings').innerText()).toContain('300 node ids');
    expect(await page.locator('#settings').innerText()).toContain('draining: 7000 by task-7001');
    for (let id = 300; id < 10_000; id += 1) fleet.free(id, 2);
    for (let from = 0; from < 10_000; from += 1_000) {
      const next = from < 9_000 ? from + 1_000 : null;
      const part = { nodes: fleet.nodes.slice(from, from + 1_000), page: { from, limit: 1_000, next } };
      if (from === 0) server.send('report', { ...sized(10_000), ...part });
      else server.send('page', part);
    }
    await expect.poll(() => page.locator('.cell').count()).toBe(10_000);
    await expect.poll(() => page.locator('.chip[data-state="free"]').innerText()).toContain('9,700');
    expect(await page.locator('#settings').innerText()).not.toContain('draining');
  });
});
