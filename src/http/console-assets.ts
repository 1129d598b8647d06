import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Hono } from 'hono';
import { HttpProblem } from './problem.js';
import { route } from './route.js';

/**
 * What the page may do: run its own scripts, use its own styles, and talk to the server that it came from. Nothing of it may come from anywhere
 * else, and no other page may frame it.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Asked for anew every time, and answered with 304 as long as it is the same.
  'cache-control': 'no-cache',
};

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
};

const FOLDER = '/console/';

/** A file of the page, as it is sent. */
interface Asset {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly etag: string;
  readonly type: string;
}

/**
 * The console's page and what it loads, as an app to be mounted: `/`, and `/console/*`. Everything that the page asks for is relative to it, so it
 * may be mounted below a path; the path has to end in a slash then.
 *
 * The files are read once, when they are first asked for. Where they are not there, because the sources were not built, every answer is a 503 that
 * says so.
 *
 * @param folder where the build has put the page
 */
export function consoleAssets(folder: URL = new URL('../console/', import.meta.url)): Hono {
  let reading: Promise<ReadonlyMap<string, Asset>> | undefined;
  const assets = async () => {
    reading ??= readAssets(folder);
    try {
      return await reading;
    } catch {
      reading = undefined;
      throw new HttpProblem('unavailable', 'the console is not there: it is made by npm run build');
    }
  };
  const answer = async (name: string, request: Request): Promise<Response> => {
    const asset = (await assets()).get(name);
    if (asset === undefined) throw new HttpProblem('not-found', `there is nothing at ${new URL(request.url).pathname}`);
    const headers = { ...HEADERS, etag: asset.etag };
    const isKnown = knows(request.headers.get('if-none-match'), asset.etag);
    return isKnown
      ? new Response(null, { status: 304, headers })
      : new Response(asset.body, { headers: { ...headers, 'content-type': asset.type } });
  };
  const app = new Hono();
  route(app, '/', { GET: ({ req }) => answer('index.html', req.raw) });
  route(app, '/console/*', { GET: ({ req }) => answer(req.path.slice(req.path.lastIndexOf(FOLDER) + FOLDER.length), req.raw) });
  return app;
}

/** True when whoever asks has this version already. The comparison is the weak one (RFC 9110, 13.1.2). */
function knows(header: string | null, etag: string): boolean {
  const tags = header?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? [];
  return tags.includes('*') || tags.includes(etag);
}

/** Only what is named here can be sent: a path never leads to a file. */
async function readAssets(folder: URL): Promise<ReadonlyMap<string, Asset>> {
  const names = await readdir(folder, { recursive: true });
  const assets = names.flatMap((name) => {
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)];
    return type === undefined || name.endsWith('.d.ts') ? [] : [{ name: name.replaceAll('\\', '/'), type }];
  });
  const read = assets.map(async ({ name, type }) => {
    const body = new Uint8Array(await readFile(fileURLToPath(new URL(name, folder))));
    return [name, { body, type, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"` }] as const;
  });
  const all = new Map(await Promise.all(read));
  // Sources have the page, too, but nothing that it could load.
  if (!all.has('index.html') || !all.has('page/main.js')) throw new Error(`no console in ${fileURLToPath(folder)}`);
  return all;
}
