import { MAX_SHARDS } from '../../core/lease/model/cluster-config.js';
import type { Setting } from '../../core/settings/setting.js';
import { integer, upToOneDay } from '../../core/settings/values.js';

/** The settings of shards. */
export const SHARDS_SETTINGS = {
  shards: {
    kind: integer(1, MAX_SHARDS),
    default: 'none',
    storeOnly: true,
    sentence:
      'how many shards the nodes of the cluster share, each with one owner: GET /shards, and /shards/events for a program that is to stop them one by one. The first task fixes the number',
  },
  'shard-stop-timeout': {
    kind: upToOneDay,
    default: '30s',
    needs: 'shards',
    storeOnly: true,
    sentence:
      'how long a program may take to stop a shard before the log reports it; the shard still waits for it',
  },
} satisfies Readonly<Record<string, Setting>>;
