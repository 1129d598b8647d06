import { withinChroot } from '../../zookeeper/client/znode-path.js';
import { ignoring, type ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { jsonPayload } from '../../zookeeper/services/instance/payload-codec.js';
import { mixedPayloads } from '../../zookeeper/services/mixed-payloads.js';
import { ServiceDirectory } from '../../zookeeper/services/service-directory.js';
import { servicePath } from '../../zookeeper/services/service-path.js';
import type { Io } from '../kit/terminal/io.js';
import type { ZooKeeperSettings } from '../settings/settings.js';

interface MixedServicesOptions extends Pick<Io, 'clock'> {
  readonly settings: ZooKeeperSettings;
  readonly signal: AbortSignal;
}

/**
 * The services that Java programs cannot read, each with the reason. One that may not be read, or not in time,
 * is left out.
 *
 * @param zookeeper without the chroot of the settings
 */
export async function mixedServices(
  zookeeper: ZooKeeper,
  { settings: { connect, basePath }, clock, signal }: MixedServicesOptions,
): Promise<readonly string[]> {
  const root = withinChroot(connect.chroot, basePath);
  const directory = new ServiceDirectory({ zookeeper, clock, payload: jsonPayload, basePath: root });
  const found: string[] = [];
  const unread = ignoring('no-auth', 'timeout');
  for (const name of (await directory.names({ signal }).catch(unread)) ?? []) {
    const instances = await directory.instances(name, { signal }).catch(unread);
    const problem = mixedPayloads(instances ?? []);
    if (problem) found.push(`${servicePath(basePath, name)} ${problem}`);
  }
  return found;
}
