import { discoveryReport } from '../../node/monitor/discovery/discovery-report.js';
import {
  parseDiscoveryPath,
  parsePath,
  readDiscovery,
} from '../../node/monitor/discovery/discovery-snapshot.js';
import { DISCOVERY_PATH } from '../../zookeeper/discovery/tree-paths.js';
import { answer, complain } from '../kit/answer.js';
import { onZooKeeper, type ZooKeeperCall } from '../kit/call.js';
import { ExitCode, UsageError } from '../kit/exit-codes.js';
import { listLocks } from '../products.js';
import { shownTree } from './tree-tables.js';

/** The options of `discovery ls`, as they are on the command line. */
interface ListOptions {
  readonly locks?: string;
}

/**
 * `nodelease discovery ls [PATH]`: shows the tree, or a part of it. It shows data that it cannot decode as
 * such; a znode that it may not read makes it fail. With `--locks`, it shows locks instead.
 *
 * @throws {ConfigError} when the path is not one of the tree
 */
export async function listDiscovery(call: ZooKeeperCall<ListOptions>, at?: string): Promise<number> {
  const { options, settings, io } = call;
  if (options.locks !== undefined) {
    if (at !== undefined) throw new UsageError(`expected either --locks or the path ${at}`);
    return listLocks(call, options.locks);
  }
  const path = at === undefined ? DISCOVERY_PATH : parseDiscoveryPath(at);
  const where = settings.zookeeper.connect.text;
  return onZooKeeper(call, async (zookeeper, signal) => {
    const snapshot = await readDiscovery(zookeeper, path, signal);
    const report = discoveryReport(where, path, snapshot);
    const { nodes, services, endpoints, foreign } = report;
    const nothing = [nodes, services, endpoints, foreign].every(({ length }) => length === 0);
    let empty: string | undefined;
    if (nothing && path === DISCOVERY_PATH)
      empty = `The discovery tree at ${where} is empty: no task announces anything there.`;
    else if (snapshot && parsePath(path).kind === 'internal')
      empty = `No task announces anything at ${path}: nodelease keeps it for itself.`;
    else if (nothing) empty = `There is nothing at ${path} of ${where}.`;
    answer(call, { report, empty, ...shownTree(report, io.screen()) });
    const [first, ...more] = snapshot?.denied ?? [];
    if (first === undefined) return ExitCode.ok;
    const others = more.length > 0 ? ` and ${more.length} more` : '';
    complain(io, `${first}${others}: no-auth: these credentials may not read the data`);
    return ExitCode.storeUnusable;
  });
}
