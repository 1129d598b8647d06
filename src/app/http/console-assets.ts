import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serveStatic } from '@hono/node-server/serve-static';
import { type Context, Hono } from 'hono';
import { etag } from 'hono/etag';
import { secureHeaders } from 'hono/secure-headers';
import { HttpProblem, route } from './problem.js';

const SELF = "'self'";
const NONE = "'none'";

/**
 * The page may run its own scripts, use its own styles, and talk to its own server. Nothing may come from
 * elsewhere, and no other page may frame it.
 */
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
/** `dist/console`, seen from `dist/app/http` and from the bundle in `dist/cli`. */
const BUILT = ['../../console/', '../console/'];
/** Files of other types, such as declarations, are no part of the page. */
const TYPES = /\.(css|js)$/;

/**
 * Pages of the console and what they load, `/console/*`, as an app to be mounted. Their own paths are
 * relative: it may be mounted below a path that ends in a slash. Where the sources were not built, every
 * answer is a 503 that says so; so it is in a bundle.
 *
 * @param pages by their paths: `frame.html` around the HTML of that name, with the script of that name
 */
export function consoleAssets(pages: Readonly<Record<string, string>>, folder: URL = builtFolder()): Hono {
  const root = fileURLToPath(folder);
  const app = new Hono();
  const add = (path: string, serve: (context: Context) => Promise<Response | undefined>) => {
    app.use(path, SECURITY, etag());
    route(app, path, {
      GET: async (context) => {
        // Sources have the page, too, but nothing that it could load.
        if (!existsSync(join(root, 'page/main.js')))
          throw new HttpProblem(
            'unavailable',
            'the console is not there: it is made by npm run build, and is in no bundle',
          );
        // Browsers ask again each time, and get a 304 while it is the same.
        context.header('cache-control', 'no-cache');
        const found = await serve(context);
        if (!found) throw new HttpProblem('not-found', `there is nothing at ${context.req.path}`);
        return found;
      },
    });
  };
  for (const [path, page] of Object.entries(pages)) {
    add(path, async (context) => {
      const [frame = '', content = ''] = await Promise.all(
        ['frame', page].map((name) => readFile(join(root, `${name}.html`), 'utf8')),
      );
      const html = frame.replace('PAGE', page).replace('<!-- page -->', () => content);
      return context.body(html, 200, { 'content-type': 'text/html; charset=utf-8' });
    });
  }
  const files = serveStatic({
    root,
    rewriteRequestPath: (path) => path.slice(path.lastIndexOf(FOLDER) + FOLDER.length),
  });
  add('/console/*', async (context) =>
    TYPES.test(context.req.path) ? ((await files(context, async () => undefined)) ?? undefined) : undefined,
  );
  return app;
}

function builtFolder() {
  // esbuild's CommonJS has no `import.meta.url`.
  const folders = BUILT.map((path) => new URL(path, import.meta.url ?? 'file:///'));
  return folders.find((folder) => existsSync(folder)) ?? new URL('file:///');
}
