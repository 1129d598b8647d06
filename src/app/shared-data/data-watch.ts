import { isFault } from '../../zookeeper/client/zookeeper-error.js';
import type { DatumHead, SharedDataReport } from '../../zookeeper/shared-data/data-report.js';
import { readSharedData } from '../../zookeeper/shared-data/report.js';
import { showConnection, watchZooKeeper } from '../kit/changes.js';
import { pluralize } from '../kit/terminal/text.js';
import {
  type DataChange,
  type DataItem,
  dataChange,
  dataChangeReport,
  dataChangeText,
} from './data-change.js';
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
function itemsOf({ data }: SharedDataReport): ReadonlyMap<string, DataItem> {
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
