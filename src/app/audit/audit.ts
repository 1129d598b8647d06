import { explain } from '../../core/base/errors.js';
import { type ClusterConfig, decodeCluster } from '../../core/lease/model/cluster-config.js';
import { nativeCodec } from '../../core/lease/model/lease-codec.js';
import { type HeldLease, type LeaseState, leaseKey, versionOf } from '../../core/lease/model/lease-state.js';
import { type PastTenure, pastTenures } from '../../core/lease/model/tenure-history.js';
import type { ObjectMetadata, PastObject } from '../../core/store/lease-store.js';
import { decodeTick, TICK_KEY, type TickRecord } from '../../node/locks/tick.js';
import { decodeMap, SHARDS_KEY, type ShardMap } from '../../node/shards/shard-map.js';
import { type Breach, isEnd, judgeWrite, mayFollow, mayFollowTick, trustOf } from './judge-write.js';

const KEY = /^(?:((?:locks\/(?:[^/]+\/)?)?)(?:\d+|shards)|(locks\/[^/]+\/)tick)\.json$/;

/** The folder of a lease object, a map of shards, or a tick, with a slash; undefined for every other key. */
export function folderOf(key: string): string | undefined {
  const [, folder, ofTick] = KEY.exec(key) ?? [];
  return folder ?? ofTick;
}

/** What broke a promise. Times are in milliseconds since the Unix epoch, and not finite where the store keeps none. */
interface BreachReport {
  readonly breach: Breach;
  readonly key: string;
  readonly at: number;
  readonly detail: string;
}

/** A tenure that is over: `endedAt` is when the object was written that shows it. */
interface EndedTenure extends PastTenure {
  readonly key: string;
}

/** How many breaches and outages are listed, and of how many pauses outages are found. */
const MOST = { listed: 100, gaps: 100_000 } as const;

interface Folder {
  /** The settings of the cluster, the newest first. */
  readonly settings: readonly (ClusterConfig & Pick<PastObject, 'at'>)[];
  /** The keys that have an object. */
  readonly present: Set<string>;
}

/** With what was written: a lease, a map of shards, or a tick. */
interface State extends PastObject {
  readonly lease?: LeaseState;
  readonly map?: ShardMap;
  readonly tick?: TickRecord;
  /** Whether it was unreadable or absent before that. */
  damaged?: boolean;
}

/**
 * Judges what was written to the lease objects of a cluster and of its locks, to their ticks, and to the map of
 * shards. It is fed with their states, key after key and the newest first, and remembers one of them.
 */
export class Audit {
  versions = 0;
  /** Those that stay when they are replaced. */
  kept = 0;
  /** Of what is missing between two states that are kept: tenures, or one where their number is not known. */
  lost = 0;
  from = Number.POSITIVE_INFINITY;
  to = Number.NEGATIVE_INFINITY;
  readonly counts: Partial<Record<Breach, number>> = {};
  readonly breaches: BreachReport[] = [];
  readonly tenures = { released: 0, expired: 0, evicted: 0, retired: 0, held: 0 };
  /** From the last write of a holder to the next one's first; `undecided`: that may have been too early. */
  readonly takeOvers = { count: 0, undecided: 0, shortestMs: Number.POSITIVE_INFINITY, longestMs: 0 };
  /** Between two writes of a tenure. */
  longestGap = { key: '', at: 0, ms: 0, durationMs: 0 };
  /** When a holder had not written for two thirds of its duration, and when that was over: 1 and -1. */
  readonly #overdue: (readonly [at: number, change: number])[] = [];
  readonly #folders = new Map<string, Folder>();
  #newer: State | undefined;

  constructor(readonly onTenure: (tenure: EndedTenure) => void = () => undefined) {}

  /** Whether a folder is to be entered before its next state. */
  needs(folder: string): boolean {
    return !this.#folders.has(folder);
  }

  /** @param states of the settings in the folder, the newest first */
  enter(name: string, states: readonly PastObject[]): void {
    // The states of a lock are in one piece, those of the cluster are around them.
    for (const other of this.#folders.keys()) if (other !== '') this.#leave(other);
    const settings = states.flatMap((state) => {
      const config = this.#read(state, true, decodeCluster);
      return config ? [{ ...config, at: state.at }] : [];
    });
    this.#folders.set(name, { settings, present: new Set() });
  }

  /** The next older state of the same key, or the newest one of the next key. */
  add(past: PastObject): void {
    const { key, written, at } = past;
    const folder = this.#folders.get(folderOf(key) ?? '') as Folder;
    const newer = this.#newer?.key === key ? this.#newer : undefined;
    this.versions += 1;
    this.kept += Number(past.kept);
    this.from = Math.min(this.from, at.min);
    this.to = Math.max(this.to, at.max);
    if (!newer && written) folder.present.add(key);
    const isFirst = newer && isFirstOf(newer, folder);
    const content = this.#read(past, isFirst, (body, metadata) => {
      if (key.endsWith(TICK_KEY)) return { tick: decodeTick(body) };
      if (key.endsWith(SHARDS_KEY)) return { map: decodeMap(body) };
      return { lease: nativeCodec.decode(body, metadata) };
    });
    if (content === undefined) {
      if (newer) newer.damaged = true;
      return;
    }
    const state: State = { ...past, ...content };
    if (newer === undefined) this.#newest(state);
    else this.#judge(state, newer, folder);
    this.#newer = state;
  }

  /** After the last state. */
  finish(): void {
    for (const name of this.#folders.keys()) this.#leave(name);
  }

  /** When at least two holders were overdue at a time, and how many; the longest first. */
  outages() {
    const found: { from: number; to: number; holders: number }[] = [];
    let overdue = 0;
    for (const [at, change] of this.#overdue.sort(([a, up], [b, down]) => a - b || up - down)) {
      if (change > 0 && overdue === 1) found.push({ from: at, to: at, holders: 2 });
      const last = found.at(-1);
      if (last && overdue > 1) last.to = at;
      overdue += change;
      if (last) last.holders = Math.max(last.holders, overdue);
    }
    return found.sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, MOST.listed);
  }

  /** Each node id that a cluster ever had has an object. */
  #leave(name: string): void {
    const { settings, present } = this.#folders.get(name) as Folder;
    this.#folders.delete(name);
    const [newest] = settings;
    for (let id = 0; newest?.bootstrapped && id < newest.peak; id += 1) {
      const key = name + leaseKey(id);
      if (!present.has(key)) this.#report('deleted', key, newest.at.max, 'there is no object');
    }
  }

  /** @param isFirst whether it may not have existed before that, where a store without times shows its absence */
  #read<T>(
    { key, written, at }: PastObject,
    isFirst: boolean | undefined,
    decode: (body: string, metadata: ObjectMetadata) => T,
  ): T | undefined {
    try {
      if (written) return decode(written.body, written.metadata);
      if (!isFirst || Number.isFinite(at.min)) this.#report('deleted', key, at.min, 'removed');
    } catch (error) {
      this.#report('foreign-write', key, at.min, explain(error));
    }
    return undefined;
  }

  /** What the newest state of a key shows by itself. */
  #newest({ lease, key, at, kept }: State): void {
    if (!lease || lease.kind === 'vacant') return;
    const isHeld = lease.kind === 'held';
    this.tenures.held += Number(isHeld);
    const past = pastTenures(lease.history);
    const versions = [lease.version + Number(!isHeld), ...past.map(({ version }) => version)];
    if (versions.some((version, index) => version <= (versions[index + 1] ?? 0)))
      this.#report(
        'version-fell',
        key,
        at.min,
        `its history has the versions ${versions.slice(1).join(', ')}`,
      );
    if (!kept) for (const tenure of past) this.#end({ ...tenure, key });
  }

  #end(tenure: EndedTenure): void {
    this.tenures[tenure.end] += 1;
    this.onTenure(tenure);
  }

  #judge(older: State, newer: State, { settings }: Folder): void {
    const { key, at, kept, damaged = false, lease: to } = newer;
    const { lease: from } = older;
    if (!kept) {
      this.lost += 1;
      // Whatever is missing between the two: a version never falls.
      if (!from || !to || versionOf(to) >= versionOf(from)) return;
    }
    const epochs = settings.filter(({ epoch }) => epoch?.settling);
    // What was put back before a new epoch was recorded is explained.
    const isExplained = epochs.some((epoch) => epoch.at.max >= at.min);
    if (older.tick && newer.tick && !isExplained && !mayFollowTick(older.tick, newer.tick))
      this.#report('foreign-write', key, at.min, `tick ${older.tick.tick}, then ${newer.tick.tick}`);
    if (older.map && newer.map && !isExplained && !mayFollow(older.map, newer.map))
      this.#report('shard-token', key, at.min, 'a token or the epoch did not rise');
    if (!from || !to) return;
    // Without settings of that time it is unknown whether the cluster had given the id up.
    const { generation = Number.POSITIVE_INFINITY } = settings.find((each) => each.at.min <= at.max) ?? {};
    const elapsedMs = at.max - older.at.min;
    const step = judgeWrite(from, to, { elapsedMs, generation, damaged });
    const trustMs = trustOf(from);

    // Versions leap in a new epoch of the store (rule 12).
    const rise = versionOf(to) - versionOf(from);
    // A tenure that is held again after its release.
    const isBack = step === 'version-twice' && from.kind !== 'held';
    if ((rise < 0 || isBack || step === 'foreign-write') && isExplained) return;
    if (rise > 1 && !damaged && epochOf(from) === epochOf(to)) this.lost += rise - 1;
    const own = epochs.findLast(({ epoch }) => epoch?.mark === epochOf(to));
    if (to.kind === 'held' && step !== 'renewed' && own && at.max - own.at.min <= own.durationMs)
      this.#report('taken-early', key, at.min, `${textOf(to)}, before the new epoch has settled`);

    const ms = at.min - older.at.min;
    if (step === 'renewed' && ms > this.longestGap.ms)
      this.longestGap = { key, at: at.min, ms, durationMs: trustMs };
    const dueAt = older.at.min + (trustMs * 2) / 3;
    if (['renewed', 'expired'].includes(step) && at.min > dueAt && this.#overdue.length < 2 * MOST.gaps)
      this.#overdue.push([dueAt, 1], [Math.min(at.min, older.at.min + trustMs), -1]);
    if (isEnd(step)) {
      const { version, taskId, acquiredAt } = from as HeldLease;
      this.#end({ key, version, taskId, acquiredAt, endedAt: at.min, end: step });
    } else if (step !== 'renewed' && step !== 'written') {
      const how =
        step === 'taken-early'
          ? `, at most ${elapsedMs} ms later, within the ${trustMs} ms of the lease`
          : '';
      this.#report(step, key, at.min, `${textOf(from)}, then ${textOf(to)}${how}`);
    }
    if (to.kind !== 'held' || trustMs === 0 || (step !== 'expired' && step !== 'written')) return;
    const { takeOvers } = this;
    takeOvers.count += 1;
    // Within the grace, the clocks of the store's servers may differ. A larger one protects once each task knows it.
    const graceMs = Math.min(...settings.map((each) => each.graceMs));
    takeOvers.undecided += Number(at.min - older.at.max <= trustMs + graceMs);
    takeOvers.shortestMs = Math.min(takeOvers.shortestMs, ms);
    takeOvers.longestMs = Math.max(takeOvers.longestMs, ms);
  }

  #report(breach: Breach, key: string, at: number, detail: string): void {
    this.counts[breach] = (this.counts[breach] ?? 0) + 1;
    if (this.breaches.length < MOST.listed) this.breaches.push({ breach, key, at, detail });
  }
}

/** Whether nothing says that there was an object before this state of it. */
function isFirstOf({ lease, map }: State, { settings }: Folder): boolean {
  // In a new epoch the first version leaps (rule 12).
  const isNew = lease?.kind === 'held' && lease.epoch !== undefined && lease.history === undefined;
  if (lease) return isNew || versionOf(lease) < 2;
  if (!map) return true;
  // The first map of a series is the first one of all, unless there was one in an earlier series (T10).
  const floors = settings.flatMap(({ shards }) => (shards ? [shards] : []));
  return (
    floors.some(({ floor = 0 }) => floor + 1 === map.epoch) &&
    !floors.some(({ floor = 0, created }) => created && floor + 1 < map.epoch)
  );
}

const epochOf = (state: LeaseState) => (state.kind === 'vacant' ? undefined : state.epoch);

function textOf(state: LeaseState): string {
  if (state.kind !== 'held') return `${state.kind}, version ${versionOf(state)}`;
  return `held by ${state.taskId}, version ${state.version}, renewal ${state.renewal}`;
}
