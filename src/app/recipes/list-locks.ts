import { parsePaths } from '../../zookeeper/client/znode-path.js';
import type { Contender } from '../../zookeeper/recipes/standing.js';
import { standingsBelow } from '../../zookeeper/recipes/standings.js';
import { answer } from '../kit/answer.js';
import { onZooKeeper, type ZooKeeperCall } from '../kit/call.js';
import type { Column } from '../kit/terminal/table.js';
import { formatDuration, someOf } from '../kit/terminal/text.js';

const COLUMNS: readonly Column[] = [
  ['PATH', 12],
  'KIND',
  ['HOLDER', 12],
  'SESSION',
  ['TOKEN', 'right'],
  ['AGE', 'right'],
  ['WAITING', 10],
];

/**
 * `nodelease discovery ls --locks PATH[,PATH]`: shows who holds the locks there and below, and who waits for
 * them.
 */
export function showLocks(call: ZooKeeperCall, given: string): Promise<number> {
  const { settings, io } = call;
  const paths = parsePaths(given, '--locks');
  const where = settings.zookeeper.connect.text;
  return onZooKeeper(call, async (zookeeper, signal) => {
    const aged = (contender: Contender) => ({
      ...contender,
      ageMs: Math.max(0, io.clock.now() - contender.since),
    });
    const locks = (await standingsBelow(zookeeper, paths, signal)).map((lock) => ({
      ...lock,
      holders: lock.holders.map(aged),
      waiting: lock.waiting.map(aged),
    }));
    const rows = locks.flatMap(({ path, kind, holders, waiting }) =>
      (holders.length > 0 ? holders : [undefined]).map((holder, at) => {
        const facts = holder
          ? [holder.data, holder.sessionId ?? 'none', holder.token, formatDuration(holder.ageMs)]
          : ['-', '', '', ''];
        const queue =
          at > 0 || waiting.length === 0
            ? ''
            : `${waiting.length}: ${someOf(waiting.map(({ data }) => data))}`;
        return [path, kind, ...facts, queue];
      }),
    );
    return answer(call, {
      report: { zookeeper: where, paths, locks },
      empty: locks.length === 0 ? `No lock is held at ${paths.join(', ')} of ${where}, or below.` : undefined,
      tables: [[COLUMNS, rows]],
    });
  });
}
