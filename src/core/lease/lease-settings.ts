import {
  checked,
  choice,
  duration,
  integer,
  type SettingRows,
  text,
  upToOneDay,
} from '../settings/setting.js';
import { DURATION_MS, MAX_NODE_IDS, MOST_GRACE_MS } from './model/lease-state.js';

/** The settings of leases. */
export const LEASE_SETTINGS = {
  cluster: {
    kind: choice('any', 'existing'),
    default: 'any',
    option: 'cluster',
    storeOnly: true,
    common: true,
    sentence: 'existing: a start that finds no cluster in the store ends with 69 and creates none',
  },
  'cluster-name': {
    kind: text('name', /^[\w.-]{1,255}$/, '1 to 255 letters, digits and ._-'),
    default: 'the ECS service on EC2, else none',
    option: 'clusterName',
    storeOnly: true,
    sentence: 'a cluster without a name takes this one; a task of another name ends with 69',
  },
  nodes: {
    kind: integer(1, MAX_NODE_IDS),
    default: '16',
    option: 'nodes',
    storeOnly: true,
    common: true,
    sentence: 'how many node ids a new cluster has',
  },
  duration: {
    kind: duration({
      min: DURATION_MS.least,
      minWhy: 'a shorter lease leaves no time to renew it over a network',
      max: DURATION_MS.most,
      maxWhy: 'that long a dead node keeps its id from the others',
    }),
    default: '15s',
    option: 'durationMs',
    storeOnly: true,
    common: true,
    sentence: 'how long a lease of a new cluster lasts without renewal',
  },
  grace: {
    kind: duration({ max: MOST_GRACE_MS }),
    default: '1s, and at least a thousandth of the duration',
    option: 'graceMs',
    storeOnly: true,
    sentence: 'how much longer other tasks wait before they take an expired lease',
  },
  'task-id': {
    kind: text('id', /^[\x21-\x7e]{1,128}$/, '1 to 128 printable ASCII characters without spaces'),
    default: 'the id of the ECS task, else host name and a random part',
    option: 'taskId',
    common: true,
    sentence: 'names this run: 1 to 128 printable ASCII characters without spaces',
  },
  'acquire-timeout': {
    kind: duration({ max: 31_536_000_000, open: true }),
    default: 'without limit',
    option: 'acquireTimeoutMs',
    common: true,
    sentence: 'how long to wait for a free node id, 0s for not at all',
  },
  'wait-poll': {
    kind: duration({ min: 100, minWhy: 'each look is a request', max: 86_400_000 }),
    default: '1.2s',
    option: 'waitPollMs',
    storeOnly: true,
    sentence:
      'first pause between two scans of a store that reports no changes while no node id is free; it grows to a third of the duration',
  },
  sticky: {
    kind: text('key', /^.{1,256}$/su, 'a text of 1 to 256 characters'),
    default: 'none',
    option: 'sticky',
    wanted: '--sticky KEY with it',
    storeOnly: true,
    common: true,
    sentence:
      'names this instance over its restarts: it prefers the node id that it held last; "file" is a key in the root of the data directory. A preference: two tasks with one key get two node ids',
  },
  'prefer-id': {
    kind: integer(0, MAX_NODE_IDS - 1),
    default: 'none',
    option: 'preferId',
    storeOnly: true,
    sentence: 'the node id that is tried first',
  },
  'sticky-wait': {
    kind: upToOneDay,
    default: '0s',
    option: 'stickyWaitMs',
    needs: 'sticky',
    storeOnly: true,
    sentence: 'how long to wait for the former node id if it was not released, as after a kill',
  },
  'settings-interval': {
    kind: duration({
      min: 1,
      minWhy: 'leave it out to look at each renewal',
      max: 3_600_000,
      maxWhy: 'for that long a holder would not learn that its node id is being retired',
    }),
    default: 'at each renewal',
    option: 'settingsIntervalMs',
    storeOnly: true,
    sentence: 'how often a holder reads whether the cluster has grown or shrunk',
  },
  'on-retire': {
    kind: choice('drain', 'stop'),
    default: 'stop; for serve drain',
    field: 'onRetire',
    storeOnly: true,
    common: true,
    sentence:
      'when "nodelease scale" retires the node id: stop asks the command to stop, drain lets it end by itself',
  },
  'ecs-protect': {
    kind: choice('held', 'busy'),
    default: 'no protection',
    field: 'ecsProtect',
    sentence:
      'on ECS, no scale-in stops this task while it holds the node id or lock, or its program says so (POST /busy)',
  },
  'node-id': {
    kind: checked('id', () => undefined),
    storeOnly: true,
    common: true,
    sentence:
      'a fixed node id, without a lease: a number, or "hostname" for the ordinal at the end of the host name',
  },
  provider: {
    kind: choice('store', 'zookeeper'),
    default: 'store',
    option: 'provider',
    sentence: 'where node ids come from; a node id of ZooKeeper ends with its session',
  },
} as const satisfies SettingRows;
