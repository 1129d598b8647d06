import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { sleepUntil } from '../../../core/base/sleep-until.js';
import { systemClock, systemRandom } from '../../../core/base/system.js';
import { acquireLease } from '../../../core/lease/acquire/acquire-lease.js';
import {
  type Lease,
  type LeaseEvent,
  type LeaseLostError,
  leavesTime,
} from '../../../core/lease/model/lease.js';
import type { LeaseStore } from '../../../core/store/lease-store.js';
import { openedStore } from '../opened-store.js';
import { cloneable, type FromWorker, type ToWorker, toWire, type WorkerSettings } from './messages.js';
import { SharedTenure } from './shared-tenure.js';

/**
 * How long the main thread may take to act on a loss when another task may hold the id already, in
 * milliseconds. A message must reach it first.
 */
const TAKEN_TIMEOUT_MS = 100;
/**
 * How long before the deadline a main thread that still runs is killed, in milliseconds. A thread that can
 * act has exited before.
 */
const KILL_MARGIN_MS = 30;

/**
 * The keeper in a separate thread: it acquires and renews while the main thread may block. The facts that the
 * main thread must know at any moment are in shared memory, so that it need not receive a message.
 */
class KeeperThread {
  readonly #shared: SharedTenure;
  readonly #stopWaiting = new AbortController();
  /** Aborts when the main thread's work has ended: it must not be killed any more. */
  readonly #workEnded = new AbortController();
  #store: LeaseStore | undefined;
  #lease: Lease | undefined;
  /**
   * True once the main thread may make ids: from then on it must confirm that it has adopted a wider width.
   */
  #makesIds = false;
  #adopted: () => void = () => undefined;

  constructor(
    private readonly port: MessagePort,
    private readonly settings: WorkerSettings,
  ) {
    this.#shared = new SharedTenure(settings.tenure);
    port.on('message', (message: ToWorker) => this.#receive(message));
  }

  async run(): Promise<void> {
    const system = { clock: systemClock, random: systemRandom };
    try {
      const store = await openedStore(this.settings, system);
      this.#store = store;
      const { signal } = this.#stopWaiting;
      const lease = await acquireLease({
        ...this.settings,
        ...system,
        store,
        signal,
        onEvent: (event) => this.#onEvent(event),
      });
      this.#lease = lease;
      this.#publish();
      lease.tenureTime?.onWidth((idWidth) => this.#onWidth(idWidth));
      this.#post({
        type: 'acquired',
        id: lease.id,
        version: lease.version,
        previous: lease.previous,
        idWidth: lease.tenureTime?.idWidth ?? 0,
      });
    } catch (error) {
      await this.#finish({ type: 'failed', error: toWire(error) });
    }
  }

  #receive(message: ToWorker): void {
    switch (message.type) {
      case 'abort':
        this.#stopWaiting.abort(new Error('aborted by the caller'));
        break;
      case 'known-nodes':
        this.#lease?.setKnownNodes(message.versions);
        break;
      case 'mark':
        void this.#lease?.home
          ?.mark(message.mark)
          .then(() => this.#post({ type: 'marked', number: message.number }));
        break;
      case 'prepare':
        this.#makesIds = true;
        void this.#prepare();
        break;
      case 'adopted':
        // The last timestamp of the narrower ids. No more of them are made.
        this.#lease?.tenureTime?.stamp(this.#shared.stampedUntil);
        // An answer that was overtaken by a still wider width does not confirm that width.
        if (message.idWidth >= (this.#lease?.tenureTime?.idWidth ?? 0)) this.#adopted();
        break;
      case 'release':
        if (message.workEnded) this.#workEnded.abort();
        this.#lease?.home?.attach({ end: async () => message.workEnded });
        this.#shared.end();
        // The main thread had stopped making ids when it sent this.
        this.#lease?.tenureTime?.stamp(this.#shared.stampedUntil);
        void this.#lease?.release().then(() => this.#finish({ type: 'released' }));
    }
  }

  async #prepare(): Promise<void> {
    const time = this.#lease?.tenureTime;
    if (time === undefined) return;
    try {
      await time.prepare();
      this.#publish();
      this.#post({ type: 'prepared' });
    } catch (error) {
      this.#post({ type: 'prepared', error: toWire(error) });
    }
  }

  /**
   * Resolves when the main thread makes no narrower ids any more. It does not resolve while that thread is
   * blocked, since it may be making some.
   */
  #onWidth(idWidth: number): Promise<void> | undefined {
    this.#post({ type: 'width', idWidth });
    if (!this.#makesIds) return undefined;
    return new Promise((resolve) => {
      const earlier = this.#adopted;
      this.#adopted = () => {
        earlier();
        resolve();
      };
    });
  }

  #onEvent(event: LeaseEvent): void {
    if (event.type === 'renewed') this.#publish();
    if (event.type === 'lost') void this.#onLost(event.error);
    else this.#post({ type: 'event', event: cloneable(event) });
  }

  async #onLost(error: LeaseLostError): Promise<void> {
    this.#shared.end();
    this.#post({ type: 'lost', error: toWire(error) });
    if (!this.settings.killOnLoss) return;
    const killAt = leavesTime(error.reason)
      ? error.deadline - KILL_MARGIN_MS
      : systemClock.monotonic() + TAKEN_TIMEOUT_MS;
    try {
      await sleepUntil(systemClock, killAt, this.#workEnded.signal);
    } catch {
      return;
    }
    // The main thread is blocked, since otherwise it would have exited by now. A signal ends it, but
    // process.exit() in a thread would not.
    process.kill(process.pid, 'SIGKILL');
  }

  #publish(): void {
    const lease = this.#lease;
    // A tenure that has ended stays so, whatever the reply to a late renewal is.
    if (lease?.tenureTime === undefined || lease.tenureTime.signal.aborted) return;
    this.#shared.publish(lease.deadline, lease.tenureTime, systemClock.monotonic());
  }

  #post(message: FromWorker): void {
    this.port.postMessage(message);
  }

  async #finish(last: FromWorker): Promise<void> {
    await this.#store?.close();
    this.#post(last);
    this.port.close();
  }
}

if (parentPort === null) throw new Error('this module runs as a worker thread only');
void new KeeperThread(parentPort, workerData as WorkerSettings).run();
