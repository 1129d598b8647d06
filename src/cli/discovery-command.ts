import { DISCOVERY_PATH } from '../discovery/tree-paths.js';
import { parseDiscoveryPath, placeOf } from '../monitor/discovery-place.js';
import { type DiscoveryOptions, discoveryReport } from '../monitor/discovery-report.js';
import { readDiscovery } from '../monitor/discovery-snapshot.js';
import type { ZooKeeperCommandSettings } from './command-group.js';
import { discoveryTables } from './discovery-table.js';
import { ExitCode } from './exit-codes.js';
import type { Io } from './io.js';
import { complain, say, sayJson, sayLines } from './store-command.js';
import { onZooKeeper } from './zookeeper-command.js';

/**
 * `nodelease discovery ls [PATH]`: shows the tree, or a part of it. It shows data that it cannot decode as such; a znode that it may not read makes
 * it fail. Resolves to the exit code.
 *
 * @throws {ConfigError} when the path is not one of the tree
 */
export async function listDiscoveryCommand(
  at: string | undefined,
  { json }: DiscoveryOptions,
  settings: ZooKeeperCommandSettings,
  io: Io,
): Promise<number> {
  const path = at === undefined ? DISCOVERY_PATH : parseDiscoveryPath(at);
  const where = settings.zookeeper.connect.text;
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    const snapshot = await readDiscovery(zookeeper, path, signal);
    const report = discoveryReport(where, path, snapshot);
    const nothing = [report.nodes, report.services, report.endpoints, report.foreign].every(({ length }) => length === 0);
    if (json) sayJson(io, report);
    else if (nothing && path === DISCOVERY_PATH) say(io, `The discovery tree at ${where} is empty: nobody announces anything there.`);
    else if (snapshot && placeOf(path).kind === 'internal') say(io, `Nobody announces anything at ${path}: nodelease keeps it for itself.`);
    else if (nothing) say(io, `There is nothing at ${path} of ${where}.`);
    else sayLines(io, discoveryTables(report, io.screen()));
    const [first, ...more] = snapshot?.denied ?? [];
    if (first === undefined) return ExitCode.ok;
    complain(io, `${first}${more.length > 0 ? ` and ${more.length} more` : ''}: no-auth: these credentials may not read the data`);
    return ExitCode.storeUnusable;
  });
}
