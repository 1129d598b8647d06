import type { Clock } from '../../base/clock.js';
import { concurrently } from '../../base/concurrently.js';
import { NodeLeaseError } from '../../base/errors.js';
import { decodeInstance } from '../../services/instance-codec.js';
import { jsonPayload } from '../../services/payload-codec.js';
import { instancePath, servicePath } from '../../services/service-path.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';

export interface StaticPurgeOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  /** The parent of all services. */
  readonly basePath: string;
  /** Time without a write after which a STATIC instance is unregistered, in milliseconds. */
  readonly timeoutMs: number;
  /** Told of every instance that was unregistered. Must not throw and must not block. */
  readonly onPurged?: ((name: string, id: string) => void) | undefined;
  /**
   * Told when the services, or one of them, could not be looked through; it is tried again. Once until that has succeeded, or fails in another
   * way. Must not throw and must not block.
   */
  readonly onFailure?: ((failure: unknown) => void) | undefined;
}

/** What is known of a STATIC instance. */
interface Seen {
  /** The transaction that wrote it last. */
  readonly written: bigint;
  /** For how long it has been seen to be the same, in milliseconds. */
  unchangedMs: number;
  /** When it was read last, on the monotonic clock. */
  lookedAt: number;
}

/** How many instances are read at a time: these readings are in no hurry. */
const READS_AT_ONCE = 8;
/** Maximum number of failures that are remembered, and told: others' znodes must not fill the log. */
const MAX_REPORTS = 1_000;
const MOST_BETWEEN_MS = 60_000;
const LEAST_BETWEEN_MS = 100;
/** The longest pause after a scan that failed as a whole, unless the usual one is longer. */
const MOST_AFTER_FAILURE_MS = 5_000;

/**
 * Unregisters the STATIC instances that are not written again in time: a registration over HTTP has no session that could end with its client.
 *
 * The time is this server's own, on its monotonic clock: it counts from when the server first saw what is written there now, whatever
 * any wall clock says, so a server that has just started purges nothing for that long. Time in which the instance could not be read, as
 * while ZooKeeper was away or this process stood still, hardly counts: it could not have been written then either. So an instance stays a
 * little longer than `timeoutMs`, never shorter; one that is written again in the very moment of its removal may go, until it is written the next time.
 */
export class StaticPurge {
  readonly #seen = new Map<string, Seen>();
  /** What has been reported and fails still, with the way in which it does, by paths. */
  readonly #failing = new Map<string, string>();
  readonly #closed = new AbortController();
  readonly #betweenMs: number;
  readonly #ended: Promise<void>;

  constructor(private readonly options: StaticPurgeOptions) {
    this.#betweenMs = Math.max(LEAST_BETWEEN_MS, Math.min(MOST_BETWEEN_MS, options.timeoutMs / 10));
    this.#ended = this.#run();
  }

  /** Unregisters nothing any more. Resolves when nothing is under way; idempotent. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { clock, basePath } = this.options;
    const { signal } = this.#closed;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#look(signal);
        failures = 0;
        this.#failing.delete(basePath);
      } catch (error) {
        failures += 1;
        if (!signal.aborted) this.#report(basePath, error);
      }
      const pauseMs = Math.min(this.#betweenMs * 2 ** Math.min(failures, 10), Math.max(this.#betweenMs, MOST_AFTER_FAILURE_MS));
      await clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  #report(path: string, failure: unknown): void {
    const known = this.#failing.get(path);
    const way = failure instanceof ZooKeeperError ? failure.fault : failure instanceof NodeLeaseError ? failure.code : 'unknown';
    if (known === way || (known === undefined && this.#failing.size >= MAX_REPORTS)) return;
    this.#failing.set(path, way);
    this.options.onFailure?.(failure);
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { zookeeper, basePath } = this.options;
    const parent = basePath === '/' ? '' : basePath;
    const found = new Set<string>();
    const looked = new Set([basePath]);
    for (const name of (await zookeeper.children(basePath, { signal })) ?? []) {
      await this.#goOnWithout(`${parent}/${name}`, looked, async (service) => {
        const ids = await zookeeper.children(servicePath(basePath, name), { signal });
        await concurrently(ids ?? [], READS_AT_ONCE, async (id) => {
          if (signal.aborted) return;
          await this.#goOnWithout(`${service}/${id}`, looked, async (path) => {
            if (await this.#isWatched(instancePath(basePath, name, id), name, id, signal)) found.add(path);
          });
        });
      });
    }
    for (const path of this.#failing.keys()) if (!looked.has(path)) this.#failing.delete(path);
    // What could not be read may be there still.
    const isUnknown = (path: string) => this.#failing.has(path) || this.#failing.has(path.slice(0, path.lastIndexOf('/')));
    for (const path of this.#seen.keys()) if (!found.has(path) && !isUnknown(path)) this.#seen.delete(path);
  }

  /** Whatever is the matter with one service or instance must not keep the others. Without a connection there is no sense in asking for them. */
  async #goOnWithout(path: string, looked: Set<string>, act: (path: string) => Promise<void>): Promise<void> {
    looked.add(path);
    try {
      await act(path);
      this.#failing.delete(path);
    } catch (error) {
      if (this.#closed.signal.aborted || this.options.zookeeper.state.status !== 'connected') throw error;
      this.#report(path, error);
    }
  }

  /** Whether there is a STATIC instance, to be read again. */
  async #isWatched(path: string, name: string, id: string, signal: AbortSignal): Promise<boolean> {
    const { zookeeper, clock, timeoutMs, onPurged } = this.options;
    const { written, version } = (await this.#read(path, name, id, signal)) ?? {};
    if (written === undefined) return false;
    const now = clock.monotonic();
    const seen = this.#seen.get(path);
    if (seen?.written !== written) {
      this.#seen.set(path, { written, unchangedMs: 0, lookedAt: now });
      return true;
    }
    seen.unchangedMs += Math.min(now - seen.lookedAt, 2 * this.#betweenMs);
    seen.lookedAt = now;
    if (seen.unchangedMs < timeoutMs) return true;
    try {
      if (await zookeeper.remove(path, version, { signal })) onPurged?.(name, id);
    } catch (error) {
      if (!isFault(error, 'bad-version', 'not-empty', 'no-auth')) throw error;
    }
    return true;
  }

  /** Undefined for what is no STATIC instance. One that may not be read is none of this server's business. */
  async #read(path: string, name: string, id: string, signal: AbortSignal): Promise<{ written: bigint; version: number } | undefined> {
    const znode = await this.options.zookeeper.read(path, { signal }).catch((error: unknown) => {
      if (isFault(error, 'no-auth')) return undefined;
      throw error;
    });
    if (znode === undefined || znode.stat.owner !== undefined) return undefined;
    const decoded = decodeInstance({ name, id, data: znode.data }, jsonPayload);
    if (decoded.status === 'unreadable' || decoded.instance.serviceType !== 'STATIC') return undefined;
    return { written: znode.stat.modifiedZxid, version: znode.stat.version };
  }
}
