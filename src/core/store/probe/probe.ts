import { checkArguments, checked as checkedOptions, STORE, whole } from '../../base/arguments.js';
import { explain } from '../../base/errors.js';
import { type LeaseStore, StoreError } from '../lease-store.js';
import { checkAge, checkListing } from './probe-age.js';
import {
  checkCreate,
  checkCreateOnce,
  checkRaces,
  checkReplace,
  checkReplaceAbsent,
} from './probe-conditions.js';
import { checked, type ProbeCheck, type ProbeReport } from './probe-report.js';
import { ProbeSession, type ProbeSessionOptions } from './probe-session.js';

/** Settings of {@link probeStore}. */
export interface ProbeOptions extends ProbeSessionOptions {
  /** How many writers race for one object. @default 8 */
  readonly writers?: number | undefined;
  /**
   * How many races of creates there are, and as many of replaces: the more, the surer a store is found out
   * whose conditions hold nearly always.
   * @default 12
   */
  readonly rounds?: number | undefined;
  /**
   * How long an object is watched growing old, in milliseconds: the least that such a probe takes. 0 leaves
   * this out.
   * @default 2100
   */
  readonly watchAgeMs?: number | undefined;
}

/**
 * The races of a far longer probe. With four writers each is lost as often as with eight, by half the
 * requests.
 */
export const THOROUGH = { rounds: 100, writers: 4 } as const;

/**
 * Proves that a store does conditional writes, also when several writers come at once, and that it knows the
 * age of its objects: every safety rule rests on that. Works on scratch objects `probe-….json` and removes
 * them.
 *
 * A probe can prove a fault, and make its absence likely; a store that fails only now and then may pass.
 *
 * @throws {@link StoreError} when the store cannot be reached, does not exist, denies access, or is too busy
 * to be judged
 * @throws `signal.reason`
 */
export async function probeStore(store: LeaseStore, options: ProbeOptions): Promise<ProbeReport> {
  const { signal, writers = 8, rounds = 12, watchAgeMs = 2_100, clock, random } = checkedOptions(options);
  checkArguments(
    { store, clock, random, writers, rounds },
    { store: STORE, writers: whole(1), rounds: whole(0) },
  );
  const session = new ProbeSession(store, options);
  const checks: ProbeCheck[] = [];
  try {
    const { check, object } = await checkCreate(session);
    checks.push(check);
    // Without a first object there is nothing to try the rest on.
    if (object !== undefined) {
      checks.push(await checkCreateOnce(session));
      checks.push(...(await checkReplace(session)));
      checks.push(await checkReplaceAbsent(session, object.etag));
      checks.push(await checkRaces(session, object, { writers, rounds }));
      checks.push(await checkListing(session, object));
      checks.push(await checkAge(session, object, watchAgeMs));
    }
  } catch (error) {
    if (!isAway(error, signal)) await session.cleanUp();
    throw error;
  }
  checks.push(cleanUpCheck(await session.cleanUp()));
  const { requests, clockOffsetMs } = session;
  return {
    ok: checks.every(({ status }) => status !== 'fault'),
    checks,
    latencyMs: median(session.latenciesMs),
    requests,
    clockOffsetMs,
  };
}

/** How many scratch objects that are left are named. */
const NAMED = 20;

/** True when an attempt to remove anything would only wait for the same failure. */
function isAway(error: unknown, signal: AbortSignal | undefined): boolean {
  if (!(error instanceof StoreError)) return false;
  return error.fault === 'missing' || (error.fault === 'unreachable' && signal?.aborted !== true);
}

function cleanUpCheck(left: readonly { key: string; error: unknown }[]): ProbeCheck {
  const [first] = left;
  if (first === undefined) return checked('clean-up', 'ok');
  const named = left.slice(0, NAMED).map(({ key }) => key);
  const keys = `${named.join(', ')}${left.length > NAMED ? `, and ${left.length - NAMED} more probe-*` : ''}`;
  return checked(
    'clean-up',
    'warning',
    `${left.length} scratch objects are left, remove them by hand (${keys}): ${explain(first.error)}`,
  );
}

/** The middle one of the values; 0 of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
