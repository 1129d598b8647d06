import { type Contender, standingsBelow } from '../../recipes/standings.js';
import { parsePaths } from '../../zookeeper/znode-path.js';
import { ExitCode } from '../exit-codes.js';
import { onZooKeeper, type ZooKeeperCommandSettings } from '../kit/on-zookeeper.js';
import { say, sayJson, sayLines } from '../kit/reported.js';
import type { Io } from '../terminal/io.js';
import { type Column, renderTable } from '../terminal/table.js';
import { formatDuration, someOf } from '../terminal/text.js';

const COLUMNS: readonly Column[] = [
  { title: 'PATH', minWidth: 12 },
  { title: 'KIND' },
  { title: 'HOLDER', minWidth: 12 },
  { title: 'SESSION' },
  { title: 'TOKEN', align: 'right' },
  { title: 'AGE', align: 'right' },
  { title: 'WAITING', minWidth: 10 },
];

/**
 * `nodelease discovery ls --locks PATH[,PATH]`: shows who holds the locks there and below, and who waits for
 * them. Resolves to the exit code.
 */
export function listLocksCommand(
  given: string,
  json: boolean,
  settings: ZooKeeperCommandSettings,
  io: Io,
): Promise<number> {
  const paths = parsePaths(given, '--locks');
  const where = settings.zookeeper.connect.text;
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    const aged = (contender: Contender) => ({
      ...contender,
      ageMs: Math.max(0, io.clock.now() - contender.since),
    });
    const locks = (await standingsBelow(zookeeper, paths, signal)).map((lock) => {
      return { ...lock, holders: lock.holders.map(aged), waiting: lock.waiting.map(aged) };
    });
    if (json) sayJson(io, { zookeeper: where, paths, locks });
    else if (locks.length === 0) say(io, `No lock is held at ${paths.join(', ')} of ${where}, or below.`);
    else {
      const rows = locks.flatMap(({ path, kind, holders, waiting }) =>
        (holders.length > 0 ? holders : [undefined]).map((holder, at) => {
          const told = holder
            ? [holder.data, holder.sessionId ?? 'none', holder.token, formatDuration(holder.ageMs)]
            : ['-', '', '', ''];
          const queue =
            at > 0 || waiting.length === 0
              ? ''
              : `${waiting.length}: ${someOf(waiting.map(({ data }) => data))}`;
          return [path, kind, ...told, queue].map((text) => ({ text }));
        }),
      );
      sayLines(io, renderTable(COLUMNS, rows, io.screen()));
    }
    return ExitCode.ok;
  });
}
