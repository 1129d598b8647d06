import { type DataEntry, type DatumHead, dataEntry, datumHead, isFolder, readSharedData } from '../../monitor/shared-data-report.js';
import { dataFolder } from '../../shared-data/layout.js';
import type { Watch, Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { interruption, sayJson, sayLines } from '../commands/store-command.js';
import { onZooKeeper, type ZooKeeperCommandSettings } from '../commands/zookeeper-command.js';
import { CHANGE_COLORS, connectionReport, onConnectionChange } from '../discovery/discovery-watch.js';
import { exitCodeOfStop } from '../exit-codes.js';
import { Interrupted } from '../run/signal-relay.js';
import { paintFor } from '../terminal/color.js';
import type { Io } from '../terminal/io.js';
import { pluralize, printable } from '../terminal/text.js';
import { checkOptions, type DataCommandOptions, isNamed } from './data-command.js';

/** A datum, or one entry of it. A scalar is an entry of its own. */
export interface DataItem {
  readonly head: DatumHead;
  /** Null for the datum itself. */
  readonly entry: DataEntry | null;
}

/** A change of shared data. */
export interface DataChange {
  /** `present`: it was there already when the watch began. */
  readonly kind: 'present' | 'added' | 'changed' | 'removed';
  /** As it is now or, for one that was removed, as it was last. */
  readonly item: DataItem;
  readonly previous: DataItem | undefined;
}

const COLORS = { present: undefined, added: 'green', changed: 'cyan', removed: 'yellow' } as const;

/**
 * `nodelease data watch [NAME]`: shows what there is and then every change, one on a line, until a signal ends it: 0 for SIGINT and SIGTERM. It
 * survives a lost connection: once that is restored, it tells all that has changed meanwhile. Resolves to the exit code.
 */
export function watchDataCommand(
  name: string | undefined,
  options: DataCommandOptions,
  settings: ZooKeeperCommandSettings,
  io: Io,
): Promise<number> {
  const { root, scope } = checkOptions(options, name);
  const isMeant = (head: DatumHead) => (name === undefined ? scope === undefined || head.scope === scope : isNamed(name, options)(head));
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    try {
      return await watchData(zookeeper, { root, isMeant, json: options.json === true }, io, signal);
    } catch (error) {
      const reason: unknown = signal.reason;
      if (reason instanceof Interrupted) return exitCodeOfStop(reason.signal);
      throw error;
    }
  });
}

interface Wanted {
  readonly root: string;
  readonly isMeant: (head: DatumHead) => boolean;
  readonly json: boolean;
}

async function watchData(zookeeper: ZooKeeper, wanted: Wanted, io: Io, signal: AbortSignal): Promise<number> {
  const { root, isMeant, json } = wanted;
  const paint = (text: string, color: Parameters<ReturnType<typeof paintFor>>[1]) => paintFor(io.screen())(printable(text), color);
  const now = () => new Date(io.clock.now()).toISOString();
  const onChange = (change: DataChange) => {
    if (json) sayJson(io, dataChangeReport(now(), change));
    else sayLines(io, [`${now()}  ${paint(dataChangeText(change), COLORS[change.kind])}`]);
  };
  const onConnection: Parameters<typeof onConnectionChange>[1] = (change, state, text) => {
    if (json) sayJson(io, connectionReport(now(), change, state));
    else sayLines(io, [`${now()}  ${paint(text, CHANGE_COLORS[change])}`]);
  };
  await zookeeper.whenConnected({ signal });
  const forget = onConnectionChange(zookeeper, onConnection);
  const { description } = zookeeper;
  const { data } = await readSharedData(zookeeper, { connect: description, root, only: isMeant }, signal);
  const items = data.flatMap(({ entries, size, bytes, ...head }): DataItem[] => [
    ...(head.kind === 'scalar' ? [] : [{ head, entry: null }]),
    ...entries.map((entry) => ({ head, entry })),
  ]);
  for (const item of items) onChange({ kind: 'present', item, previous: undefined });
  onConnection('watching', zookeeper.state, `${pluralize(items.length, 'znode')} of shared data at ${root} of ${description}: watching`);
  const end = followData(zookeeper, wanted, items, onChange);
  const ended = await interruption(signal);
  end();
  forget();
  return exitCodeOfStop(ended.signal);
}

/**
 * Follows the shared data below a root by watches, and tells each change, also the differences from the known items. Changes of one znode in quick
 * succession may be told as one. `onChange` must not throw. The returned function ends it.
 */
function followData(
  zookeeper: Pick<ZooKeeper, 'watchChildren' | 'watchData'>,
  { root, isMeant }: Wanted,
  items: readonly DataItem[],
  onChange: (change: DataChange) => void,
): () => void {
  const folder = dataFolder(root);
  const known = new Map(items.map((item) => [item.entry?.path ?? item.head.path, item]));
  const znodes = new Map<string, Znode>();
  const watches = new Map<string, Watch[]>();
  /** What the znode is an entry of; undefined for a datum, and for a folder of data. */
  const datumOf = (path: string) => {
    const parent = path.slice(0, path.lastIndexOf('/'));
    const znode = parent === folder ? undefined : znodes.get(parent);
    return znode && !isFolder(znode) ? datumHead(root, parent, znode) : undefined;
  };
  const itemOf = (path: string): DataItem | undefined => {
    const znode = znodes.get(path);
    const datum = datumOf(path);
    if (znode === undefined || (datum === undefined && isFolder(znode))) return undefined;
    const head = datum ?? datumHead(root, path, znode);
    const entry = datum || head.kind === 'scalar' ? dataEntry(head, path, znode, NO_NODES) : null;
    return isMeant(head) ? { head, entry } : undefined;
  };
  const settle = (path: string) => {
    const item = itemOf(path);
    const change = dataChange(known.get(path), item);
    if (item === undefined) known.delete(path);
    else known.set(path, item);
    if (change !== undefined) onChange(change);
  };
  const onNames = (parent: string, names: readonly string[] = []) => {
    const present = new Set(names);
    const isGone = (path: string) => path.startsWith(`${parent}/`) && !present.has(path.slice(parent.length + 1).split('/', 1)[0] ?? '');
    for (const path of new Set([...watches.keys(), ...known.keys()].filter(isGone))) {
      for (const watch of watches.get(path) ?? []) watch.close();
      watches.delete(path);
      znodes.delete(path);
      settle(path);
    }
    for (const name of names) if (!watches.has(`${parent}/${name}`)) follow(`${parent}/${name}`);
  };
  const onData = (path: string, znode: Znode | undefined) => {
    const before = znodes.get(path);
    if (znode) znodes.set(path, znode);
    else znodes.delete(path);
    settle(path);
    if (znode === undefined || datumOf(path)) return;
    const own = watches.get(path);
    if (own?.length === 1) own.push(zookeeper.watchChildren(path, (names) => onNames(path, names)));
    // A removal writes the same data again.
    if (before?.data.equals(znode.data)) return;
    for (const below of znodes.keys()) if (below.startsWith(`${path}/`)) settle(below);
  };
  const follow = (path: string) => watches.set(path, [zookeeper.watchData(path, (znode) => onData(path, znode))]);
  const top = zookeeper.watchChildren(folder, (names) => onNames(folder, names));
  return () => {
    for (const watch of [top, ...[...watches.values()].flat()]) watch.close();
  };
}

const NO_NODES: ReadonlyMap<string, string> = new Map();

/** The change of one znode between two readings; undefined without a visible one. */
export function dataChange(previous: DataItem | undefined, item: DataItem | undefined): DataChange | undefined {
  if (item === undefined) return previous && { kind: 'removed', item: previous, previous };
  if (previous === undefined) return { kind: 'added', item, previous };
  return visible(item) === visible(previous) ? undefined : { kind: 'changed', item, previous };
}

/** What a write of the same data does not change. */
function visible({ head, entry }: DataItem): string {
  const { key, scalar, owner, place } = entry ?? {};
  const { name, scope, kind, lifespan } = head;
  return JSON.stringify([name, scope, kind, lifespan, entry?.problem ?? head.problem, key, scalar, owner, place]);
}

/** A change for programs. */
export function dataChangeReport(time: string, { kind: change, item, previous }: DataChange): object {
  return { time, change, ...item.head, entry: item.entry, previous: previous ? previous.entry : null };
}

/** A change for people, without its time: `map "limits": entry "eu" changed: Integer 3 → Integer 5`. */
export function dataChangeText({ kind, item: { head, entry }, previous }: DataChange): string {
  const { name, scope, path } = head;
  const datum = name === null ? path : `${head.kind} ${JSON.stringify(name)}${scope ? ` of scope ${JSON.stringify(scope)}` : ''}`;
  const textOf = (each: DataEntry | null | undefined) => (each?.scalar ? `${each.scalar.type} ${each.scalar.value}` : 'no element');
  const was = previous?.entry ? textOf(previous.entry) : undefined;
  const now = entry && textOf(entry);
  const facts = [
    now && (kind === 'changed' && was !== undefined && was !== now ? `${was} → ${now}` : now),
    entry?.place ? `place ${entry.place} of its collision chain` : undefined,
    entry?.owner ? `session ${entry.owner}` : undefined,
    entry?.problem ?? head.problem,
  ].filter((fact) => fact);
  const which = entry?.key
    ? ` ${head.kind === 'list' ? 'index' : 'entry'} ${JSON.stringify(entry.key.value)}`
    : entry && !entry.scalar
      ? ` ${entry.path}`
      : '';
  return `${datum}${which} ${kind === 'present' ? 'is there' : kind}${facts.length > 0 ? `: ${facts.join(', ')}` : ''}`;
}
