import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serveStatic } from '@hono/node-server/serve-static';
import { type Context, Hono } from 'hono';
import { etag } from 'hono/etag';
import { secureHeaders } from 'hono/secure-headers';
import { HttpProblem, route } from './problem.js';

const SELF = "'self'";
const NONE = "'none'";

/** The page may run its own scripts, use its own styles, and talk to its own server. Nothing may come from elsewhere, and no other page may frame it. */
const SECURITY = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: [NONE],
    scriptSrc: [SELF],
    styleSrc: [SELF],
    connectSrc: [SELF],
    imgSrc: [SELF, 'data:'],
    baseUri: [NONE],
    formAction: [NONE],
    frameAncestors: [NONE],
  },
  // Behind a TLS proxy it would bind the whole domain.
  strictTransportSecurity: false,
});

const FOLDER = '/console/';
/** Files of other types, such as declarations, are no part of the page. */
const TYPES = /\.(html|css|js)$/;

/**
 * Pages of the console and what they load, `/console/*`, as an app to be mounted. Their own paths are relative: it may be mounted below a path that
 * ends in a slash. Where the sources were not built, every answer is a 503 that says so.
 *
 * @param pages the file of each page, by its path. @default the console itself at `/`
 */
export function consoleAssets(
  folder: URL = new URL('../console/', import.meta.url),
  pages: Readonly<Record<string, string>> = { '/': 'index.html' },
): Hono {
  const root = fileURLToPath(folder);
  const files = serveStatic({ root, rewriteRequestPath: (path) => path.slice(path.lastIndexOf(FOLDER) + FOLDER.length) });
  const answer = (serve: typeof files, isPage: boolean) => async (context: Context) => {
    // Sources have the page, too, but nothing that it could load.
    if (!existsSync(join(root, 'page/main.js')))
      throw new HttpProblem('unavailable', 'the console is not there: it is made by npm run build');
    // Browsers ask again each time, and get a 304 as long as it is the same.
    context.header('cache-control', 'no-cache');
    const { path } = context.req;
    const found = isPage || TYPES.test(path) ? await serve(context, async () => undefined) : undefined;
    if (!found) throw new HttpProblem('not-found', `there is nothing at ${path}`);
    return found;
  };
  const app = new Hono();
  const add = (path: string, serve: typeof files, isPage: boolean) => {
    app.use(path, SECURITY, etag());
    route(app, path, { GET: answer(serve, isPage) });
  };
  for (const [path, file] of Object.entries(pages)) add(path, serveStatic({ root, path: file }), true);
  add('/console/*', files, false);
  return app;
}
