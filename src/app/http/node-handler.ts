import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import { checkArguments, checkKnown, FUNCTION, having, maybe } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { APP_OPTIONS, type NodeAppOptions, nodeApp, nothingThere } from './node-app.js';
import { ADAPTER, PLAIN } from './problem.js';

/** Settings of {@link nodeHandler}: what it answers from, and where it is mounted. */
export interface NodeHandlerOptions extends Omit<NodeAppOptions, 'streams'> {
  /**
   * Below which path it is asked, such as `/internal`: for servers that hand on the whole path, as Express
   * does not.
   * @default ""
   */
  readonly basePath?: string | undefined;
}

/** The state of a node id and its cluster, as a part of your own server. */
export interface NodeHandler {
  /** For servers that speak in requests and responses, such as Hono: answers 404 to what it does not know. */
  fetch(request: Request): Promise<Response>;
  /**
   * For `node:http` and Express. What it does not know is passed to `next` if there is one, and otherwise
   * answered with 404. Never throws.
   */
  handle(request: IncomingMessage, response: ServerResponse, next?: () => void): void;
}

/**
 * `/livez`, `/readyz`, `/lease` and whatever else the options give, for your own server.
 *
 * ```ts
 * const monitor = new NodeMonitor();
 * app.use('/internal', nodeHandler({ monitor }).handle); // Express; listens before there is a node id
 * const lease = await acquire({ store, monitor });
 * ```
 *
 * Bounds on connections, requests and time are the server's own; followers of `/api/events` are bounded here.
 *
 * @throws {ConfigError} when the base path is none
 */
export function nodeHandler(given: NodeHandlerOptions): NodeHandler {
  checkKnown(given, [...APP_OPTIONS, 'basePath']);
  const { basePath = '', ...options } = given;
  if (typeof basePath !== 'string' || !/^(\/[A-Za-z0-9._~-]+)*$/.test(basePath))
    throw new ConfigError(
      'basePath',
      basePath,
      '"" or a path such as "/internal", without a slash at its end',
    );
  const inner = nodeApp(options);
  const app = basePath === '' ? inner : new Hono({ strict: false }).route(basePath, inner);
  const unknown = new WeakSet<Request>();
  app.notFound((context) => {
    unknown.add(context.req.raw);
    return nothingThere(context);
  });
  // What the page loads is named relative to it: below a path, that has to end in a slash.
  const page = options.cluster && (basePath === '' ? '/' : basePath);
  const fetch = async (request: Request, url = request.url) => {
    const { pathname } = new URL(request.url);
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    return (isRead && pathname === page && slashAfter(url)) || (await app.fetch(request));
  };
  const nexts = new WeakMap<object, () => void>();
  const answer = getRequestListener(
    async (request, { incoming }) => {
      const { originalUrl, url = '/' } = incoming as typeof incoming & { readonly originalUrl?: string };
      const response = await fetch(request, originalUrl ?? url);
      const next = nexts.get(incoming);
      if (next === undefined || !unknown.has(request)) return response;
      // What it throws is no matter of this answer.
      queueMicrotask(next);
      return RESPONSE_ALREADY_SENT;
    },
    {
      ...ADAPTER,
      hostname: 'localhost',
      // Other handlers' answers are left as they are.
      autoCleanupIncoming: false,
    },
  );
  return {
    fetch: async (request) => {
      checkArguments({ request }, { request: having('a Request', 'clone') });
      return fetch(request);
    },
    handle: (request, response, next) => {
      const kinds = {
        request: having('the request of a server of Node', 'resume'),
        response: having('its response', 'writeHead'),
        next: maybe(FUNCTION),
      };
      checkArguments({ request, response, next }, kinds);
      if (next !== undefined) nexts.set(request, next);
      void answer(request, response);
    },
  };
}

/** Redirects a path without a slash at its end to the one with it; undefined where there is one. */
function slashAfter(url: string): Response | undefined {
  const [, path = '', query = ''] = /^(?:[a-z]+:\/\/[^/?#]*)?([^?#]*)(\?[^#]*)?/i.exec(url) ?? [];
  if (path === '' || path.endsWith('/')) return undefined;
  // Relative to the path itself: what a proxy has taken away before stays in it.
  return new Response(null, {
    status: 308,
    headers: { ...PLAIN, location: `./${path.slice(path.lastIndexOf('/') + 1)}/${query}` },
  });
}
