import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import type { NodeTenures, Tenure } from '../src/node/wire/cluster-snapshot.js';
import { ScriptedConsole } from '../test/browser/scripted-console.js';
import { ScriptedFleet } from '../test/browser/scripted-fleet.js';
import { scriptedTenures } from '../test/browser/scripted-tenures.js';
import { openPage } from '../test/browser/watched-page.js';
import { launchBrowser } from '../test/support/programs/browser.js';
import { percentile } from './comparison.js';
import { median, report } from './report.js';

const SIZE = 1_000;
const TENURES_A_MINUTE = 500;
/** In seconds. */
const QUIET = 60;
const BUSY = 300;
/** In seconds: a lease is renewed once in that time. */
const RENEWED_EVERY = 5;
/** A frame at 60 a second. */
const BOUND_MS = 16;
const MEMORY_BOUND = 1.25;

/** Keeps how long each frame took, from its beginning until the page's thread could do something else. */
const WATCH_FRAMES = `(() => {
  const all = [];
  let began = 0;
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => all.push(performance.now() - began);
  const step = (at) => { began = at; port2.postMessage(0); requestAnimationFrame(step); };
  requestAnimationFrame(step);
  window.takeFrames = () => all.splice(0);
})()`;

const takeFrames = (page: Page) => page.evaluate<number[]>('takeFrames()');

/** The memory that the page keeps, in MB, at this moment: a report that is being read is in it. */
async function keptMb(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize / 1e6;
}

it('the frames and the memory of a page that shows 500 tenures a minute, against one that shows renewals', async () => {
  const fleet = new ScriptedFleet({ size: SIZE, durationMs: 15_000, graceMs: 5_000 });
  fleet.nodes = fleet.nodes.map(({ id }) => fleet.held(id, 9));
  const past = scriptedTenures(fleet, 3_600_000);
  const histories = new Map(past(fleet.nodes.map(({ id }) => id)).map(({ id, tenures }) => [id, tenures]));
  const server = new ScriptedConsole(() => ({ epoch: 'bench', instance: null, ...fleet.snapshot() }));
  server.history = (ids): NodeTenures[] =>
    ids.map((id) => ({ id, tenures: histories.get(id) ?? [], knownSince: null }));
  await server.start();
  const browser = await launchBrowser();
  try {
    const { page, faults } = await openPage(browser, `${server.url}/`);
    await page.locator('#timeline .span').first().waitFor({ state: 'attached' });
    let tenures = 0;
    /** One second. */
    const second = async (number: number, takeOvers: number) => {
      for (let id = number % RENEWED_EVERY; id < SIZE; id += RENEWED_EVERY)
        fleet.change(id, { expiresInMs: fleet.options.durationMs });
      const events = Array.from({ length: takeOvers }, () => {
        tenures += 1;
        const id = (tenures * 389) % SIZE;
        const { node, event } = fleet.takeOver(id, `successor-${tenures}`);
        const now = Date.now();
        const [last, ...before] = histories.get(id) ?? [];
        const ended = last && { ...last, endedAt: now - 5_000, end: 'expired' as const };
        const { version, taskId } = node;
        const current: Tenure = { version, taskId: taskId ?? '', acquiredAt: now, endedAt: null, end: null };
        histories.set(id, [current, ...(ended ? [ended] : []), ...before].slice(0, 9));
        return event;
      });
      server.send('report', fleet.snapshot().report);
      for (const event of events) server.send('change', event);
      await sleep(1_000);
    };

    await page.evaluate(WATCH_FRAMES);
    for (let at = 0; at < QUIET; at += 1) await second(at, 0);
    const quiet = await takeFrames(page);
    const busy: number[] = [];
    const kept: number[] = [];
    for (let at = 0; at < BUSY; at += 1) {
      const due = Math.floor(((at + 1) * TENURES_A_MINUTE) / 60);
      await second(at, due - tenures);
      busy.push(...(await takeFrames(page)));
      if (at % 5 === 4) kept.push(await keptMb(page));
    }
    // Of the second minute, and the last one.
    const [early, late] = [Math.min(...kept.slice(12, 24)), Math.min(...kept.slice(-12))];
    const shown = (ms: number) => `${ms.toFixed(1)} ms`;
    const [base, middle, slow] = [median(quiet), median(busy), percentile(busy, 0.99)];
    report(`Frames of a page with ${SIZE} ids, ${busy.length} in ${BUSY} s with ${tenures} tenures`, [
      ['renewals alone, median', shown(base), '1.00'],
      [`${TENURES_A_MINUTE} tenures a minute, median`, shown(middle), (middle / base).toFixed(2)],
      ['the same, p99', shown(slow), (slow / base).toFixed(2)],
      ['bound of the median', shown(BOUND_MS), ''],
    ]);
    report('Memory of the same page', [
      ['in the second minute', `${early.toFixed(1)} MB`, '1.00'],
      ['in the fifth', `${late.toFixed(1)} MB`, (late / early).toFixed(2)],
      ['bound', '', MEMORY_BOUND.toFixed(2)],
    ]);
    expect(faults).toEqual([]);
    await page.getByText(`successor-${tenures}`).first().waitFor({ state: 'attached' });
    expect(middle).toBeLessThanOrEqual(BOUND_MS);
    expect(late / early).toBeLessThanOrEqual(MEMORY_BOUND);
  } finally {
    await browser.close();
    await server.close();
  }
}, 600_000);
