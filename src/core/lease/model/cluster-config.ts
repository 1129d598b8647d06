import { ConfigError } from '../../base/errors.js';
import { LeaseUnreadableError, parseObject, readInteger, readTime } from './lease-codec.js';
import { DURATION_MS, END_OF_TIME, leastGraceMs, MAX_NODE_IDS, MOST_GRACE_MS } from './lease-state.js';

/**
 * The settings that every contender must share, kept in `cluster.json` (docs/design/protocol.md, "Lease
 * objects").
 */
export interface ClusterConfig {
  /** Number of node ids: 0 … size - 1. */
  readonly size: number;
  /** The name of the first task that had one; tasks of another name are refused. Undefined while none had. */
  readonly name?: string | undefined;
  /** How long a lease is valid without renewal, in milliseconds. */
  readonly durationMs: number;
  /**
   * How much longer than the duration a contender waits, in milliseconds. It covers the skew between the
   * store's servers.
   */
  readonly graceMs: number;
  /**
   * The longest duration that the cluster ever had, in milliseconds: a task with an old memory may still claim
   * with it (rule 15). Left out of the object if it equals `durationMs`.
   */
  readonly longestMs: number;
  /** The last eight changes of duration and grace, the newest first. Left out of the object without one. */
  readonly tuned?: readonly TimesChange[];
  /**
   * Bits of a node id in a unique id, 8 … 16: at least what `size` needs, more while the cluster grows. Never
   * narrowed.
   */
  readonly idWidth: number;
  /**
   * The last timestamp, in store time, of unique ids with fewer bits for the node id; 0 where the width never
   * grew. Later tenures begin after it.
   */
  readonly idFloor: number;
  /** True once every lease object has been seen to exist. From then on an absent one is damage. */
  readonly bootstrapped: boolean;
  /**
   * How often the number of node ids has changed. The tombstone of a retired id carries its generation. In a
   * later generation the cluster has the id again, and the tombstone counts as released. Left out of the
   * object while 0.
   */
  readonly generation: number;
  /**
   * The greatest number of node ids that the cluster ever had. Once it is bootstrapped, an absent object of a
   * lower id is damage, even if the cluster has shrunk. Left out of the object if it equals `size`.
   */
  readonly peak: number;
  /**
   * False until the store has passed the probe. No task uses the store before that. Left out of the object
   * once true.
   */
  readonly proven: boolean;
  /**
   * How often a task has taken the probe over from one that did not finish it. Left out of the object while
   * 0, and once it has passed.
   */
  readonly proofsTakenOver?: number;
  /**
   * Why a probe failed. No later start uses the store until a far longer probe has passed. Otherwise left
   * out.
   */
  readonly proofFailed?: string;
  /** Left out of the object where the store reports none, until it has been restored. */
  readonly epoch?: StoreEpoch;
  /**
   * How many shards there are, which never changes; the epoch of `shards.json` that its present series is
   * above, left out while it is 0; and whether the map has been made: from then on its absence is damage
   * (T10). Left out of the object until a task asks for shards.
   */
  readonly shards?: { readonly count: number; readonly floor?: number; readonly created: boolean };
  /** Of a lock: whether it has had a `tick.json`, whose absence is damage then (rule O10). Otherwise left out. */
  readonly once?: true;
}

/** Duration and grace of a cluster, in milliseconds. */
export type ClusterTimes = Pick<ClusterConfig, 'durationMs' | 'graceMs'>;

/** That an operator has given a cluster other times, and when, in store time since the Unix epoch. */
export interface TimesChange {
  readonly at: number;
  readonly from: ClusterTimes;
  readonly to: ClusterTimes;
}

/** From the first sight of a store's epoch to that of the next one the store has not gone back. */
export interface StoreEpoch {
  /** What the store reports; undefined where it reports none. */
  readonly store?: string | undefined;
  /** Random: each lease has that of the epoch in which it was taken. Undefined in the first epoch of a cluster. */
  readonly mark?: string | undefined;
  /** True until a duration and a grace have passed since these settings were written: no id is taken (rule 10). */
  readonly settling?: boolean;
}

/** The settings, once a new epoch of the store has settled. */
export function settled(config: ClusterConfig): ClusterConfig {
  return config.epoch?.settling ? { ...config, epoch: { ...config.epoch, settling: false } } : config;
}

/** What `settling` means, as a sentence without a full stop. */
export const SETTLING =
  'the store was restarted, restored or replaced, and may have lost writes: nothing is given out for a duration and a grace';

/** The greatest number of shards. */
export const MAX_SHARDS = 4_096;
/** The greatest floor: the epochs above it are exact numbers still. */
const MAX_FLOOR = 2 ** 52;

/** The key of the cluster's settings. */
export const CLUSTER_KEY = 'cluster.json';

/** Bits needed for the highest node id, the 8 reserved ones included; at least 8. */
export function idWidthFor(size: number): number {
  return Math.max(8, Math.ceil(Math.log2(8 + size)));
}

/** A task's own settings; undefined ones are left to the cluster. */
export interface WantedSettings {
  readonly nodes?: number | undefined;
  readonly durationMs?: number | undefined;
  readonly graceMs?: number | undefined;
  /** See {@link ClusterConfig.name}. */
  readonly clusterName?: string | undefined;
  /** `existing`: no new cluster is created. @default 'any' */
  readonly cluster?: 'any' | 'existing' | undefined;
  /**
   * Whether another record shows that the store has passed the probe: a new cluster then needs no probe.
   * @default false
   */
  readonly probed?: boolean | undefined;
  /** The epoch of a new cluster. @default the first one, of what the store reports */
  readonly epoch?: StoreEpoch | undefined;
}

/** Defaults of a new cluster. The grace is longer if {@link leastGraceMs} is. */
export const CLUSTER_DEFAULTS = { nodes: 16, durationMs: 15_000, graceMs: 1_000 } as const;

/**
 * The settings of a cluster that is about to be created.
 *
 * @throws {ConfigError} when a value is out of range
 */
export function newCluster(wanted: WantedSettings): ClusterConfig {
  const { nodes = CLUSTER_DEFAULTS.nodes, durationMs = CLUSTER_DEFAULTS.durationMs } = wanted;
  check('nodes', nodes, 1, MAX_NODE_IDS, 'whole number');
  check('durationMs', durationMs, DURATION_MS.least, DURATION_MS.most, 'whole number of milliseconds');
  const minGraceMs = leastGraceMs(durationMs);
  const { graceMs = Math.max(CLUSTER_DEFAULTS.graceMs, minGraceMs) } = wanted;
  check(
    'graceMs',
    graceMs,
    minGraceMs,
    MOST_GRACE_MS,
    'whole number of milliseconds (a thousandth of the duration, since clocks drift)',
  );
  return {
    size: nodes,
    name: wanted.clusterName,
    durationMs,
    graceMs,
    longestMs: durationMs,
    idWidth: idWidthFor(nodes),
    idFloor: 0,
    bootstrapped: false,
    generation: 0,
    peak: nodes,
    proven: true,
  };
}

/**
 * @throws {ConfigError} for settings that no cluster could have, even where an existing cluster would
 * overrule them
 */
export function checkWanted(wanted: WantedSettings): void {
  newCluster(wanted);
}

function check(name: string, value: number, min: number, max: number, what: string): void {
  if (!Number.isSafeInteger(value) || value < min || value > max)
    throw new ConfigError(name, value, `a ${what} from ${min} to ${max}`);
}

/** The body of `cluster.json`. Unknown fields of `previous`, the body that it replaces, are kept. */
export function encodeCluster(config: ClusterConfig, previous?: string): string {
  const known = {
    ...config,
    longestMs: config.longestMs > config.durationMs ? config.longestMs : undefined,
    idFloor: config.idFloor || undefined,
    generation: config.generation || undefined,
    peak: config.peak > config.size ? config.peak : undefined,
    proven: config.proven ? undefined : false,
    proofsTakenOver: config.proven ? undefined : config.proofsTakenOver || undefined,
    proofFailed: config.proven ? undefined : config.proofFailed || undefined,
  };
  return JSON.stringify(previous === undefined ? known : { ...parseObject(previous), ...known });
}

/** @throws {LeaseUnreadableError} when the object is not a cluster's settings */
export function decodeCluster(body: string): ClusterConfig {
  // What is left out counts as the least, which the other settings may exceed.
  const fields: Record<string, unknown> = {
    ...{ idWidth: 8, longestMs: DURATION_MS.least, peak: 1, idFloor: 0, generation: 0 },
    ...parseObject(body),
  };
  const size = readInteger(fields, 'size', 1, MAX_NODE_IDS);
  const durationMs = readInteger(fields, 'durationMs', DURATION_MS.least, DURATION_MS.most);
  const idWidth = readInteger(fields, 'idWidth', 8, 16);
  const longestMs = readInteger(fields, 'longestMs', DURATION_MS.least, DURATION_MS.most);
  const peak = readInteger(fields, 'peak', 1, MAX_NODE_IDS);
  if (typeof fields.bootstrapped !== 'boolean')
    throw new LeaseUnreadableError('has no usable "bootstrapped": expected true or false');
  return {
    size,
    durationMs,
    graceMs: readInteger(fields, 'graceMs', leastGraceMs(durationMs), MOST_GRACE_MS),
    longestMs: Math.max(durationMs, longestMs),
    ...(Array.isArray(fields.tuned) && { tuned: fields.tuned.filter(isChange) }),
    // A width that was written by hand may be too narrow for the existing ids.
    idWidth: Math.max(idWidthFor(size), idWidth),
    idFloor: readTime(fields, 'idFloor'),
    bootstrapped: fields.bootstrapped,
    generation: readInteger(fields, 'generation', 0),
    peak: Math.max(size, peak),
    proven: fields.proven !== false,
    ...(typeof fields.name === 'string' && { name: fields.name }),
    ...(typeof fields.proofFailed === 'string' && { proofFailed: fields.proofFailed }),
    ...(fields.proofsTakenOver !== undefined && {
      proofsTakenOver: readInteger(fields, 'proofsTakenOver', 0),
    }),
    ...(fields.epoch !== undefined && { epoch: readEpoch(Object(fields.epoch)) }),
    ...(fields.once === true && { once: fields.once }),
    ...(fields.shards !== undefined && { shards: readShards(Object(fields.shards)) }),
  };
}

/** A change is for people: what cannot be shown is left out. */
function isChange(change: unknown): change is TimesChange {
  const { at, from, to } = Object(change);
  const times = [at, from?.durationMs, from?.graceMs, to?.durationMs, to?.graceMs];
  return times.every((time) => Number.isSafeInteger(time) && time >= 0 && time < END_OF_TIME);
}

function readEpoch({ store, mark, settling }: Record<string, unknown>): StoreEpoch {
  const isText = [store, mark].every((text) => text === undefined || typeof text === 'string');
  if (!isText) throw new LeaseUnreadableError('has no usable "epoch"');
  return { store, mark, ...(settling === true && { settling }) } as StoreEpoch;
}

function readShards(fields: Record<string, unknown>): NonNullable<ClusterConfig['shards']> {
  return {
    count: readInteger(fields, 'count', 1, MAX_SHARDS),
    ...(fields.floor !== undefined && { floor: readInteger(fields, 'floor', 1, MAX_FLOOR) }),
    created: fields.created === true,
  };
}
