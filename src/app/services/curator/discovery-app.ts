import { readFile } from 'node:fs/promises';
import { type Context, Hono, type HonoRequest } from 'hono';
import { checkArguments, checked } from '../../../core/base/arguments.js';
import type { Clock } from '../../../core/base/clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import type { ServiceInstance } from '../../../zookeeper/services/instance/service-instance.js';
import type { ServiceCall, ServiceDirectory } from '../../../zookeeper/services/service-directory.js';
import { shortened } from '../../../zookeeper/services/shortened.js';
import { consoleAssets } from '../../http/console-assets.js';
import { type MetricsText, metricsRoute } from '../../http/node-app.js';
import {
  answerFailures,
  doneAnswer,
  HttpProblem,
  jsonAnswer,
  problemResponse,
  route,
  unavailable,
} from '../../http/problem.js';
import { readJson } from '../../http/read-json.js';
import { checkHost, checkWrite, type PageAccess, type WriteAccess } from '../../http/server/access.js';
import { OpenStreams } from '../../http/server/open-streams.js';
import { type ServicesSource, servicesApi } from '../services-api.js';
import { instanceJson, instanceOf } from './instance-json.js';
import type { ProviderPool } from './provider-pool.js';
import { SharedQueries } from './shared-queries.js';

/** What a {@link discoveryApp} answers from. */
export interface DiscoveryAppOptions {
  /** What is asked for names and instances, and writes them. */
  readonly directory: Pick<
    ServiceDirectory<unknown>,
    'names' | 'instances' | 'instance' | 'write' | 'remove'
  >;
  /** Chooses an instance of a service. The caller closes it. */
  readonly pool: Pick<ProviderPool, 'any'>;
  readonly clock: Clock;
  /** Which clients may register and unregister. @default none */
  readonly writes?: WriteAccess | undefined;
  /** What the page at `/` shows, and what it may change. @default there is no page */
  readonly page?: (ServicesSource & { readonly writes: PageAccess }) | undefined;
  /** Bounds the followers of the page's data. @default 128 of them */
  readonly streams?: OpenStreams | undefined;
  /** What `/metrics` answers. @default it is absent */
  readonly metrics?: MetricsText | undefined;
  /**
   * The names, in addition to those of loopback, by which a server on a loopback address may be called: see
   * `checkHost`.
   * @default any
   */
  readonly hosts?: ReadonlySet<string> | undefined;
  /**
   * Resolves when ZooKeeper can be asked, and rejects when it cannot in time. Every request but those to
   * `v1/anyservice` waits for it first.
   * @default at once
   */
  readonly connected?: ((call: ServiceCall) => Promise<unknown>) | undefined;
  /**
   * How long ZooKeeper may take to be connected, and for a request that is about one znode, in milliseconds.
   * @default 2000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How long it may take for all instances of a service, which are a request each, in milliseconds.
   * @default 10000
   */
  readonly listTimeoutMs?: number | undefined;
  /**
   * Called for every request that failed through no fault of the client (a status of 500 and above). Must not throw and
   * must not block.
   */
  readonly onFailure?: ((request: string, failure: unknown) => void) | undefined;
}

/**
 * Who offers which service, over HTTP, in the shape of Curator's discovery server, as an app that runs
 * alone or is mounted in another one with `route()`. `GET openapi.json` describes it.
 *
 * Instances that are registered here are persistent: they outlive this server, and stay until they are
 * unregistered. A client that may write may unregister any instance, DYNAMIC ones that are alive included:
 * that of a Java process with Curator is gone then until the process loses its session and registers again.
 *
 * With `page` there is a page of the services at `/`. What it loads takes the deprecated paths of services
 * called `console`, and its data `/api/services`; `v1/service` has these, too.
 *
 * While ZooKeeper is away everything but `v1/anyservice` is answered with 503, within about `timeoutMs` once
 * the connection is known to be lost; that one answers from what it has seen last, and says in an `age` header,
 * in seconds, for how long it has not heard of changes.
 */
export function discoveryApp(options: DiscoveryAppOptions): Hono {
  const {
    directory,
    pool,
    clock,
    writes = { kind: 'nobody' },
    page,
    streams = new OpenStreams(),
    hosts,
    timeoutMs = 2_000,
    listTimeoutMs = 10_000,
  } = checked(options);
  checkArguments({ directory, pool, clock });
  const app = new Hono();
  const lists = new SharedQueries<readonly ServiceInstance[]>();
  /**
   * The limits of a call, once ZooKeeper is connected. A query is given up with its request, a write is not.
   */
  const connected = async (signal?: AbortSignal): Promise<ServiceCall> => {
    const call = { timeoutMs, signal };
    await options.connected?.(call);
    return call;
  };
  const one = async ({ req }: Context) => {
    const { name, id } = instanceIn(req);
    const instance = await directory.instance(name, id, await connected(req.raw.signal));
    if (instance === undefined) throw new HttpProblem('not-found', `${name} has no instance ${id}`);
    return instanceJson(instance);
  };

  answerFailures(app, options.onFailure);
  app.notFound(({ req }) =>
    problemResponse(new HttpProblem('not-found', `there is nothing at ${req.path}: see openapi.json`)),
  );
  app.use(async ({ req }, next) => {
    if (hosts) checkHost(req.raw, hosts);
    checkPath(req.raw);
    await next();
  });

  route(app, '/openapi.json', { GET: async () => jsonAnswer(await openApi()) });
  route(app, '/v1/service', {
    GET: async ({ req }) =>
      jsonAnswer((await directory.names(await connected(req.raw.signal))).map((name) => ({ name }))),
  });
  route(app, '/v1/service/:name', {
    GET: async ({ req }) => {
      const { name } = instanceIn(req);
      await connected(req.raw.signal);
      const instances = await lists.ask(name, () => directory.instances(name, { timeoutMs: listTimeoutMs }));
      return jsonAnswer(instances.map(instanceJson));
    },
  });
  route(app, '/v1/service/:name/:id', {
    GET: async (context) => jsonAnswer(await one(context)),
    PUT: async ({ req }) => {
      await checkWrite(writes, req.raw);
      const place = { ...instanceIn(req), now: Math.trunc(clock.now()) };
      await directory.write(instanceOf(await readJson(req.raw), place), await connected());
      return doneAnswer(201);
    },
    DELETE: async ({ req }) => {
      await checkWrite(writes, req.raw);
      const { name, id } = instanceIn(req);
      await directory.remove(name, id, await connected());
      return doneAnswer(200);
    },
  });
  route(app, '/v1/anyservice/:name', {
    GET: async ({ req }) => {
      const { name } = instanceIn(req);
      const any = await pool.any(name, req.raw.signal);
      if (any.status === 'unknown')
        throw unavailable(`${name} has not been read yet: ZooKeeper did not answer in time`);
      const age: Record<string, string> =
        any.staleMs === undefined ? {} : { age: String(Math.ceil(any.staleMs / 1_000)) };
      if (any.status === 'none')
        throw new HttpProblem('not-found', `${name} has no instance that is enabled`, age);
      return jsonAnswer(instanceJson(any.instance), age);
    },
  });
  if (options.metrics) metricsRoute(app, options.metrics);
  if (page) {
    app.route('/', consoleAssets({ '/': 'services' }));
    servicesApi(app, page, page.writes, { clock, streams });
  }
  // The path of Curator's first version, which its server still answers. No other method is refused there: it
  // may be a path of another app.
  app.get('/:name/:id', async (context) =>
    jsonAnswer(await one(context), { warning: '299 - "deprecated: see /v1/service/{name}/{id}"' }),
  );
  return app;
}

/**
 * The document of this interface, of OpenAPI 3.1. Its addresses are relative to where it is found itself.
 * esbuild's CommonJS has no `import.meta.url`.
 */
async function openApi(): Promise<unknown> {
  const text = await readFile(new URL('./openapi.json', import.meta.url ?? 'file:///'), 'utf8').catch(() => {
    throw new HttpProblem('unavailable', 'openapi.json is a file of nodelease, which is in no bundle');
  });
  return JSON.parse(text);
}

/** What is encoded wrongly would be taken for a name unchanged. */
function checkPath({ url }: Request) {
  const { pathname } = new URL(url);
  try {
    // A bundler would leave out a call whose result is not used.
    if (decodeURIComponent(pathname) !== '') return;
  } catch {
    throw new ConfigError('path', shortened(pathname), 'percent-encoded UTF-8');
  }
}

/** The names in the path. */
function instanceIn(req: HonoRequest) {
  return { name: req.param('name') ?? '', id: req.param('id') ?? '' };
}
