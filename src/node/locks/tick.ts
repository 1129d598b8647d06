import {
  LeaseUnreadableError,
  parseObject,
  readInteger,
  readTime,
} from '../../core/lease/model/lease-codec.js';
import type { Interval } from '../../core/store/lease-store.js';
import type { TickReport } from '../wire/cluster-snapshot.js';
import { isSameTick, type Schedule, tenthOf } from './schedule.js';

/** The key of the last claimed tick, in the store of a lock. */
export const TICK_KEY = 'tick.json';

/** `tick.json`: the tick that was claimed last. It is changed by compare-and-swap to later ticks only (rule O2). */
export interface TickRecord extends TickReport {
  /** The token of the lock under which it was claimed; 0 where it was forgotten. */
  readonly token: number;
  /** Random, for each claim. */
  readonly nonce: string;
  /** The schedule of the task. */
  readonly schedule: string;
}

export type TickClaim = Pick<TickRecord, 'tick' | 'attempt' | 'missed'>;

/** The most missed ticks that are counted. */
export const MAX_MISSED = 1_000;
/** How near the next tick must be for a wait, at most, in milliseconds. */
const MAX_SOON_MS = 300_000;

/** The claim of a tick that no task has claimed. */
export const newClaim = (tick: number, missed = 0): TickClaim => ({ tick, attempt: 1, missed });

/**
 * What a task may claim after the last claim, and in how many milliseconds; undefined for nothing. `tick` is the
 * due tick, or the one that is about to come (rule O8).
 *
 * @param now store time (rule O1)
 * @param retry how often a tick without a success may be claimed again (rule O5)
 * @param catchUp whether the latest missed tick comes before the due one (rule O9)
 * @throws {LeaseUnreadableError} where the last claim is damaged (rule O10)
 */
export function openTick(
  last: TickRecord | undefined,
  schedule: Schedule,
  { min, max }: Interval,
  { retry, catchUp }: { readonly retry: number; readonly catchUp: boolean },
) {
  const tick = schedule.last(min);
  const next = schedule.next(min);
  const due = { tick, waitMs: 0 };
  if (last === undefined) return { ...due, claim: newClaim(tick) };
  if (last.tick > max + next - tick) throw new LeaseUnreadableError('has a tick in the future');
  if (!isSameTick(schedule, tick, last.tick)) {
    const before = schedule.last(tick - 1);
    let missed = 0;
    for (let each = before; missed < MAX_MISSED && !isSameTick(schedule, each, last.tick); missed += 1)
      each = schedule.last(each - 1);
    return { ...due, claim: catchUp && missed > 0 ? newClaim(before, missed - 1) : newClaim(tick, missed) };
  }
  const { attempt, outcome = 'failed', missed } = last;
  if (outcome === 'failed' && attempt <= retry && last.tick <= min)
    return { ...due, claim: { tick: last.tick, attempt: attempt + 1, missed } };
  // It may have come already, as far as is known.
  const isSoon = next - max <= tenthOf(schedule, min, MAX_SOON_MS);
  return isSoon ? { tick: next, waitMs: next - min, claim: newClaim(next) } : undefined;
}

/** @throws {LeaseUnreadableError} where it lacks what decisions depend on */
export function decodeTick(body: string): TickRecord {
  const fields = parseObject(body);
  readTime(fields, 'tick');
  readInteger(fields, 'attempt', 1);
  return fields as unknown as TickRecord;
}
