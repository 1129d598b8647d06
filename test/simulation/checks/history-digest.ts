/** A history without what is the same in every one. */
export interface HistoryDigest {
  readonly lines: readonly string[];
  /** How many lines were left out. */
  readonly left: number;
}

/** Who a line is about, and what it says: as `World.note` writes it. */
const LINE = /^ *[\d.]+ s {2}(task \d+\.\d+|operator \S+|store)? +(.*)$/;
const REQUEST = /^#\d+ (read|list|create|replace|discard) ?(\S*)$/;
/** Unique ids that were made under a node id. */
const MADE = /^makes \d+ ids of node id (\d+) /;
const STORED = /^(\S+) is now (held by .*)$/;

/**
 * Leaves out of a history:
 * - requests that change nothing, `read` and `list`;
 * - renewals, the line of the request, that of the store and that of the task, other than those of the node
 *   ids that `about` names;
 * - unique ids of other node ids than those;
 * - that a task's own settings are overruled.
 *
 * A request that something befell stays, and so does a write that was no renewal, or that is not known to
 * have become one.
 *
 * @param history as `simulate` records it
 * @param about the text of the violation, say
 */
export function digest(history: readonly string[], about: string): HistoryDigest {
  const named = new Set(
    [...about.matchAll(/(?:node id |gives up )(\d+)|(\d+)\.json/g)].map(
      ([, id, object]) => `${id ?? object}.json`,
    ),
  );
  const left = new Set<number>();
  /** Who has each object, by the last line of the store about it. */
  const stored = new Map<string, string>();
  /** The writes of each task since it last said anything: a renewal, if the next thing that it says is so. */
  const writes = new Map<string, { line: number; key: string }[]>();
  for (const [line, text] of history.entries()) {
    const [, who, what = ''] = LINE.exec(text) ?? [];
    const [, operation, key = ''] = REQUEST.exec(what) ?? [];
    const madeUnder = MADE.exec(what)?.[1];
    if (madeUnder !== undefined) {
      if (!named.has(`${madeUnder}.json`)) left.add(line);
      continue;
    }
    if (who === undefined) {
      // A fault of a request follows the request's own line.
      const previous = LINE.exec(history[line - 1] ?? '');
      if (previous?.[1] !== undefined && what.startsWith(`${previous[1]} ${previous[2]?.trim()}`)) {
        left.delete(line - 1);
        const others = (writes.get(previous[1]) ?? []).filter((write) => write.line !== line - 1);
        writes.set(previous[1], others);
      }
    } else if (who === 'store') {
      const [, object = '', holder = ''] = STORED.exec(what) ?? [];
      if (holder !== '' && stored.get(object) === holder && !named.has(object)) left.add(line);
      stored.set(object, holder);
    } else if (operation === 'read' || operation === 'list') left.add(line);
    else if (operation !== undefined) writes.set(who, [...(writes.get(who) ?? []), { line, key }]);
    else {
      const renewal = what === 'renewed' ? (writes.get(who) ?? []) : [];
      writes.delete(who);
      if (what === 'setting-overruled') left.add(line);
      if (renewal.length === 0 || renewal.some(({ key }) => named.has(key))) continue;
      for (const write of renewal) left.add(write.line);
      left.add(line);
    }
  }
  return { lines: history.filter((_, line) => !left.has(line)), left: left.size };
}
