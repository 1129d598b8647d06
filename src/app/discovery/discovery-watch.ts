import {
  type DiscoveryEntry,
  entryOf,
  parsePath,
  readDiscovery,
} from '../../node/monitor/discovery/discovery-snapshot.js';
import { ChildrenView, type ChildrenViewOptions } from '../../zookeeper/client/children-view.js';
import { DISCOVERY_PATH } from '../../zookeeper/discovery/tree-paths.js';
import { complain } from '../kit/answer.js';
import { interruption, type ZooKeeperCall } from '../kit/call.js';
import { showConnection, watchZooKeeper } from '../kit/changes.js';
import { pluralize } from '../kit/terminal/text.js';
import { changeReport, changeText, type DiscoveryChange, discoveryChange } from './discovery-change.js';

const COLORS = { present: undefined, joined: 'green', changed: 'cyan', left: 'yellow' } as const;

/**
 * `nodelease discovery watch`: shows what is announced and then every change, one on a line, until a signal
 * ends it: 0 for SIGINT and SIGTERM. It survives a lost connection: once that is restored, it shows all that
 * has changed meanwhile.
 */
export function watchDiscovery(call: ZooKeeperCall): Promise<number> {
  const { io } = call;
  return watchZooKeeper(call, async (zookeeper, show, signal) => {
    const onChange = (change: DiscoveryChange) =>
      show(changeReport(change), COLORS[change.kind], changeText(change));
    const { entries = [], denied = [] } = (await readDiscovery(zookeeper, DISCOVERY_PATH, signal)) ?? {};
    for (const path of denied) complain(io, `${path}: no-auth: these credentials may not read the data`);
    for (const entry of entries) onChange({ kind: 'present', entry, previous: undefined });
    const count =
      entries.length === 0 ? 'no task announces anything' : pluralize(entries.length, 'announcement');
    showConnection(show, 'watching', zookeeper.state, `${count} at ${zookeeper.description}: watching`);
    const end = followDiscovery({ zookeeper, clock: io.clock }, entries, onChange);
    await interruption(signal);
    end();
  });
}

/**
 * Follows the whole discovery tree by watches, and reports each change of an announcement. Changes of one
 * path in quick succession may be reported as one. In the end, the reports add up to the tree, also when the
 * connection or the session was lost in between.
 *
 * @param entries the known announcements: every difference from them is reported as a change
 * @param onChange must not throw
 * @returns what ends it: no further change is reported
 */
function followDiscovery(
  client: Pick<ChildrenViewOptions<unknown>, 'zookeeper' | 'clock'>,
  entries: readonly DiscoveryEntry[],
  onChange: (change: DiscoveryChange) => void,
): () => void {
  const known = new Map(entries.map((entry) => [entry.path, entry]));
  const settle = (path: string, now: DiscoveryEntry | undefined) => {
    const change = discoveryChange(known.get(path), now);
    if (now === undefined) known.delete(path);
    else known.set(path, now);
    if (change !== undefined) onChange(change);
  };
  const view = new ChildrenView<DiscoveryEntry>({
    ...client,
    path: DISCOVERY_PATH,
    follow: (path) => {
      const { kind } = parsePath(path);
      if (kind === 'folder') return 'children';
      return kind === 'foreign' || kind === 'internal' ? undefined : 'data';
    },
    decode: (path, znode) => {
      const parsed = parsePath(path);
      return 'nodeId' in parsed || 'ref' in parsed ? entryOf(path, parsed, znode) : undefined;
    },
    unreadable: (path) => known.get(path),
    onValue: settle,
    onChange: () => {
      for (const path of [...known.keys()]) if (!view.has(path)) settle(path, undefined);
    },
  });
  view.start();
  return () => view.close();
}
