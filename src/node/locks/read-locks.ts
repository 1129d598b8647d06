import { concurrently, REQUESTS_AT_ONCE } from '../../core/base/concurrently.js';
import { explain } from '../../core/base/errors.js';
import { nodeStatus, readingOf } from '../../core/lease/operate/inspect.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../../core/lease/session/store-session.js';
import type { ListedObject, StoredObject } from '../../core/store/lease-store.js';
import { LOCK_NAME } from '../../core/store/lock-url.js';
import type { LockReport } from '../wire/cluster-snapshot.js';
import { decodeTick, TICK_KEY } from './tick.js';

/** Behind the name of a lock: its lease, and its last tick, in the store of all locks. */
const LEASE = '/0.json';
const TICK = `/${TICK_KEY}`;

/** The names of all locks. @param session with the store of the locks @throws {StoreError} */
export async function lockNames(session: StoreSession, signal?: AbortSignal): Promise<readonly string[]> {
  return (await objectsIn(session, signal)).filter(isLease).map(({ key }) => key.slice(0, -LEASE.length));
}

const isLease = ({ key }: ListedObject) => key.endsWith(LEASE);

/** Leases and ticks. */
async function objectsIn(session: StoreSession, signal: AbortSignal | undefined) {
  const timeoutMs = Math.max(UNHURRIED_LISTING_MS, session.listTimeoutMs);
  const { objects } = await session.list({ signal, timeoutMs, folders: true });
  return objects.filter(({ key }) => {
    const at = key.indexOf('/');
    return LOCK_NAME.test(key.slice(0, at)) && [LEASE, TICK].includes(key.slice(at));
  });
}

/**
 * Returns how to read the locks, again and again: by a LIST, and a GET for each lock that was written since.
 *
 * @param session with the store of the locks, `STORE/locks`
 */
export function locksReader(session: StoreSession) {
  let known = new Map<string, StoredObject | undefined>();
  /** @throws {StoreError} @throws `signal.reason` */
  return async (signal?: AbortSignal): Promise<readonly LockReport[]> => {
    const rows = await objectsIn(session, signal);
    const read = await concurrently(
      rows,
      REQUESTS_AT_ONCE,
      async ({ key, etag }, own) => {
        const before = known.get(key);
        return [key, before?.etag === etag ? before : await session.read(key, { signal: own })] as const;
      },
      signal,
    );
    known = new Map(read);
    return rows.filter(isLease).map(({ key, etag, age }) => {
      const name = key.slice(0, -LEASE.length);
      const object = known.get(key);
      const lease = nodeStatus(0, readingOf(object), object?.etag === etag ? age : object?.age, {
        graceMs: 0,
        bootstrapped: true,
        generation: 0,
      });
      const {
        state,
        version: token,
        taskId: holder = null,
        acquiredAt: since = null,
        problem = null,
      } = lease;
      const until = holder === null ? null : (lease.timestamp ?? null);
      const tick = tickReport(known.get(name + TICK));
      return {
        ...{ name, state, holder, token, since, until, once: null, ...tick },
        problem: problem ?? tick.problem ?? null,
      };
    });
  };
}

/** Nothing where there is none. */
function tickReport(object: StoredObject | undefined): Partial<LockReport> {
  try {
    return object ? { once: decodeTick(object.body) } : {};
  } catch (error) {
    return { problem: explain(error) };
  }
}
