import type { Settings, ZooKeeperSettings } from '../settings/settings.js';

/** The settings of a command that is about node ids from ZooKeeper alone. */
export type AllocatedSettings = Settings & { readonly zookeeper: ZooKeeperSettings };

/** The settings, where node ids come from ZooKeeper alone; undefined where they are leased from a store. */
export function allocatedSettings(settings: Settings): AllocatedSettings | undefined {
  const { provider, zookeeper } = settings;
  return provider === 'zookeeper' && zookeeper !== undefined ? { ...settings, zookeeper } : undefined;
}
