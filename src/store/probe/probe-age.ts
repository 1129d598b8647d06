import type { Interval } from '../lease-store.js';
import { checked, type ProbeCheck } from './probe-report.js';
import type { ProbeSession, WrittenObject } from './probe-session.js';

/** What the clocks of two machines, and rounding, may differ by without harm, in milliseconds. The grace period is larger. */
const TOLERANCE_MS = 100;

/** How often a listing is asked for that does not show what it should, and the pause between two of them, in milliseconds. */
const LISTINGS = { max: 4, pauseMs: 1_000 } as const;

/** A listing has to show what was written before it was asked for, if not at once: what leases rest on is read. */
export async function checkListing(session: ProbeSession, object: WrittenObject): Promise<ProbeCheck> {
  const look = async () => (await session.list()).objects.find(({ key }) => key === object.key);
  let row = await look();
  for (let listing = 1; row === undefined && listing < LISTINGS.max; listing += 1) {
    await session.clock.sleep(LISTINGS.pauseMs, session.signal);
    row = await look();
  }
  if (row === undefined) return checked('listing', 'fault', 'a listing does not show an object that was written before');
  if (row.etag !== object.etag) return checked('listing', 'warning', 'a listing gives another etag than the write did');
  const size = Buffer.byteLength(object.body);
  if (row.size !== size) return checked('listing', 'fault', `a listing gives ${row.size} bytes for an object of ${size}`);
  return checked('listing', 'ok');
}

/** How long an object whose age is told too low is watched at most until the age grows, and the pause between two looks, in milliseconds. */
const GROWTH = { withinMs: 6_000, pauseMs: 500 } as const;

/**
 * The age that the store tells must not be above the true one, and has to grow. One that is too low does no harm: servers that make their `Date`
 * header every second or two tell such ages, and leases are then taken over that much later.
 */
export async function checkAge(session: ProbeSession, object: WrittenObject, watchMs: number): Promise<ProbeCheck> {
  const first = await look(session, object);
  if (first.fault !== undefined) return checked('age', 'fault', first.fault);
  if (watchMs <= 0) return lateness(first);
  const begun = session.clock.monotonic();
  const watchedMs = begun - object.wroteBetween[1];
  await session.clock.sleep(Math.max(0, watchMs - watchedMs), session.signal);
  let last = await look(session, object);
  while (last.fault === undefined && last.lateMs > 0 && last.age.max <= first.age.max) {
    if (session.clock.monotonic() - begun >= GROWTH.withinMs) {
      return checked(
        'age',
        'fault',
        `makes an object of ${Math.round(last.trueMs)} ms only ${last.told} old, and no older with time: leases would never expire`,
      );
    }
    await session.clock.sleep(GROWTH.pauseMs, session.signal);
    last = await look(session, object);
  }
  return last.fault === undefined ? lateness(last) : checked('age', 'fault', last.fault);
}

function lateness({ lateMs, trueMs, told }: Look): ProbeCheck {
  if (lateMs <= 0) return checked('age', 'ok');
  const detail = `makes an object of ${Math.round(trueMs)} ms only ${told} old: leases are taken over so much later, which is safe (on S3: its Date header is late)`;
  return checked('age', 'warning', detail);
}

interface Look {
  readonly age: Interval;
  /** The age, in words. */
  readonly told: string;
  /** The least that the true age can be. */
  readonly trueMs: number;
  /** By how much the age is told too low; not above 0 where it is not. */
  readonly lateMs: number;
  readonly fault?: string;
}

async function look(session: ProbeSession, { key, wroteBetween }: WrittenObject): Promise<Look> {
  const asked = session.clock.monotonic();
  const object = await session.read(key);
  const answered = session.clock.monotonic();
  const oldest = answered - wroteBetween[0];
  const trueMs = asked - wroteBetween[1];
  const age = object?.age ?? { min: 0, max: 0 };
  const told = `${Math.round(age.min)} to ${Math.round(age.max)} ms`;
  const seen = { age, told, trueMs, lateMs: trueMs - TOLERANCE_MS - age.max };
  if (object === undefined) return { ...seen, fault: 'an object that was written is not there' };
  if (age.max === Number.POSITIVE_INFINITY) {
    return {
      ...seen,
      fault:
        'tells no age of an object just written (on S3: no usable Date and Last-Modified in its replies): no lease would ever be seen to expire',
    };
  }
  if (age.min > oldest + TOLERANCE_MS) {
    return { ...seen, fault: `makes an object of ${Math.round(oldest)} ms ${told} old: leases would be taken from their holders` };
  }
  return seen;
}
