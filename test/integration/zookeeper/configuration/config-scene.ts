import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import {
  type ConfigPublisher,
  configPublisher,
  type PublisherOptions,
} from '../../../../src/zookeeper/configuration/index.js';

export const publisher = (client: ZooKeeper, options: Partial<PublisherOptions> = {}): ConfigPublisher =>
  configPublisher(client, { app: 'shop', profile: 'prod', author: 'ada', ...options });

/** Changes of keys, as `{ 'db.url': 'x', old: null }`. */
export const keys = (values: Readonly<Record<string, string | null>>) =>
  Object.entries(values).map(([key, value]) => ({ key, new: value }));

/** All znodes below a path with their data, `/config` without what nodelease keeps for itself. */
export async function treeAt(client: ZooKeeper, path = '/config'): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const visit = async (at: string): Promise<void> => {
    for (const name of (await client.children(at))?.toSorted() ?? []) {
      const below = `${at}/${name}`;
      if (name === '.nodelease') continue;
      found[below] = (await client.read(below))?.data.toString('utf8') ?? '(gone)';
      await visit(below);
    }
  };
  await visit(path);
  return found;
}
