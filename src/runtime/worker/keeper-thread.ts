import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { sleepUntil } from '../../base/sleep-until.js';
import { systemClock, systemRandom } from '../../base/system.js';
import { acquireLease } from '../../lease/acquire/acquire-lease.js';
import { type Lease, type LeaseEvent, type LeaseLostError, leavesTime } from '../../lease/model/lease.js';
import type { LeaseStore } from '../../store/lease-store.js';
import { openedStore } from '../opened-store.js';
import { cloneable, type FromWorker, type ToWorker, toWire, type WorkerSettings } from './messages.js';
import { SharedTenure } from './shared-tenure.js';

/**
 * How long the main thread has to act on a loss where another task may hold the id already, in milliseconds:
 * a message has to reach it.
 */
const TAKEN_TIMEOUT_MS = 100;
/**
 * How long before the deadline a main thread that is still there is killed, in milliseconds. One that can act
 * has exited before.
 */
const KILL_MARGIN_MS = 30;

/**
 * The keeper in a thread of its own: it acquires and renews while the main thread is free to block. What the
 * main thread has to know at any moment stands in shared memory, where it finds it without having to receive
 * a message.
 */
class KeeperThread {
  readonly #shared: SharedTenure;
  readonly #stopWaiting = new AbortController();
  /**
   * Aborts when the main thread asks for the release, and so says that its work has ended: it is not to be
   * killed then.
   */
  readonly #workEnded = new AbortController();
  #store: LeaseStore | undefined;
  #lease: Lease | undefined;
  /**
   * True once the main thread may be making ids: from then on it has to say that it has gone over to a wider
   * width.
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
      case 'prepare':
        this.#makesIds = true;
        void this.#prepare();
        break;
      case 'adopted':
        // How far the narrower ids went; no more of them come.
        this.#lease?.tenureTime?.stamp(this.#shared.stampedUntil);
        // An answer that was overtaken by a still wider width says nothing about that.
        if (message.idWidth >= (this.#lease?.tenureTime?.idWidth ?? 0)) this.#adopted();
        break;
      case 'release':
        this.#workEnded.abort();
        this.#shared.end();
        // The main thread had stopped making ids when it said so.
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
   * Resolves when the main thread makes no narrower ids any more: never, while it is blocked, for it may be
   * making some just now.
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
    // The main thread is blocked, for it would have exited by now. A signal ends it, where process.exit() in
    // a thread would not.
    process.kill(process.pid, 'SIGKILL');
  }

  #publish(): void {
    const lease = this.#lease;
    // Once it has ended it stays so, whatever is heard of a renewal that was under way.
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
