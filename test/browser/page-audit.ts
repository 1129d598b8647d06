import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { packageRoot } from '../support/package-root.js';

const AXE = readFileSync(join(packageRoot, 'node_modules/axe-core/axe.min.js'), 'utf8');
/**
 * The name of a cell is a sentence about a node id. Its visible text has abbreviations, and a countdown that a
 * name must not repeat ten times a second.
 */
const AXE_OPTIONS = { rules: { 'label-content-name-mismatch': { enabled: false } } };

// These run in the page, and are texts because the tests are compiled without a browser's types.

/** Everything that can be operated, and has no name. */
const NAMELESS = `(() => {
  const nameOf = (element) => {
    const byId = (element.getAttribute('aria-labelledby') ?? '').split(' ').map((id) => document.getElementById(id)?.textContent ?? '').join('');
    const labels = [...(element.labels ?? [])].map((label) => label.textContent).join('');
    return (element.getAttribute('aria-label') ?? '') + byId + labels + element.textContent.trim();
  };
  const operable = 'button, input, select, a[href], summary, dialog, [role=option], [role=listbox], [role=group], section';
  return [...document.querySelectorAll(operable)].filter((element) => nameOf(element).trim() === '').map((element) => element.outerHTML.slice(0, 120));
})()`;

/**
 * Every text that is hard to read: a contrast below 4.5, or 3 for large ones (WCAG 2.2, 1.4.3). Texts that
 * are hidden, and those under something that is dimmed on purpose, are left out.
 */
const PALE = `(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return { r, g, b, a: a / 255 };
  };
  const over = (top, bottom) => ({ r: top.r * top.a + bottom.r * (1 - top.a), g: top.g * top.a + bottom.g * (1 - top.a), b: top.b * top.a + bottom.b * (1 - top.a), a: 1 });
  const luminance = ({ r, g, b }) => [r, g, b].map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)).reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((bottom, top) => over(top, bottom), { r: 255, g: 255, b: 255, a: 1 });
  };
  const pale = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (texts.currentNode.data.trim() === '' || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest('noscript, .hidden-label, option, [data-stale] .grid')) continue;
    const style = getComputedStyle(element);
    const bottom = behind(element);
    const [light, dark] = [luminance(over(rgba(style.color), bottom)), luminance(bottom)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) pale.push(texts.currentNode.data.trim().slice(0, 40) + ' in ' + element.className + ': ' + ratio.toFixed(2));
  }
  return [...new Set(pale)];
})()`;

/** What can be operated and has no name, as the beginning of its markup. */
export function nameless(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(NAMELESS);
}

/** What axe finds, as its rules and the elements that break them. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate<string[]>(
    `axe.run(${JSON.stringify(AXE_OPTIONS)}).then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ': ' + target.join(' '))))`,
  );
}

/** Texts whose contrast is too low, each with its ratio. */
export function pale(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(PALE);
}

/**
 * Resolves to a count of the seconds for which the page's own thread has worked: what else the machine does
 * is not in it.
 */
export async function workOf(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
  };
}

/** How far the content goes beyond the right edge of the window, in pixels. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}
