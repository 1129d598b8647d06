import type { SettingKind } from './values.js';

/**
 * One setting: an option of commands, the environment variable of the same name, and often an option of the
 * library.
 */
export interface Setting {
  readonly kind: SettingKind<unknown>;
  /** Whether the flag may be given several times. */
  readonly repeatable?: true;
  /**
   * What holds where the setting is not given. A value as a user would write it; or, where that depends on
   * other things, words for people.
   */
  readonly default?: string;
  /** What holds instead for some of its commands. */
  readonly otherDefault?: { readonly value: string; readonly commands: readonly string[] };
  /** The commands that have it. */
  readonly commands: readonly string[];
  /** The option of `acquire()` with the same meaning. Durations are in milliseconds there. */
  readonly option?: string;
  /** The setting without which it is of no use. Those of the others need `zookeeper` with them. */
  readonly needs?: 'data-dir' | 'zookeeper' | 'zookeeper-tls' | 'service' | 'check' | 'config';
  /** Whether it is about leases in a store, and of no use where node ids come from ZooKeeper. */
  readonly storeOnly?: true;
  /** What it means, without its range and default. */
  readonly sentence: string;
}

// Which commands have a setting.
export const HOLDING = ['run', 'serve'];
export const CREATING = [...HOLDING, 'id', 'init'];
export const CONSOLE = [...HOLDING, 'console'];
export const NODE_IDS = [...CREATING, 'status', 'scale', 'release', 'doctor', 'console'];
export const SERVICES = ['discovery services', 'discovery resolve', 'discovery serve'];
/** What is about leases, and so about locks on a store. */
export const LEASES = [...NODE_IDS, 'lock'];
/** What runs a command while something in ZooKeeper is held. */
export const ZK_HOLDING = ['zk lock', 'zk elect', 'zk rwlock', 'zk semaphore'];
export const BARRIERS = ['zk barrier set', 'zk barrier wait', 'zk barrier remove'];
export const RECIPES = [...ZK_HOLDING, ...BARRIERS, 'zk counter', 'zk queue put', 'zk queue take'];
export const CONFIG = [
  'ls',
  'get',
  'set',
  'unset',
  'import',
  'export',
  'history',
  'diff',
  'rollback',
  'watch',
  'status',
].map((name) => `config ${name}`);
export const DATA = ['data ls', 'data get', 'data set', 'data put', 'data add', 'data rm', 'data watch'];
export const WITH_ZOOKEEPER = [
  ...NODE_IDS,
  'discovery ls',
  'discovery watch',
  ...SERVICES,
  ...RECIPES,
  ...CONFIG,
  ...DATA,
];
export const ALL = [...WITH_ZOOKEEPER, 'lock'];
