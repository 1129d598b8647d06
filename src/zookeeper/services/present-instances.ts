import { objectIn } from '../../core/base/fields.js';
import { nameAt, parentOf } from '../client/znode-path.js';
import type { CallOptions, ZooKeeper } from '../client/zookeeper.js';
import { ignoring, ZooKeeperError } from '../client/zookeeper-error.js';
import { isDubboFolder } from './instance/dubbo-instance.js';
import { mixedPayloads, payloadConflict, type ReadableBy } from './instance/mixed-payloads.js';

/** Maximum number of present instances that a new one is compared with: a fleet may start at once. */
const MAX_COMPARED = 10;

/** A new instance. */
interface NewInstance {
  /** Of its znode. */
  readonly path: string;
  readonly data: string;
}

/**
 * The refusal of a new instance: a program that registered a present one could not read the service with it.
 * Undefined where nothing speaks against it. Not guaranteed where programs register at the same moment, nor
 * among more than 10 instances.
 */
export async function refusalOf(
  zookeeper: ZooKeeper,
  own: NewInstance,
  call: CallOptions,
): Promise<ZooKeeperError | undefined> {
  const present = await presentInstances(zookeeper, own, call);
  const [problem] = present.flatMap((each) => payloadConflict(each, objectIn(own.data) ?? {}) ?? []);
  if (problem === undefined) return undefined;
  const path = parentOf(own.path);
  return new ZooKeeperError(`not registered: ${path} ${problem}`, 'mixed-payloads', 'not-applied', path);
}

/** As {@link mixedPayloads}, of a registered instance and present ones. */
export async function mixedWithPresent(zookeeper: ZooKeeper, own: NewInstance): Promise<string | undefined> {
  const present = await presentInstances(zookeeper, own, {});
  return mixedPayloads([...present, objectIn(own.data) ?? {}]);
}

/** Other instances than this one; what cannot be read is left out. */
async function presentInstances(
  zookeeper: ZooKeeper,
  { path }: NewInstance,
  call: CallOptions,
): Promise<readonly ReadableBy[]> {
  const service = parentOf(path);
  const unread = ignoring('no-auth');
  const ids = (await zookeeper.children(service, call).catch(unread)) ?? [];
  const others = ids.filter((id) => id !== nameAt(path) && !isDubboFolder(id)).slice(0, MAX_COMPARED);
  const znodes = await Promise.all(
    others.map((id) => zookeeper.read(`${service}/${id}`, call).catch(unread)),
  );
  return znodes.map((znode) => (znode && objectIn(znode.data)) ?? {});
}
