import { ignoring } from '../../zookeeper/client/zookeeper.js';
import { checkServiceName } from '../../zookeeper/services/instance/new-instance.js';
import { servicePath } from '../../zookeeper/services/service-path.js';
import { answer } from '../kit/answer.js';
import { onZooKeeper, type ZooKeeperCall } from '../kit/call.js';
import { pluralize } from '../kit/terminal/text.js';

/**
 * `nodelease discovery prune [NAME]`: removes the znodes of services that have no instance. The servers refuse
 * to remove one with children, and a registrant makes its parents again. One with data, or of a session, is
 * no service's: with a wrong base path it would be another program's.
 *
 * @throws {ConfigError} when no service could have the name
 */
export async function pruneServices(call: ZooKeeperCall, name?: string): Promise<number> {
  if (name !== undefined) checkServiceName(name, 'name');
  const { basePath, connect } = call.settings.zookeeper;
  return onZooKeeper(call, async (zookeeper, signal) => {
    const removed: string[] = [];
    for (const each of name ? [name] : ((await zookeeper.children(basePath, { signal })) ?? [])) {
      const path = servicePath(basePath, each);
      const { data, stat } = (await zookeeper.read(path, { signal })) ?? {};
      if (!stat || stat.childCount > 0 || stat.owner || data?.length) continue;
      if (await zookeeper.remove(path, stat.version, { signal }).catch(ignoring('not-empty', 'bad-version')))
        removed.push(each);
    }
    const count = pluralize(removed.length, 'service');
    return answer(call, {
      report: { zookeeper: connect.text, path: basePath, removed },
      lines: [`Removed ${count} without an instance at ${basePath} of ${connect.text}`, ...removed],
    });
  });
}
