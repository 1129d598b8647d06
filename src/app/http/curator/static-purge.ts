import type { Clock } from '../../../core/base/clock.js';
import { concurrently } from '../../../core/base/concurrently.js';
import { explain } from '../../../core/base/errors.js';
import type { Znode, ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { isFault, ZooKeeperError } from '../../../zookeeper/client/zookeeper-error.js';
import { decodeInstance } from '../../../zookeeper/services/instance/instance-codec.js';
import { jsonPayload } from '../../../zookeeper/services/instance/payload-codec.js';

export interface StaticPurgeOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  /** The parent of all services. */
  readonly basePath: string;
  /** Time without a write after which a STATIC instance is unregistered, in milliseconds. */
  readonly timeoutMs: number;
  /** Called for every instance that was unregistered. Must not throw and must not block. */
  readonly onPurged?: ((name: string, id: string) => void) | undefined;
  /**
   * Called once for what cannot be read, until that has succeeded or fails in another way; it is tried again.
   * Must not throw and must not block.
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
  readAt: number;
}

/** How many instances are read at a time: these readings are in no hurry. */
const READS_AT_ONCE = 8;
/** Maximum number of failures that are remembered, and reported: others' znodes must not fill the log. */
const MAX_REPORTS = 1_000;
/** The bounds of the pause between two scans, in milliseconds: a tenth of the timeout. */
const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 60_000;
/** The longest pause after a scan that failed as a whole, unless the usual one is longer. */
const MAX_FAILURE_PAUSE_MS = 5_000;

/**
 * Unregisters the STATIC instances that are not written again in time: a registration over HTTP has no
 * session that could end with its client.
 *
 * The time counts on this server's monotonic clock, from when it first saw what is written there now: a
 * server that has just started purges nothing for that long. Time in which the instance could not be read
 * hardly counts: it could not have been written then either. So an instance stays a little longer than
 * `timeoutMs`, never shorter; one that is written again in the very moment of its removal may go, until it is
 * written the next time.
 */
export class StaticPurge {
  readonly #seen = new Map<string, Seen>();
  /** What has been reported and fails still, with the way in which it does, by paths. */
  readonly #failing = new Map<string, string>();
  readonly #closed = new AbortController();
  readonly #pauseMs: number;
  readonly #ended: Promise<void>;

  constructor(private readonly options: StaticPurgeOptions) {
    this.#pauseMs = Math.max(MIN_PAUSE_MS, Math.min(MAX_PAUSE_MS, options.timeoutMs / 10));
    this.#ended = this.#run(this.#closed.signal);
  }

  /** Unregisters nothing any more. Resolves when nothing is under way; idempotent. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#ended;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, basePath } = this.options;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#scan(signal);
        failures = 0;
        this.#failing.delete(basePath);
      } catch (error) {
        failures += 1;
        if (!signal.aborted) this.#report(basePath, error);
      }
      const pauseMs = Math.min(
        this.#pauseMs * 2 ** Math.min(failures, 10),
        Math.max(this.#pauseMs, MAX_FAILURE_PAUSE_MS),
      );
      await clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  async #scan(signal: AbortSignal): Promise<void> {
    const { zookeeper, basePath } = this.options;
    const listed = new Set<string>([basePath]);
    for (const name of (await zookeeper.children(basePath, { signal })) ?? []) {
      const service = `${basePath === '/' ? '' : basePath}/${name}`;
      listed.add(service);
      const ids = await this.#attempt(service, () => zookeeper.children(service, { signal }));
      const check = async (id: string) => {
        listed.add(`${service}/${id}`);
        await this.#attempt(`${service}/${id}`, () => this.#check(`${service}/${id}`, name, id, signal));
      };
      await concurrently(ids ?? [], READS_AT_ONCE, check, signal);
    }
    // The instances of a service that could not be listed may still exist.
    const isGone = (path: string) =>
      !listed.has(path) && !this.#failing.has(path.slice(0, path.lastIndexOf('/')));
    for (const known of [this.#failing, this.#seen])
      for (const path of known.keys()) if (isGone(path)) known.delete(path);
  }

  /**
   * What fails for one service or instance must not keep the others. Without a connection there is no sense
   * in asking for them.
   */
  async #attempt<T>(path: string, act: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await act();
      this.#failing.delete(path);
      return result;
    } catch (error) {
      if (this.#closed.signal.aborted || this.options.zookeeper.state.status !== 'connected') throw error;
      this.#report(path, error);
      return undefined;
    }
  }

  #report(path: string, failure: unknown): void {
    const known = this.#failing.get(path);
    const way = failure instanceof ZooKeeperError ? failure.fault : explain(failure);
    if (known === way || (known === undefined && this.#failing.size >= MAX_REPORTS)) return;
    this.#failing.set(path, way);
    this.options.onFailure?.(failure);
  }

  /**
   * Unregisters an instance whose time is over. One that may not be read, or is just being written, is left
   * alone.
   */
  async #check(path: string, name: string, id: string, signal: AbortSignal): Promise<void> {
    const { zookeeper, clock, timeoutMs, onPurged } = this.options;
    try {
      const znode = await zookeeper.read(path, { signal });
      const now = clock.monotonic();
      const seen = this.#seen.get(path);
      if (znode === undefined || !isStatic(znode, name, id)) this.#seen.delete(path);
      else if (seen?.written !== znode.stat.modifiedZxid) {
        this.#seen.set(path, { written: znode.stat.modifiedZxid, unchangedMs: 0, readAt: now });
      } else {
        seen.unchangedMs += Math.min(now - seen.readAt, 2 * this.#pauseMs);
        seen.readAt = now;
        if (seen.unchangedMs >= timeoutMs && (await zookeeper.remove(path, znode.stat.version, { signal })))
          onPurged?.(name, id);
      }
    } catch (error) {
      if (!isFault(error, 'no-auth', 'bad-version', 'not-empty')) throw error;
    }
  }
}

/** One with a session ends with it, whatever it says. */
function isStatic({ data, stat }: Znode, name: string, id: string): boolean {
  if (stat.owner !== undefined) return false;
  const decoded = decodeInstance({ name, id, data }, jsonPayload);
  return decoded.status === 'readable' && decoded.instance.serviceType === 'STATIC';
}
