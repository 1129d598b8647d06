import { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.js';
import { type Lease, type LeaseListener, LeaseLostError } from '../lease/lease.js';
import { type FromWorker, fromWire, type ToWorker, type WorkerSettings } from './messages.js';

/** A lease that a worker thread keeps: validity is read from shared memory, everything else goes by messages. */
class WorkerLease implements Lease {
  readonly #lost = new AbortController();
  readonly #shared: BigInt64Array;
  #state: 'held' | 'lost' | 'released' = 'held';
  #releasing: Promise<void> | undefined;
  #ended: () => void = () => undefined;
  #threadGone = false;

  constructor(
    readonly id: number,
    readonly version: number,
    readonly taskId: string,
    private readonly thread: Worker,
    private readonly clock: Clock,
    private readonly emit: LeaseListener,
    shared: SharedArrayBuffer,
  ) {
    this.#shared = new BigInt64Array(shared);
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get deadline(): number {
    return Number(Atomics.load(this.#shared, 0)) / 1000;
  }

  isValid(): boolean {
    return this.#state === 'held' && this.clock.monotonic() < this.deadline;
  }

  setKnownNodes(versions: Readonly<Record<number, number>>): void {
    this.#send({ type: 'known-nodes', versions: { ...versions } });
  }

  release(): Promise<void> {
    this.#releasing ??= new Promise<void>((resolve) => {
      if (this.#threadGone) return resolve();
      this.#ended = resolve;
      if (this.#state === 'held') this.#state = 'released';
      this.#send({ type: 'release' });
    });
    return this.#releasing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  receive(message: FromWorker): void {
    if (message.type === 'event') this.emit(message.event);
    else if (message.type === 'lost') this.#lose(fromWire(message.error) as LeaseLostError);
    else if (message.type === 'released') this.#ended();
  }

  /** The thread is gone: nobody renews any more. */
  threadEnded(cause?: unknown): void {
    this.#threadGone = true;
    this.#ended();
    const deadline = this.deadline;
    if (this.#state !== 'held') return;
    this.#lose(new LeaseLostError(this.id, this.version, 'unreachable', deadline, 'the thread that renews it has ended', cause));
  }

  #lose(error: LeaseLostError): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    // Nothing is left to renew: the thread is no reason for the process to stay.
    this.thread.unref();
    this.#lost.abort(error);
    this.emit({ type: 'lost', error });
  }

  #send(message: ToWorker): void {
    this.thread.postMessage(message);
  }
}

/** What a lease in a worker thread needs. */
export interface WorkerLeaseOptions {
  readonly settings: Omit<WorkerSettings, 'deadline'>;
  readonly clock: Clock;
  readonly emit: LeaseListener;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Acquires a node id in a worker thread and keeps it there, so that a blocked main thread does not lose it.
 *
 * @throws what `acquireLease` throws
 */
export async function acquireInWorker(options: WorkerLeaseOptions): Promise<Lease> {
  const { settings, clock, emit, signal } = options;
  signal?.throwIfAborted();
  const deadline = new SharedArrayBuffer(8);
  const thread = new Worker(new URL('./keeper-thread.js', import.meta.url), {
    workerData: { ...settings, deadline } satisfies WorkerSettings,
  });
  let lease: WorkerLease | undefined;
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<Lease>((resolve, reject) => {
      onAbort = () => thread.postMessage({ type: 'abort' } satisfies ToWorker);
      signal?.addEventListener('abort', onAbort, { once: true });
      thread.on('message', (message: FromWorker) => {
        if (message.type === 'acquired') {
          lease = new WorkerLease(message.id, message.version, settings.taskId, thread, clock, emit, deadline);
          resolve(lease);
        } else if (message.type === 'failed') {
          reject(signal?.aborted ? signal.reason : fromWire(message.error));
        } else if (lease === undefined && message.type === 'event') {
          emit(message.event);
        } else {
          lease?.receive(message);
        }
      });
      thread.on('error', (error) => {
        reject(error);
        lease?.threadEnded(error);
      });
      thread.on('exit', () => {
        reject(new Error('the thread that acquires the lease has ended'));
        lease?.threadEnded();
      });
    });
  } finally {
    if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort);
  }
}
