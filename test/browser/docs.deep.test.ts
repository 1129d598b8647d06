import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { killAll, runProcess } from '../support/processes.js';
import { launchBrowser } from '../support/programs/browser.js';
import { freePort } from '../support/servers/free-ports.js';
import { overflow, pale, violations } from './page-audit.js';
import { openPage } from './watched-page.js';

const SITE = join(packageRoot, 'docs/site');
const HTML = join(SITE, 'html');
/** What readers search for, and the page that they should find. */
const SEARCHES = {
  'fencing token': '/start/concepts',
  litestream: '/guides/by-program',
  'stop point': '/reference/glossary',
  snowflake: '/guides/unique-ids',
  NODELEASE_STORE: '/reference/settings',
  minio: '/guides/stores',
  'exit codes': '/reference/commands',
  shutdown: '/operate/operations',
  curator: '/zookeeper/recipes',
  startTimeoutMs: '/guides/shards',
  CLUSTER_FOREIGN: '/operate/failure-table',
};

let browser: Browser;
let url: string;

beforeAll(async () => {
  await promisify(execFile)(process.execPath, ['docs/make.js'], { cwd: packageRoot });
  browser = await launchBrowser();
  const port = await freePort();
  const server = runProcess(
    process.execPath,
    ['node_modules/vitepress/bin/vitepress.js', 'preview', '--port', `${port}`],
    {
      cwd: SITE,
    },
  );
  await server.waitForOutput(/Built site served/);
  url = `http://localhost:${port}`;
}, 600_000);

afterAll(async () => {
  await browser?.close();
  await killAll();
});

const pages = () =>
  readdirSync(HTML, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html'));
const pathOf = (file: string) => `/${file.replace(/(index)?\.html$/, '')}`;

it('has no dead link, and no link to a heading that is not there', () => {
  const files = pages().filter((file) => !file.startsWith('api/') && file !== '404.html');
  const texts = new Map(files.map((file) => [pathOf(file), readFileSync(join(HTML, file), 'utf8')]));
  expect(texts.size).toBeGreaterThan(30);
  const dead = [...texts].flatMap(([path, text]) =>
    [...text.matchAll(/<a [^>]*?href="(\/[^"#]*|)(?:#([^"]*))?"/g)].flatMap(([, target = '', anchor]) => {
      if (target.startsWith('/api/')) return pages().includes(target.slice(1)) ? [] : [`${path}: ${target}`];
      const linked = texts.get(target === '' ? path : target);
      const isThere =
        anchor === undefined || anchor === '' || linked?.includes(`id="${decodeURIComponent(anchor)}"`);
      return linked !== undefined && isThere ? [] : [`${path}: ${target}#${anchor}`];
    }),
  );
  expect(dead).toEqual([]);
});

it('lists all pages for readers that are programs', () => {
  const list = readFileSync(join(HTML, 'llms.txt'), 'utf8');
  const parts = ['start', 'guides', 'zookeeper', 'operate', 'reference', 'design'];
  const paths = pages()
    .filter((file) => parts.some((part) => file.startsWith(`${part}/`)))
    .map(pathOf);
  expect(paths.filter((path) => !list.includes(`](${path}): `))).toEqual([]);
  expect(readFileSync(join(HTML, 'llms-full.txt'), 'utf8')).toContain('# Concepts');
});

it('finds what readers search for', async () => {
  const { page, faults } = await openPage(browser, `${url}/`);
  const found: Record<string, string[]> = {};
  for (const term of Object.keys(SEARCHES)) {
    // The box opens with the results of its last term.
    await page.evaluate('sessionStorage.clear()');
    await page.locator('button.DocSearch-Button').click();
    await page.locator('input.search-input').fill(term);
    const results = page.locator('.VPLocalSearchBox a.result');
    await results.first().waitFor();
    const links = await results.evaluateAll((all) => all.map((each) => each.getAttribute('href') ?? ''));
    found[term] = links.slice(0, 8).map((link) => link.replace(/#.*/, ''));
    await page.keyboard.press('Escape');
  }
  const missed = Object.entries(SEARCHES).filter(([term, path]) => !found[term]?.includes(path));
  expect(missed.map(([term]) => [term, found[term]])).toEqual([]);
  expect(faults).toEqual([]);
});

it.each([
  ['light', 1280],
  ['dark', 1280],
  ['light', 375],
] as const)('can be read in %s at %i pixels', async (colorScheme, width) => {
  for (const path of [
    '/',
    '/start/tutorial',
    '/start/concepts',
    '/operate/runbook',
    '/operate/failure-table',
    '/reference/settings',
  ]) {
    const { page, faults } = await openPage(browser, `${url}${path}`, {
      colorScheme,
      viewport: { width, height: 800 },
    });
    expect({
      path,
      faults,
      violations: await violations(page),
      pale: await pale(page),
      overflow: await overflow(page),
    }).toEqual({ path, faults: [], violations: [], pale: [], overflow: 0 });
    await page.context().close();
  }
});
