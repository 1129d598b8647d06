import type { DataEntry, DatumHead } from '../../zookeeper/shared-data/data-report.js';

/** A datum, or one entry of it. A scalar is an entry, too. */
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
export function dataChangeReport({ kind: change, item, previous }: DataChange): object {
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
