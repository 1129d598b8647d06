import type { Interval } from '../lease-store.js';
import { checked, type ProbeCheck } from './probe-report.js';
import type { ProbeSession, WrittenObject } from './probe-session.js';

/**
 * What the clocks of two machines, and rounding, may differ by without harm, in milliseconds. The grace
 * period is larger.
 */
const TOLERANCE_MS = 100;

/**
 * How often a listing is asked for that does not show what it should, and the pause between two of them, in
 * milliseconds.
 */
const LISTINGS = { max: 4, pauseMs: 1_000 } as const;

/**
 * A listing has to show what was written before it was asked for, if not at once: what leases rest on is
 * read.
 */
export async function checkListing(session: ProbeSession, object: WrittenObject): Promise<ProbeCheck> {
  const find = async () => (await session.list()).objects.find(({ key }) => key === object.key);
  let row = await find();
  for (let listing = 1; row === undefined && listing < LISTINGS.max; listing += 1) {
    await session.clock.sleep(LISTINGS.pauseMs, session.signal);
    row = await find();
  }
  if (row === undefined)
    return checked('listing', 'fault', 'a listing does not show an object that was written before');
  if (row.etag !== object.etag)
    return checked('listing', 'warning', 'a listing gives another etag than the write did');
  const size = Buffer.byteLength(object.body);
  if (row.size !== size)
    return checked('listing', 'fault', `a listing gives ${row.size} bytes for an object of ${size}`);
  return checked('listing', 'ok');
}

/**
 * How long an object whose age is reported too low is watched until the age grows, and the pause between two
 * reads, in milliseconds.
 */
const GROWTH = { withinMs: 6_000, pauseMs: 500 } as const;

/**
 * The age that the store reports must not be above the true one, and has to grow. One that is too low does no
 * harm: servers that make their `Date` header every second or two report such ages, and leases are then taken
 * over that much later.
 */
export async function checkAge(
  session: ProbeSession,
  object: WrittenObject,
  watchMs: number,
): Promise<ProbeCheck> {
  const { clock, signal } = session;
  const first = await readAge(session, object);
  if (first.fault === undefined && first.age.max === Number.POSITIVE_INFINITY)
    return checkObservedAge(session, object, first);
  let last = first;
  if (first.fault === undefined && watchMs > 0) {
    const begun = clock.monotonic();
    await clock.sleep(Math.max(0, watchMs - (begun - object.wroteBetween[1])), signal);
    last = await readAge(session, object);
    while (last.fault === undefined && last.lateMs > 0 && last.age.max <= first.age.max) {
      if (clock.monotonic() - begun >= GROWTH.withinMs) {
        return checked(
          'age',
          'fault',
          `makes ${last.shown}, and no older with time: leases would never expire`,
        );
      }
      await clock.sleep(GROWTH.pauseMs, signal);
      last = await readAge(session, object);
    }
  }
  if (last.fault !== undefined) return checked('age', 'fault', last.fault);
  if (last.lateMs <= 0) return checked('age', 'ok');
  return checked(
    'age',
    'warning',
    `makes ${last.shown}: leases are taken over so much later, which is safe (on S3: its Date header is late)`,
  );
}

/** How long an object is watched whose store reports no write time, in milliseconds. */
const OBSERVED_MS = 20;

/**
 * Where the process observes ages itself, they grow at once, and an etag that came back would make a new
 * state pass for an old one.
 */
async function checkObservedAge(
  session: ProbeSession,
  object: WrittenObject,
  first: ShownAge,
): Promise<ProbeCheck> {
  const { key, body, etag } = object;
  await session.clock.sleep(OBSERVED_MS, session.signal);
  const last = await readAge(session, object);
  if (last.fault !== undefined) return checked('age', 'fault', last.fault);
  if (last.age.min <= first.age.min) return checked('age', 'fault', NO_AGE);
  const other = await session.replaceSurely(key, `${body} `, etag);
  const back = other.status === 'written' ? await session.replaceSurely(key, body, other.etag) : other;
  if (back.status === 'written' && back.etag === etag) return checked('age', 'fault', REPEATED_ETAG);
  return checked(
    'age',
    'ok',
    'observed: the store has no times of writing, so an object is as old as it has been seen unchanged',
  );
}

/** What one read shows of the age of an object. */
interface ShownAge {
  readonly age: Interval;
  /** An age that is too low, in words. */
  readonly shown: string;
  /** By how much the reported age is too low, in milliseconds; not above 0 if it is not too low. */
  readonly lateMs: number;
  readonly fault: string | undefined;
}

async function readAge(session: ProbeSession, { key, wroteBetween }: WrittenObject): Promise<ShownAge> {
  const trueMin = session.clock.monotonic() - wroteBetween[1];
  const object = await session.read(key);
  const trueMax = session.clock.monotonic() - wroteBetween[0];
  const age = object?.age ?? { min: 0, max: 0 };
  const interval = `${Math.round(age.min)} to ${Math.round(age.max)} ms`;
  const shown = `an object of ${Math.round(trueMin)} ms only ${interval} old`;
  let fault: string | undefined;
  if (object === undefined) fault = 'an object that was written is not there';
  else if (age.min > trueMax + TOLERANCE_MS) {
    fault = `makes an object of ${Math.round(trueMax)} ms ${interval} old: leases would be taken from their holders`;
  }
  return { age, shown, lateMs: trueMin - TOLERANCE_MS - age.max, fault };
}

const REPEATED_ETAG =
  'gives a content that comes back its old etag, and has no times of writing: leases would be taken from their holders';
const NO_AGE =
  'tells no age of an object just written (on S3: no usable Date and Last-Modified in its replies): no lease would ever be seen to expire';
