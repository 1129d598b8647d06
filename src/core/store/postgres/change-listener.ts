import type { Notification, PoolClient } from 'pg';
import { orAborted } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { fieldOf } from '../../base/fields.js';
import { Changes, type Heed } from '../changes.js';
import type { LeaseStore } from '../lease-store.js';

/** The pause after notifications were lost, in milliseconds. */
const LOST_MS = 1_200;

/** What a listener has of its store. */
export interface ListeningStore extends Pick<LeaseStore, 'list'> {
  readonly clock: Clock;
  /** A connection that is free, or a new one. */
  connect(signal: AbortSignal): Promise<PoolClient>;
}

/** Listens for changes, with a connection, while tasks wait for them. */
export class ChangeListener {
  readonly #changes = new Changes();
  #ending: AbortController | undefined;

  constructor(
    private readonly channel: string,
    private readonly store: ListeningStore,
  ) {}

  /** See `LeaseStore.changed`. Resolves also some time after notifications were lost. */
  async next(signal: AbortSignal, heed?: Heed): Promise<void> {
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
    let client: PoolClient | undefined;
    try {
      client = await this.store.connect(signal);
      const lost = new Promise<void>((end) => client?.on('end', end));
      client.on('notification', ({ payload = '' }: Notification) => {
        const [, size, key = ''] = /^(\d+) (.+)$/s.exec(payload) ?? [];
        this.#changes.announce({ key, size: Number(size) });
      });
      const { rows } = await orAborted(client.query('SELECT pg_backend_pid() AS pid'), signal);
      // A pooler shows another process, and passes no notification on.
      if (rows[0].pid === fieldOf(client, 'processID')) {
        await orAborted(client.query(`LISTEN "${this.channel}"`), signal);
        // What changed before the server listened.
        for (const change of (await this.store.list({ signal })).objects) this.#changes.announce(change);
        await orAborted(lost, signal);
      }
    } catch {
      // Whatever it was, polling continues.
    } finally {
      client?.release(true);
    }
    await this.store.clock.sleep(LOST_MS, signal).catch(() => undefined);
    if (signal.aborted) return;
    this.#ending = undefined;
    this.#changes.announce();
  }
}
