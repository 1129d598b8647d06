import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

/** A page in a browser, and all that it did and should not have done. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors, violations of the Content-Security-Policy, and requests to other hosts. */
  readonly faults: string[];
}

/** Every violation of the policy, also one that nothing is written about. */
const WATCH_POLICY = `document.addEventListener('securitypolicyviolation', (event) => console.error('violation of ' + event.violatedDirective + ' by ' + event.blockedURI));`;

/** What Chromium breaks off while containers come and go on the same machine. */
const NETWORK_CHANGED = /ERR_NETWORK_CHANGED/;
const ATTEMPTS = 5;

/** Opens a page in a browser context of its own. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  const { host } = new URL(url);
  page.on('pageerror', (error) => faults.push(String(error.stack ?? error)));
  let isBroken = false;
  page.on('console', (message) => {
    if (NETWORK_CHANGED.test(message.text())) isBroken = true;
    else if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text());
  });
  page.on('request', (request) => {
    const asked = new URL(request.url());
    if (asked.protocol !== 'data:' && asked.host !== host) faults.push(`a request to ${request.url()}`);
  });
  await page.addInitScript(WATCH_POLICY);
  for (let attempt = 1; ; attempt += 1) {
    isBroken = false;
    const failure = await page.goto(url).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure === undefined && !isBroken) break;
    if (failure !== undefined && !NETWORK_CHANGED.test(String(failure))) throw failure;
    if (attempt === ATTEMPTS)
      throw new Error(
        `the network of this machine has changed during each of ${ATTEMPTS} attempts to load ${url}`,
      );
  }
  return { page, faults };
}
