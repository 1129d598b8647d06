import { groupPath } from '../discovery/tree-paths.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import type { AllocatedSettings } from './allocated-settings.js';
import { ExitCode } from './exit-codes.js';
import type { Io } from './io.js';
import { say } from './store-command.js';
import { onZooKeeper } from './zookeeper-command.js';

/** `nodelease init --provider zookeeper`: makes the first group of node ids, and what is above it. Resolves to the exit code. */
export function initAllocatedCommand(settings: AllocatedSettings, io: Io): Promise<number> {
  return onZooKeeper(settings, io, (zookeeper, signal) => initAllocated(zookeeper, settings.zookeeper.connect.text, io, signal));
}

/**
 * Makes the first group, the chroot included, ahead of the first run: for whoever gives that no right to do so.
 *
 * @throws {ZooKeeperError} when there is no answer, or it may not be made
 */
async function initAllocated(zookeeper: ZooKeeper, where: string, io: Io, signal: AbortSignal): Promise<number> {
  const path = groupPath(0);
  await zookeeper.whenConnected({ signal });
  if ((await zookeeper.children(path, { signal })) !== undefined) say(io, `${path} is there already at ${where}: nothing to do`);
  else {
    await zookeeper.ensurePath(path, { signal });
    say(io, `made ${path} at ${where}: the first group of node ids`);
  }
  return ExitCode.ok;
}
