import { checked } from '../../core/base/arguments.js';
import type { RandomSource } from '../../core/base/clock.js';
import { parseInteger } from '../../core/settings/setting.js';
import type { ConfigHistory } from '../../node/wire/entries-wire.js';
import { checkZnodeName } from '../../zookeeper/client/znode-path.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { ConfigHistoryError } from '../../zookeeper/configuration/config-error.js';
import { between, type Revision, readHistory } from '../../zookeeper/configuration/history.js';
import { rootOf } from '../../zookeeper/configuration/layout.js';
import { repeated } from '../../zookeeper/configuration/read-contexts.js';
import { entryEvents } from '../http/console/entry-feed.js';
import type { NodeAppPart } from '../http/node-app.js';
import { HttpProblem, jsonAnswer, route } from '../http/problem.js';
import { ConfigurationTree } from './configuration-tree.js';

/** What the page of configurations shows. */
export interface ConfigurationsSource {
  /** The caller closes it. */
  readonly zookeeper: ZooKeeper;
  readonly random: RandomSource;
  /** The parent of all contexts, within the chroot. @default "/config" */
  readonly root?: string | undefined;
}

/** How long the history of a context may take, in milliseconds. */
const TIMEOUT_MS = 5_000;

/**
 * The page of configurations at `/configurations`, secrets too, and its data: `/api/configurations` as
 * server-sent events, and below it the history of each context. ZooKeeper is read while there are clients;
 * however many there are, once.
 */
export function configurationsPage(options: ConfigurationsSource): NodeAppPart {
  const { root, ...source } = checked(options);
  return {
    page: ['/configurations', 'configurations'],
    offers: { hasConfigurations: true },
    mount(app, { clock, streams }) {
      const place = { ...source, clock, root: rootOf({ root }) };
      const { zookeeper } = place;
      const tree = new ConfigurationTree(place);
      const hello = { zookeeper: zookeeper.description, path: place.root, writes: false };
      route(app, '/api/configurations', {
        GET: ({ req }) => streams.answer(req.raw, (gone) => entryEvents({ clock, tree, hello }, gone)),
      });
      // `?from=3&to=5`: the revisions that are kept, and the differences between two of them, or in the last one.
      route(app, '/api/configurations/:context', {
        GET: async ({ req }) => {
          const { context = '' } = req.param();
          checkZnodeName(context, 'context');
          const wait = { timeoutMs: TIMEOUT_MS, signal: req.raw.signal };
          const history = await repeated(place, wait, (call) => readHistory(place, context, call));
          const numberOf = (name: string, otherwise: number) =>
            parseInteger(req.query(name) ?? `${otherwise}`, name, 0, Number.MAX_SAFE_INTEGER);
          const to = numberOf('to', history[0]?.revision ?? 0);
          const from = numberOf('from', Math.max(0, to - 1));
          const revisions = history.map(({ changes, ...each }) => ({
            ...each,
            keys: changes.map(({ key }) => key),
          }));
          const answer: ConfigHistory = { revisions, from, to, changes: changesIn(history, from, to) };
          return jsonAnswer(answer);
        },
      });
    },
  };
}

/** @throws {HttpProblem} `not-found`, where one of the revisions is not kept */
function changesIn(history: readonly Revision[], from: number, to: number): ConfigHistory['changes'] {
  try {
    return between(history, from, to);
  } catch (error) {
    const isAbsent = error instanceof ConfigHistoryError && error.fault === 'no-such-revision';
    throw isAbsent ? new HttpProblem('not-found', error.message) : error;
  }
}
