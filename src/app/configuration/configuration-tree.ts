import { isDeepStrictEqual } from 'node:util';
import { explain } from '../../core/base/errors.js';
import { Listeners } from '../../core/base/listeners.js';
import { ScanLoop, treePauseMs } from '../../node/monitor/scan-loop.js';
import type { ConfigEntry, EntriesStatus } from '../../node/wire/entries-wire.js';
import { concurrentCalls } from '../../zookeeper/client/call-limits.js';
import { ignoring, isFault } from '../../zookeeper/client/zookeeper-error.js';
import { readFleet } from '../../zookeeper/configuration/fleet.js';
import type { FleetReport } from '../../zookeeper/configuration/fleet-report.js';
import { historyPath, seenPath } from '../../zookeeper/configuration/layout.js';
import { type ConfigPlace, readContexts } from '../../zookeeper/configuration/read-contexts.js';
import { excerpt } from '../http/console/excerpt.js';

/** How long a scan waits for a connection, in milliseconds. */
const CONNECT_MS = 2_000;
const UNREAD: EntriesStatus = { state: 'ok', problem: null, isWhole: false, isPartial: false };

/**
 * All contexts below a root, their keys, and the nodes that run them, read every two seconds while there is a
 * listener. Changes nothing.
 */
export class ConfigurationTree {
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
    if (this.#listeners.size === 0) [this.entries, this.status] = [new Map(), UNREAD];
    const ends = [this.#listeners.add(listener), this.#loop.use()];
    return () => {
      for (const end of ends) end();
    };
  }

  async #scan(signal: AbortSignal): Promise<void> {
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
    const readFleetOf = (context: string, own: AbortSignal) => this.#fleetOf(context, names, own);
    const fleets = (await concurrentCalls(followed, readFleetOf, signal)).flat();
    const found = [...names, ...kept].filter((name) => name[0] !== '.');
    const contexts = [...new Set([...found, ...fleets.map(({ context }) => context)])].sort();
    const read = await concurrentCalls(
      contexts,
      async (context, own) => {
        const reading = readContexts(this.place, [context], undefined, { signal: own });
        const known = await reading.catch(ignoring('no-auth'));
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
