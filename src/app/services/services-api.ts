import type { Context, Hono } from 'hono';
import { checked, FLAG, maybe } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { jsonPayload } from '../../zookeeper/services/instance/payload-codec.js';
import { ServiceDirectory } from '../../zookeeper/services/service-directory.js';
import { DEFAULT_BASE_PATH } from '../../zookeeper/services/service-path.js';
import { entryEvents } from '../http/console/entry-feed.js';
import type { NodeAppContext, NodeAppPart } from '../http/node-app.js';
import { doneAnswer, HttpProblem, route } from '../http/problem.js';
import { readJson } from '../http/read-json.js';
import { checkWrite, type PageAccess, pageAccess } from '../http/server/access.js';
import { ServiceTree } from './service-tree.js';

/** What the page of services shows. */
export interface ServicesSource {
  /** The caller closes it. */
  readonly zookeeper: ZooKeeper;
  /** The parent of all services, within the chroot. @default "/services" */
  readonly basePath?: string | undefined;
}

/** How long a change may take, the wait for a connection included. */
const WRITE_LIMIT = { timeoutMs: 5_000 };

/**
 * The page of services at `/services`, with its data.
 *
 * @param source `allowWrites`: whether holders of the token may change instances, for which a token is needed
 */
export function servicesPage(
  source: ServicesSource & { readonly allowWrites?: boolean | undefined },
): NodeAppPart {
  const { allowWrites, ...shown } = checked(source, { allowWrites: maybe(FLAG) });
  return {
    page: ['/services', 'services'],
    offers: { hasServices: true },
    mount: (app, { token, ...context }) =>
      servicesApi(app, shown, pageAccess(allowWrites, token, 'allowWrites'), context),
  };
}

/**
 * The data of the page of services: `/api/services` as server-sent events, and changes of single instances
 * below it. ZooKeeper is followed while there are clients; however many there are, once.
 */
export function servicesApi(
  app: Hono,
  { zookeeper, basePath = DEFAULT_BASE_PATH }: ServicesSource,
  writes: PageAccess,
  { clock, streams }: Omit<NodeAppContext, 'token'>,
): void {
  const tree = new ServiceTree({ zookeeper, clock, basePath });
  const directory = new ServiceDirectory({ zookeeper, clock, basePath, payload: jsonPayload });
  const hello = { zookeeper: zookeeper.description, path: basePath, writes: writes.kind === 'token' };
  /** Answers a change of the instance that the path names, by a client that may make it. */
  const change =
    (act: (name: string, id: string, request: Request) => Promise<boolean>) =>
    async ({ req }: Context) => {
      await checkWrite(writes, req.raw);
      const { name = '', id = '' } = req.param();
      if (!(await act(name, id, req.raw)))
        throw new HttpProblem('not-found', `${name} has no instance ${id}`);
      return doneAnswer();
    };
  route(app, '/api/services', {
    GET: ({ req }) => streams.answer(req.raw, (gone) => entryEvents({ clock, tree, hello }, gone)),
  });
  route(app, '/api/services/:name/:id/enabled', {
    PUT: change(async (name, id, request) => {
      const enabled = await readJson(request);
      if (typeof enabled !== 'boolean') throw new ConfigError('the body', enabled, 'true or false');
      return directory.setEnabled(name, id, enabled, WRITE_LIMIT);
    }),
  });
  route(app, '/api/services/:name/:id', {
    DELETE: change((name, id) => directory.remove(name, id, WRITE_LIMIT)),
  });
}
