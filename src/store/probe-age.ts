import type { Interval } from './lease-store.js';
import { checked, type ProbeCheck } from './probe-report.js';
import type { ProbeSession, WrittenObject } from './probe-session.js';

/** What the clocks of two machines, and rounding, may differ by without harm, in milliseconds. The grace period is larger. */
const TOLERANCE_MS = 100;

/** How often a listing is asked for that does not show what it should, and the pause between two of them, in milliseconds. */
const LISTINGS = { most: 4, pauseMs: 1_000 } as const;

/** A listing has to show what was written before it was asked for, if not at once: what leases rest on is read. */
export async function checkListing(session: ProbeSession, object: WrittenObject): Promise<ProbeCheck> {
  const look = async () => (await session.list()).objects.find(({ key }) => key === object.key);
  let row = await look();
  for (let listing = 1; row === undefined && listing < LISTINGS.most; listing += 1) {
    await session.clock.sleep(LISTINGS.pauseMs, session.signal);
    row = await look();
  }
  if (row === undefined) return checked('listing', 'fault', 'a listing does not show an object that was written before');
  if (row.etag !== object.etag) return checked('listing', 'warning', 'a listing gives another etag than the write did');
  const size = Buffer.byteLength(object.body);
  if (row.size !== size) return checked('listing', 'fault', `a listing gives ${row.size} bytes for an object of ${size}`);
  return checked('listing', 'ok');
}

/** The age that the store tells has to contain the true one, and to grow with it. */
export async function checkAge(session: ProbeSession, object: WrittenObject, watchMs: number): Promise<ProbeCheck> {
  const young = await look(session, object);
  if (young.fault !== undefined) return checked('age', 'fault', young.fault);
  if (watchMs <= 0) return checked('age', 'ok');
  const watchedMs = session.clock.monotonic() - object.wroteBetween[1];
  await session.clock.sleep(Math.max(0, watchMs - watchedMs), session.signal);
  const old = await look(session, object);
  return old.fault === undefined ? checked('age', 'ok') : checked('age', 'fault', old.fault);
}

async function look(session: ProbeSession, { key, wroteBetween }: WrittenObject): Promise<{ age: Interval; fault?: string }> {
  const asked = session.clock.monotonic();
  const object = await session.read(key);
  const answered = session.clock.monotonic();
  if (object === undefined) return { age: { min: 0, max: 0 }, fault: 'an object that was written is not there' };
  const { age } = object;
  const oldest = answered - wroteBetween[0];
  const youngest = asked - wroteBetween[1];
  const told = `${Math.round(age.min)} to ${Math.round(age.max)} ms`;
  if (age.max === Number.POSITIVE_INFINITY) {
    return {
      age,
      fault:
        'tells no age of an object just written (on S3: no usable Date and Last-Modified in its replies): no lease would ever be seen to expire',
    };
  }
  if (age.min > oldest + TOLERANCE_MS) {
    return { age, fault: `makes an object of ${Math.round(oldest)} ms ${told} old: leases would be taken from their holders` };
  }
  if (age.max < youngest - TOLERANCE_MS) {
    return { age, fault: `makes an object of ${Math.round(youngest)} ms only ${told} old: leases would expire late or never` };
  }
  return { age };
}
