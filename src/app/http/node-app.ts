import type { ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { checked, checkKnown, FLAG, FUNCTION, having, listOf, maybe } from '../../core/base/arguments.js';
import type { Clock } from '../../core/base/clock.js';
import { systemClock } from '../../core/base/system.js';
import type { ClusterView } from '../../node/monitor/cluster-follower.js';
import { nodeHealthJson, type WatchedNode } from '../../node/runtime/node-monitor.js';
import type { ConsoleOffers } from '../../node/wire/cluster-snapshot.js';
import type { NodeHealth } from '../../node/wire/node-health.js';
import { clusterApi } from './console/cluster-api.js';
import { consoleAssets } from './console-assets.js';
import { answerFailures, HttpProblem, PLAIN, problemOf, problemResponse, route } from './problem.js';
import { type BearerToken, checkBearer, checkHost, checkOrigin } from './server/access.js';
import { OpenStreams, whileAllowed } from './server/open-streams.js';

/** What the parts of a {@link nodeApp} share. */
export interface NodeAppContext {
  readonly clock: Clock;
  readonly streams: OpenStreams;
  /** Undefined where none is needed. */
  readonly token: BearerToken | undefined;
}

/** What one product adds to a {@link nodeApp}. */
export interface NodeAppPart {
  /** Adds its routes. Those below `/api/` need the token, where there is one. */
  mount(app: Hono, context: NodeAppContext): void;
  /** Paths of others that need the token, such as `/things/*`. Without one, they refuse pages of other origins. */
  readonly protects?: readonly string[] | undefined;
  /** Its page of the console: the path, and the name of its HTML and script. */
  readonly page?: readonly [path: string, name: string] | undefined;
  /** What the console shows of it. */
  readonly offers?: ConsoleOffers | undefined;
  /** Whether requests for a path are urgent, as health checks are: they are answered at once and with little. */
  readonly isUrgent?: ((path: string) => boolean) | undefined;
}

/** What a {@link nodeApp} answers from; what is left out is not there. */
export interface NodeAppOptions {
  /** The clock by which the lease is held. @default that of this machine */
  readonly clock?: Clock | undefined;
  /** What `/livez`, `/readyz`, `/lease` report. @default these paths are absent, as for a console alone */
  readonly monitor?: WatchedNode | undefined;
  /**
   * Whether other processes work with the node id, which learn of its end by asking `/lease`: that is 503
   * then as soon as the process is being stopped, since the lease is released without waiting for them.
   * @default false: it is 200 until the work has ended
   */
  readonly heldForOthers?: boolean | undefined;
  /** What `/metrics` answers. @default it is absent */
  readonly metrics?: MetricsText | undefined;
  /**
   * Where `/api/leases`, `/api/history`, `/api/events` and the console get the cluster from: called for the first
   * request.
   * @default they are not there
   */
  readonly cluster?: (() => Promise<ClusterView>) | undefined;
  /** What else it answers, such as `servicesPage()`. @default nothing */
  readonly parts?: readonly NodeAppPart[] | undefined;
  /** The token for everything but `/livez`, `/readyz` and the console's own page. @default none is needed */
  readonly token?: BearerToken | undefined;
  /**
   * The names, in addition to those of loopback, by which a server on a loopback address may be called: a page could
   * give it another.
   * @default any
   */
  readonly hosts?: ReadonlySet<string> | undefined;
  /** Bounds the followers of `/api/events`. @default 128 of them */
  readonly streams?: OpenStreams | undefined;
  /**
   * Called for each request that failed through no fault of the client (500 and above), not for a node's health. Must
   * not throw and must not block.
   */
  readonly onFailure?: ((request: string, failure: unknown) => void) | undefined;
}

export const APP_OPTIONS = [
  'clock',
  'monitor',
  'heldForOthers',
  'metrics',
  'cluster',
  'parts',
  'token',
  'hosts',
  'streams',
  'onFailure',
] satisfies (keyof NodeAppOptions)[];
/** Paths that need the token. */
const PROTECTED = ['/lease', '/metrics', '/api/*'];

/**
 * The state of a process's node id and its cluster over HTTP, read-only but for what its parts change, as an app
 * that runs alone or is mounted in another one with `route()`. Health is computed when it is asked for: a
 * process that was paused past its deadline says so in its first answer.
 */
export function nodeApp(options: NodeAppOptions): Hono {
  // A misspelt token would leave it open.
  checkKnown(options, APP_OPTIONS);
  const {
    clock = systemClock,
    monitor,
    heldForOthers = false,
    metrics,
    cluster,
    parts = [],
    token,
    hosts,
    streams = new OpenStreams(),
  } = checked(options, {
    monitor: maybe(having('a NodeMonitor', 'health')),
    heldForOthers: maybe(FLAG),
    cluster: maybe(FUNCTION),
    parts: maybe(listOf(having('a part', 'mount'))),
  });
  const app = new Hono();
  answerFailures(app, options.onFailure);
  app.notFound(nothingThere);
  if (hosts) {
    app.use(async ({ req }, next) => {
      checkHost(req.raw, hosts);
      await next();
    });
  }
  const check: MiddlewareHandler = async ({ req }, next) => {
    if (token) await checkBearer(token, req.raw, 'to read this');
    else checkOrigin(req.raw);
    await next();
  };
  for (const path of [...(token ? PROTECTED : []), ...parts.flatMap(({ protects = [] }) => protects)])
    app.use(path, check);
  if (token)
    app.use('/api/*', async (context, next) => {
      await next();
      const { req, res } = context;
      const mayFollow = () =>
        checkBearer(token, req.raw, '').then(
          () => true,
          (failure) => problemOf(failure).error !== 'unauthorized',
        );
      if (res.body && res.headers.get('content-type') === 'text/event-stream')
        context.res = new Response(whileAllowed(res.body, clock, mayFollow), res);
    });
  if (monitor) {
    const isOrNot = (what: 'live' | 'ready') => (context: Context) => {
      const health = monitor.health();
      return answer(health[what] ? 200 : 503, healthBody(health, what, clock), context);
    };
    route(app, '/livez', { GET: isOrNot('live') });
    route(app, '/readyz', { GET: isOrNot('ready') });
    route(app, '/lease', {
      GET: (context) => {
        const health = monitor.health();
        const facts = nodeHealthJson(health, clock);
        // A process that stops before it acquires a lease has none to give back.
        const isEnding = health.state === 'stopping' && health.nodeId !== null;
        if (health.state === 'held' || (isEnding && !heldForOthers)) return answer(200, facts, context);
        const why = `${isEnding ? 'the lease is about to be given back' : 'no lease is held'}: ${health.reason}`;
        return answer(503, { error: 'unavailable', message: why, ...facts, validForMs: null }, context);
      },
    });
  }
  if (metrics) metricsRoute(app, metrics);
  const pages = Object.fromEntries(parts.flatMap(({ page }) => (page ? [page] : [])));
  if (cluster) pages['/'] = 'main';
  if (Object.keys(pages).length > 0) app.route('/', consoleAssets(pages));
  for (const part of parts) part.mount(app, { clock, streams, token });
  if (cluster) {
    const offers: ConsoleOffers = Object.assign({}, ...parts.map((part) => part.offers));
    const instance = monitor && { monitor, json: () => healthBody(monitor.health(), 'ready', clock) };
    const api = clusterApi({ clock, cluster, streams, instance, offers });
    route(app, '/api/leases', { GET: ({ req }) => api.leases(req.raw) });
    route(app, '/api/history', { GET: ({ req }) => api.history(req.raw) });
    route(app, '/api/events', { GET: ({ req }) => api.events(req.raw) });
  }
  return app;
}

const NOTHING = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title>Not found · nodelease</title></head><body><main><h1>There is nothing at this address</h1></main></body></html>`;

/** What is answered where there is nothing: a page for a browser. */
export function nothingThere({ req }: Pick<Context, 'req'>): Response {
  if (!req.header('accept')?.includes('text/html'))
    return problemResponse(new HttpProblem('not-found', `there is nothing at ${req.path}`));
  const headers = {
    ...PLAIN,
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'",
  };
  return new Response(NOTHING, { status: 404, headers });
}

/** Answers `/metrics`. */
export function metricsRoute(app: Hono, metrics: MetricsText): void {
  route(app, '/metrics', {
    GET: async () =>
      new Response(await metrics.text(), { headers: { ...PLAIN, 'content-type': metrics.contentType } }),
  });
}

function healthBody(health: NodeHealth, what: 'live' | 'ready', clock: Clock) {
  return { status: health[what] ? 'ok' : 'unavailable', ...nodeHealthJson(health, clock) };
}

/**
 * Answers with JSON: directly where this is Node's own server, since to make a `Response` and to read it takes
 * as long as all the rest of a health check.
 */
function answer(status: number, json: unknown, { env }: Context): Response {
  const { outgoing } = (env ?? {}) as { readonly outgoing?: ServerResponse };
  if (outgoing === undefined) return Response.json(json, { status, headers: PLAIN });
  const body = JSON.stringify(json);
  const length = Buffer.byteLength(body);
  outgoing.writeHead(status, { ...PLAIN, 'content-type': 'application/json', 'content-length': length });
  outgoing.end(body);
  return RESPONSE_ALREADY_SENT;
}

/**
 * What `/metrics` is answered with. The app knows no more of metrics: the library that writes them is loaded
 * only where they are wanted.
 */
export interface MetricsText {
  /** The media type of the text, with its format's version and charset; what `Content-Type` says. */
  readonly contentType: string;
  /**
   * All metrics as they are now; what changes by itself, such as the seconds to a deadline, is computed now.
   */
  text(): Promise<string>;
}
