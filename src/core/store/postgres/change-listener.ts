import { orAborted } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { Changes, type Heed } from '../changes.js';
import type { Listing } from '../lease-store.js';
import type { PostgresClient } from './postgres-server.js';

/** What a listener has of its store. */
export interface ListenerOptions {
  readonly channel: string;
  readonly clock: Clock;
  connect(signal: AbortSignal): Promise<PostgresClient>;
  list(signal: AbortSignal): Promise<Listing>;
}

/** Those of two statements. */
type Results = readonly [unknown, { readonly rows: readonly [{ readonly pid: number }] }];

/** The pause after notifications were lost, in milliseconds. */
const LOST_MS = 1_200;

/** Listens for changes, with a connection, while tasks wait for them. */
export class ChangeListener {
  readonly #changes = new Changes();
  #ending: AbortController | undefined;

  constructor(private readonly options: ListenerOptions) {}

  /** See `LeaseStore.changed`. Resolves also some time after notifications were lost. */
  async next(signal: AbortSignal, heed?: Heed): Promise<void> {
    signal.throwIfAborted();
    if (this.#ending === undefined) {
      this.#ending = new AbortController();
      void this.#listen(this.#ending.signal);
    }
    try {
      await this.#changes.next(signal, heed);
    } finally {
      if (this.#changes.waiting === 0) this.end();
    }
  }

  /** Gives the connection up. Idempotent. */
  end(): void {
    this.#ending?.abort();
    this.#ending = undefined;
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const { connect, list, channel, clock } = this.options;
    let client: PostgresClient | undefined;
    try {
      client = await connect(signal);
      const { processID } = client;
      const lost = new Promise((end) => client?.on('end', end));
      client.on('notification', ({ payload = '' }) => {
        const [, size, key = ''] = /^(\d+) (.+)$/s.exec(payload) ?? [];
        this.#changes.announce({ key, size: Number(size) });
      });
      const listening = client.query(`LISTEN "${channel}"; SELECT pg_backend_pid() AS pid`);
      const [, { rows }] = (await orAborted(listening, signal)) as unknown as Results;
      // A pooler shows another process, and passes no notification on.
      if (rows[0].pid === processID) {
        // What changed before the server listened.
        for (const { key, size } of (await list(signal)).objects) this.#changes.announce({ key, size });
        await orAborted(lost, signal);
      }
    } catch {
      // Whatever it was, polling continues.
    } finally {
      client?.release(true);
    }
    await clock.sleep(LOST_MS, signal).catch(() => undefined);
    if (signal.aborted) return;
    this.#ending = undefined;
    this.#changes.announce();
  }
}
