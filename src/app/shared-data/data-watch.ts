import { isFault } from '../../zookeeper/client/zookeeper.js';
import type { DataEntry, DataReport, DatumHead } from '../../zookeeper/shared-data/data-report.js';
import { readSharedData } from '../../zookeeper/shared-data/report.js';
import { showConnection, watchZooKeeper } from '../kit/changes.js';
import { pluralize } from '../kit/terminal/text.js';
import { checkOptions, type DataCall } from './data-command.js';

const COLORS = { present: undefined, added: 'green', changed: 'cyan', removed: 'yellow' } as const;

/** The pause after a reading, in multiples of its duration, and at least in milliseconds. */
const PAUSE = { factor: 4, minMs: 500 };

/**
 * `nodelease data watch [NAME]`: shows what there is and then every change, one on a line, until a signal
 * ends it: 0 for SIGINT and SIGTERM. It reads again and again, and survives a lost connection: once that is
 * restored, it shows all that has changed meanwhile.
 */
export function watchData(call: DataCall, name?: string): Promise<number> {
  const { options, io } = call;
  const { root, scope } = checkOptions(options, name);
  const query =
    name === undefined
      ? { only: (head: DatumHead) => scope === undefined || head.scope === scope }
      : { address: { name, scope: scope ?? '' } };
  return watchZooKeeper(call, async (zookeeper, show, signal) => {
    const { description } = zookeeper;
    let known: ReadonlyMap<string, DataItem> | undefined;
    for (;;) {
      const begun = io.clock.monotonic();
      try {
        await zookeeper.whenConnected({ signal });
        const items = itemsOf(
          await readSharedData(zookeeper, { connect: description, root, ...query }, signal),
        );
        for (const change of changesBetween(known, items))
          show(dataChangeReport(change), COLORS[change.kind], dataChangeText(change));
        const summary = `${pluralize(items.size, 'znode')} of shared data at ${root} of ${description}: watching`;
        if (known === undefined) showConnection(show, 'watching', zookeeper.state, summary);
        known = items;
      } catch (error) {
        if (known === undefined || !isFault(error, 'connection-loss', 'timeout', 'session-expired'))
          throw error;
      }
      await io.clock.sleep(Math.max(PAUSE.minMs, PAUSE.factor * (io.clock.monotonic() - begun)), signal);
    }
  });
}

/** By their paths. */
function itemsOf({ data }: DataReport) {
  const items = data.flatMap(({ entries, size, bytes, ...head }): DataItem[] => [
    ...(head.kind === 'scalar' ? [] : [{ head, entry: null }]),
    ...entries.map((entry) => ({ head, entry })),
  ]);
  return new Map(items.map((item) => [item.entry?.path ?? item.head.path, item]));
}

/** @param known undefined where nothing has been read before */
function changesBetween(
  known: ReadonlyMap<string, DataItem> | undefined,
  items: ReadonlyMap<string, DataItem>,
): DataChange[] {
  if (known === undefined)
    return [...items.values()].map((item) => ({ kind: 'present', item, previous: undefined }));
  return [...new Set([...known.keys(), ...items.keys()])].flatMap(
    (path) => dataChange(known.get(path), items.get(path)) ?? [],
  );
}

/** A datum, or one entry of it. A scalar is an entry, too. */
export interface DataItem {
  readonly head: DatumHead;
  /** Null for the datum itself. */
  readonly entry: DataEntry | null;
}

/** A change of shared data. */
interface DataChange {
  /** `present`: it was there already when the watch began. */
  readonly kind: 'present' | 'added' | 'changed' | 'removed';
  /** As it is now or, for one that was removed, as it was last. */
  readonly item: DataItem;
  readonly previous: DataItem | undefined;
}

/** The change of one znode between two readings; undefined without a visible one. */
export function dataChange(
  previous: DataItem | undefined,
  item: DataItem | undefined,
): DataChange | undefined {
  if (item === undefined) return previous && { kind: 'removed', item: previous, previous };
  if (previous === undefined) return { kind: 'added', item, previous };
  return visible(item) === visible(previous) ? undefined : { kind: 'changed', item, previous };
}

/** What a write of the same data does not change. */
function visible({ head, entry }: DataItem): string {
  const { key, scalar, owner, place } = entry ?? {};
  const { name, scope, kind, lifespan } = head;
  return JSON.stringify([
    name,
    scope,
    kind,
    lifespan,
    entry?.problem ?? head.problem,
    key,
    scalar,
    owner,
    place,
  ]);
}

/** A change for programs, without its time. */
function dataChangeReport({ kind: change, item, previous }: DataChange) {
  return { change, ...item.head, entry: item.entry, previous: previous ? previous.entry : null };
}

/** A change for people, without its time: `map "limits": entry "eu" changed: Integer 3 → Integer 5`. */
export function dataChangeText({ kind, item: { head, entry }, previous }: DataChange): string {
  const { name, scope, path } = head;
  const datum =
    name === null
      ? path
      : `${head.kind} ${JSON.stringify(name)}${scope ? ` of scope ${JSON.stringify(scope)}` : ''}`;
  const textOf = (each: DataEntry | null | undefined) =>
    each?.scalar ? `${each.scalar.type} ${each.scalar.value}` : 'no element';
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
