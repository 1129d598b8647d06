import type { LEASE_SETTINGS } from '../../core/lease/lease-settings.js';
import { MAX_SHARDS } from '../../core/lease/model/cluster-config.js';
import { integer, type SettingRows, upToOneDay } from '../../core/settings/setting.js';
import { type GivenSettings, refuse } from '../../core/settings/sources.js';
import { checkPrivate, type HTTP_SETTINGS } from '../http/http-settings.js';

/** The settings of shards. */
const SHARDS_SETTINGS = {
  shards: {
    kind: integer(1, MAX_SHARDS),
    default: 'none',
    wanted: '--shards N with it',
    storeOnly: true,
    common: true,
    sentence:
      'how many shards the nodes of the cluster share, each with one owner: GET /shards; the first task fixes the number',
  },
  'shard-stop-timeout': {
    kind: upToOneDay,
    default: '30s',
    needs: 'shards',
    storeOnly: true,
    sentence:
      'how long a program may take to stop a shard before the log reports it; the shard still waits for it',
  },
} as const satisfies SettingRows;

/** How many shards there are, and how long the stop of one may take. */
export interface ShardSettings {
  readonly count: number;
  readonly stopTimeoutMs: number;
}

/** What is said of shards to the table of settings. */
export const SHARDS = {
  rows: SHARDS_SETTINGS,
  commands: ['run', 'serve'],
  read: { shards: readShards },
} as const;

/** Shards rest on a lease in a store, and the programs that run them say over HTTP when their work has ended. */
function readShards(
  all: GivenSettings<typeof SHARDS_SETTINGS & typeof LEASE_SETTINGS & typeof HTTP_SETTINGS>,
): ShardSettings | undefined {
  const given = all.find('shards');
  const count = all.read('shards');
  if (given === undefined || count === undefined) return undefined;
  if (all.find('node-id') || all.readOrDefault('provider') === 'zookeeper')
    refuse(
      given,
      'a node id from a store with it (a fixed one, and one from ZooKeeper, have no lease there)',
    );
  checkPrivate(all, '--shards', 'the work on a shard has ended');
  return { count, stopTimeoutMs: all.readOrDefault('shard-stop-timeout') };
}
