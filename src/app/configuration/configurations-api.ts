import { isDeepStrictEqual } from 'node:util';
import { checked } from '../../core/base/arguments.js';
import type { RandomSource } from '../../core/base/clock.js';
import { explain } from '../../core/base/errors.js';
import { Listeners } from '../../core/base/listeners.js';
import { parseInteger } from '../../core/settings/setting.js';
import { ScanLoop, treePauseMs } from '../../node/monitor/scan-loop.js';
import type { ConfigEntry, ConfigHistory, EntriesStatus } from '../../node/wire/entries-wire.js';
import { concurrentCalls } from '../../zookeeper/client/call-limits.js';
import { checkZnodeName } from '../../zookeeper/client/znode-path.js';
import { ignoring, isFault, type ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { readFleet } from '../../zookeeper/configuration/fleet.js';
import type { FleetReport } from '../../zookeeper/configuration/fleet-report.js';
import {
  between,
  ConfigHistoryError,
  type Revision,
  readHistory,
} from '../../zookeeper/configuration/history.js';
import { historyPath, rootOf, seenPath } from '../../zookeeper/configuration/layout.js';
import { type ConfigPlace, readContexts, repeated } from '../../zookeeper/configuration/read-contexts.js';
import { entryEvents } from '../http/console/entry-feed.js';
import { excerpt } from '../http/console/excerpt.js';
import type { NodeAppPart } from '../http/node-app.js';
import { HttpProblem, jsonAnswer, route } from '../http/problem.js';

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

/** How long a scan waits for a connection, in milliseconds. */
const CONNECT_MS = 2_000;
const UNREAD: EntriesStatus = { state: 'ok', problem: null, isWhole: false, isPartial: false };

/**
 * All contexts below a root, their keys, and the nodes that run them, read every two seconds while there is a
 * listener. Changes nothing.
 */
class ConfigurationTree {
  /** A context by its name, a key by `<context>/<key>`. An entry that has not changed is the same object. */
  entries: ReadonlyMap<string, ConfigEntry> = new Map();
  status = UNREAD;
  readonly #listeners = new Listeners<void>();
  readonly #loop: ScanLoop;

  constructor(private readonly place: ConfigPlace) {
    this.#loop = new ScanLoop((signal) => this.#scan(signal), treePauseMs, place.clock);
  }

  /** Calls `listener` after each scan until the returned function is called. It must not throw. */
  follow(listener: () => void): () => void {
    // What was read for earlier followers may be old.
    if (this.#listeners.size === 0 && !this.#loop.isFresh) [this.entries, this.status] = [new Map(), UNREAD];
    const ends = [this.#listeners.add(listener), this.#loop.use()];
    return () => {
      for (const end of ends) end();
    };
  }

  async #scan(signal: AbortSignal) {
    const { zookeeper } = this.place;
    try {
      await zookeeper.whenConnected({ timeoutMs: CONNECT_MS, signal });
      this.entries = await this.#read(signal);
      this.status = { ...UNREAD, isWhole: true };
    } catch (error) {
      signal.throwIfAborted();
      this.status = { ...this.status, state: 'failing', problem: explain(error) };
    }
    this.#listeners.notify();
  }

  async #read(signal: AbortSignal): Promise<ReadonlyMap<string, ConfigEntry>> {
    const { zookeeper, root } = this.place;
    // A context without values may still have its history, or nodes that follow it.
    const lists = [seenPath(root), root, historyPath(root)].map((path) =>
      zookeeper.children(path, { signal }),
    );
    const [followed = [], names = [], kept = []] = await Promise.all(lists);
    const fleets = (
      await concurrentCalls(followed, (context, own) => this.#fleetOf(context, names, own), signal)
    ).flat();
    const found = [...names, ...kept].filter((name) => name[0] !== '.');
    const contexts = [...new Set([...found, ...fleets.map(({ context }) => context)])].sort();
    const read = await concurrentCalls(
      contexts,
      async (context, own) => {
        const known = await readContexts(this.place, [context], undefined, { signal: own }).catch(
          ignoring('no-auth'),
        );
        const keys = [...(known?.values ?? [])].map(([key, { value }]) => ({
          context,
          key,
          value: excerpt(value),
        }));
        const ofNodes = fleets.find((fleet) => fleet.context === context)?.problem ?? null;
        const entry = {
          context,
          nodes: nodesOf(context, fleets),
          revision: known?.revisions[context] ?? 0,
          keys: keys.length,
          problem: known ? ofNodes : 'may not be read',
        };
        return [entry, ...keys];
      },
      signal,
    );
    return new Map(
      read.flat().map((entry: ConfigEntry) => {
        const path = 'key' in entry ? `${entry.context}/${entry.key}` : entry.context;
        const before = this.entries.get(path);
        return [path, before && isDeepStrictEqual(entry, before) ? before : entry];
      }),
    );
  }

  /**
   * The nodes that follow a context, or why they are unknown; none for a foreign znode.
   * @param names what is below the root
   */
  async #fleetOf(context: string, names: readonly string[], signal: AbortSignal): Promise<readonly Fleet[]> {
    const { zookeeper, root } = this.place;
    try {
      return await readFleet(zookeeper, root, { signal }, context, names);
    } catch (error) {
      if (!isFault(error, 'no-auth')) throw error;
      return [{ context, nodes: [], problem: `its nodes are unknown: ${explain(error)}` }];
    }
  }
}

type Fleet = Pick<FleetReport, 'context' | 'nodes'> & { readonly problem?: string };

/** The nodes that run a context, or should. */
const nodesOf = (context: string, fleets: readonly Fleet[]) =>
  fleets.flatMap(({ context: follows, nodes }) =>
    nodes
      .filter(({ revisions, behind }) => context in revisions || behind.includes(context))
      .map((node) => ({ ...node, follows })),
  );
