import type { Settings, ZooKeeperSettings } from '../config.js';
import { DISCOVERY_PATH } from '../discovery/tree-paths.js';
import { parseDiscoveryPath, placeOf } from '../monitor/discovery-place.js';
import { type DiscoveryOptions, discoveryReport } from '../monitor/discovery-report.js';
import { readDiscovery } from '../monitor/discovery-snapshot.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { discoveryTables } from './discovery-table.js';
import { watchDiscovery } from './discovery-watch.js';
import { ExitCode } from './exit-codes.js';
import type { Io } from './io.js';
import { complain, say } from './store-command.js';
import { onZooKeeper } from './zookeeper-command.js';

/** What `discovery ls` shows. */
interface ListOptions extends DiscoveryOptions {
  /** `/discovery`, or a path below it. */
  readonly path: string;
  /** The connect string. */
  readonly where: string;
}

/** The settings of a command that cannot do without ZooKeeper. */
type DiscoverySettings = Settings & { readonly zookeeper: ZooKeeperSettings };

/**
 * `nodelease discovery ls [PATH]`: shows who announces what. Resolves to the exit code.
 *
 * @throws {ConfigError} when the path is none in the tree
 */
export async function listDiscoveryCommand(
  path: string | undefined,
  options: DiscoveryOptions,
  settings: DiscoverySettings,
  io: Io,
): Promise<number> {
  const at = path === undefined ? DISCOVERY_PATH : parseDiscoveryPath(path);
  return onZooKeeper(settings, io, (zookeeper, signal) =>
    showDiscovery(zookeeper, { ...options, path: at, where: settings.zookeeper.connect.text }, io, signal),
  );
}

/** `nodelease discovery watch`: shows who announces what, and every change, until it is interrupted. Resolves to the exit code. */
export function watchDiscoveryCommand(options: DiscoveryOptions, settings: DiscoverySettings, io: Io): Promise<number> {
  return onZooKeeper(settings, io, (zookeeper, signal) => watchDiscovery(zookeeper, options, io, signal));
}

/**
 * Shows the tree, or a part of it, once. What cannot be understood is shown as such; what may not be read, too,
 * and makes it fail.
 *
 * @throws {ZooKeeperError} when there is no answer, or a folder may not be read
 */
export async function showDiscovery(
  zookeeper: ZooKeeper,
  { json, path, where }: ListOptions,
  io: Io,
  signal?: AbortSignal,
): Promise<number> {
  await zookeeper.whenConnected({ signal });
  const snapshot = await readDiscovery(zookeeper, path, signal);
  const report = discoveryReport(where, path, snapshot);
  const nothing = [report.nodes, report.services, report.endpoints, report.foreign].every(({ length }) => length === 0);
  if (json) io.stdout(`${JSON.stringify(report)}\n`);
  else if (nothing && path === DISCOVERY_PATH) say(io, `The discovery tree at ${where} is empty: nobody announces anything there.`);
  else if (snapshot && placeOf(path).kind === 'internal') say(io, `Nobody announces anything at ${path}: nodelease keeps it for itself.`);
  else if (nothing) say(io, `There is nothing at ${path} of ${where}.`);
  else for (const line of discoveryTables(report, io.screen())) io.stdout(`${line}\n`);
  const [first, ...more] = snapshot?.denied ?? [];
  if (first === undefined) return ExitCode.ok;
  complain(io, `${first}${more.length > 0 ? ` and ${more.length} more` : ''}: no-auth: these credentials may not read the data`);
  return ExitCode.storeUnusable;
}
