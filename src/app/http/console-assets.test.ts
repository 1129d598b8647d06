import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Hono } from 'hono';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { consoleAssets } from './console-assets.js';
import { problemOf, problemResponse } from './problem.js';

let folder: string;
let app: Hono;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-console-'));
  app = new Hono();
  app.onError((failure) => problemResponse(problemOf(failure)));
  app.route('/', consoleAssets({ '/': 'main' }, pathToFileURL(`${folder}/`)));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function build(): void {
  mkdirSync(join(folder, 'page'));
  writeFileSync(
    join(folder, 'frame.html'),
    '<!doctype html><title>page</title><script src="console/page/PAGE.js"></script><!-- page -->',
  );
  writeFileSync(join(folder, 'main.html'), '<main>node ids</main>');
  writeFileSync(join(folder, 'console.css'), 'body {}');
  writeFileSync(join(folder, 'page/main.js'), 'export {};');
  writeFileSync(join(folder, 'secret.txt'), 'not part of the page');
  writeFileSync(join(folder, '..', `${folder.split('/').at(-1)}.js`), 'outside');
}

afterEach(() => rmSync(`${folder}.js`, { force: true }));

describe('the page', () => {
  it('may load and do nothing but its own', async () => {
    build();
    const response = await app.request('/');
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(response.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('referrer-policy')).toBe('no-referrer');
    expect(await response.text()).toBe(
      '<!doctype html><title>page</title><script src="console/page/main.js"></script><main>node ids</main>',
    );
  });

  it.each([
    ['/console/console.css', 'text/css; charset=utf-8'],
    ['/console/page/main.js', 'text/javascript; charset=utf-8'],
  ])('%s is sent as %s', async (path, type) => {
    build();
    const response = await app.request(path);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type]);
  });

  it('is not sent again to a client that has it', async () => {
    build();
    const etag = (await app.request('/')).headers.get('etag') ?? '';
    for (const header of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await app.request('/', { headers: { 'if-none-match': header } });
      expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
    }
    expect((await app.request('/', { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
  });

  it('may be others, each at its path', async () => {
    build();
    writeFileSync(join(folder, 'services.html'), '<main>services</main>');
    const other = new Hono().route(
      '/',
      consoleAssets({ '/services': 'services' }, pathToFileURL(`${folder}/`)),
    );
    expect(await (await other.request('/services')).text()).toContain(
      'page/services.js"></script><main>services</main>',
    );
    expect((await other.request('/services')).headers.get('content-security-policy')).toContain(
      "default-src 'none'",
    );
    expect((await other.request('/')).status).toBe(404);
  });

  it('has only its own files', async () => {
    build();
    const outside = encodeURIComponent(`../${folder.split('/').at(-1)}.js`);
    for (const path of [
      '/console/',
      '/console/secret.txt',
      '/console/page',
      '/console/..%2f..%2fetc%2fpasswd',
      `/console/${outside}`,
      '/console/%',
    ]) {
      const response = await app.request(path);
      expect([path, response.status]).toEqual([path, 404]);
    }
  });

  it('can only be read', async () => {
    build();
    const response = await app.request('/', { method: 'POST' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('that was not built says so, and is there as soon as it is', async () => {
    const response = await app.request('/');
    expect([response.status, await response.json()]).toEqual([
      503,
      {
        error: 'unavailable',
        message: 'the console is not there: it is made by npm run build, and is in no bundle',
      },
    ]);
    build();
    expect((await app.request('/')).status).toBe(200);
  });
});
