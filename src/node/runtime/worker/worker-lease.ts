import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { onAbort } from '../../../core/base/abort.js';
import type { Clock, RandomSource } from '../../../core/base/clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import { afterWork, LeaseHome } from '../../../core/lease/hold/lease-home.js';
import { checkKnownNodes } from '../../../core/lease/model/known-nodes.js';
import {
  type Lease,
  type LeaseEvent,
  type LeaseListener,
  LeaseLostError,
  LeaseReleasedError,
  LeaseRetiringError,
} from '../../../core/lease/model/lease.js';
import type { LeaseMark } from '../../../core/lease/model/lease-state.js';
import {
  harmless,
  type LeaseAttributes,
  type LeaseTracer,
  type NoteAttributes,
} from '../../../core/lease/model/lease-tracer.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { type FromWorker, fromWire, type ToWorker, type WorkerSettings } from './messages.js';
import { SharedTenure, WorkerTenureTime } from './shared-tenure.js';

/** Options of {@link acquireInWorker}. */
export interface WorkerLeaseOptions {
  readonly settings: Omit<WorkerSettings, 'tenure'>;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** A session of this thread with the store, closed by the caller. */
  readonly session: () => Promise<StoreSession>;
  readonly emit: LeaseListener;
  readonly signal?: AbortSignal | undefined;
  /**
   * Measures acquiring, each renewal and the release. The thread's own requests to the store are not within
   * these spans.
   * @default none
   */
  readonly tracer?: LeaseTracer | undefined;
}

/** The parts of a lease that a worker thread keeps. */
interface WorkerLeaseParts extends WorkerLeaseOptions {
  readonly acquired: Extract<FromWorker, { type: 'acquired' }>;
  readonly thread: Worker;
  readonly shared: SharedTenure;
  /** Does no harm. */
  readonly tracer: LeaseTracer;
  /** The attributes of the lease's spans. */
  readonly facts: LeaseAttributes;
}

/**
 * A lease that a worker thread keeps. Validity and the bounds of its ids are read from shared memory;
 * everything else is sent by messages.
 */
class WorkerLease implements Lease {
  readonly id: number;
  readonly version: number;
  readonly taskId: string;
  readonly previous: Lease['previous'];
  readonly home: LeaseHome;
  readonly #lost = new AbortController();
  readonly signal: AbortSignal = this.#lost.signal;
  readonly #retiring = new AbortController();
  readonly retiring: AbortSignal = this.#retiring.signal;
  readonly tenureTime: WorkerTenureTime;
  #state: 'held' | 'lost' | 'released' = 'held';
  #releasing: Promise<void> | undefined;
  #ended: () => void = () => undefined;
  #marks = 0;
  #marked: () => void = () => undefined;
  #threadGone = false;

  constructor(private readonly parts: WorkerLeaseParts) {
    const { acquired, settings, clock, shared } = parts;
    this.id = acquired.id;
    this.version = acquired.version;
    this.taskId = settings.taskId;
    this.previous = acquired.previous;
    this.tenureTime = new WorkerTenureTime({
      clock,
      shared,
      idWidth: acquired.idWidth,
      check: () => this.#check(),
      send: (message) => this.#send(message),
    });
    this.home = new LeaseHome(clock, parts.random, parts.session, (mark) => this.#show(mark));
  }

  get deadline(): number {
    return this.parts.shared.deadline;
  }

  isValid(): boolean {
    return this.#state === 'held' && this.parts.clock.monotonic() < this.deadline;
  }

  setKnownNodes(versions: Readonly<Record<number, number>>): void {
    // Here, and not in the thread that renews: there it would end the lease.
    checkKnownNodes(versions);
    this.#send({ type: 'known-nodes', versions: { ...versions } });
  }

  #show(mark: LeaseMark): Promise<void> {
    this.#marks += 1;
    this.#send({ type: 'mark', mark, number: this.#marks });
    return new Promise((resolve) => {
      this.#marked = resolve;
    });
  }

  release(): Promise<void> {
    const { tracer, facts } = this.parts;
    this.#releasing ??= afterWork(this.home, (workEnded) =>
      tracer.span('nodelease.release', facts, () => this.#release(workEnded)),
    );
    return this.#releasing;
  }

  #release(workEnded: boolean): Promise<void> {
    return new Promise<void>((resolve) => {
      if (this.#threadGone) return resolve();
      this.#ended = resolve;
      if (this.#state === 'held') {
        // Before the thread learns of it: a lease that is being released must not be used any more.
        this.#state = 'released';
        this.tenureTime.end(new LeaseReleasedError(this.id, this.version));
      }
      this.#send({ type: 'release', workEnded });
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  receive(message: FromWorker): void {
    if (message.type === 'event') this.#report(message.event);
    else if (message.type === 'lost') this.#lose(fromWire(message.error) as LeaseLostError);
    else if (message.type === 'width') this.tenureTime.widen(message.idWidth);
    else if (message.type === 'prepared') this.tenureTime.prepared(message.error && fromWire(message.error));
    else if (message.type === 'marked') {
      // The answer to an earlier mark may have been on its way.
      if (message.number === this.#marks) this.#marked();
    } else if (message.type === 'released') this.#ended();
  }

  /** The thread has ended: the lease is not renewed any more. */
  threadEnded(cause?: unknown): void {
    this.#threadGone = true;
    this.#ended();
    if (this.#state !== 'held') return;
    this.#lose(
      new LeaseLostError(
        this.id,
        this.version,
        'unreachable',
        this.deadline,
        'the thread that renews it has ended',
        cause,
      ),
    );
  }

  #lose(error: LeaseLostError): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    // There is nothing left to renew: the thread must not keep the process alive.
    this.parts.thread.unref();
    this.tenureTime.end(error);
    this.#lost.abort(error);
    const { emit, tracer, facts } = this.parts;
    emit({ type: 'lost', error });
    tracer.past('nodelease.renew', facts, 0, error);
  }

  #report(event: LeaseEvent): void {
    const { emit, tracer, facts } = this.parts;
    if (event.type === 'retiring')
      this.#retiring.abort(new LeaseRetiringError(this.id, this.version, event.size));
    emit(event);
    // The renewal runs in another thread: its span is reported when it is over.
    if (event.type === 'renewed') tracer.past('nodelease.renew', facts, event.tookMs);
  }

  /**
   * @throws {LeaseLostError} also before a message of the thread: it ends the tenure, or learns at the last
   * moment that the tenure continues
   * @throws {LeaseReleasedError}
   */
  #check(): void {
    if (this.#lost.signal.aborted) throw this.#lost.signal.reason;
    if (this.#state === 'released') throw new LeaseReleasedError(this.id, this.version);
    const now = this.parts.clock.monotonic();
    const { deadline } = this;
    if (now < deadline) return;
    const detail =
      deadline > 0
        ? `its deadline passed ${Math.round(now - deadline)} ms ago: no renewal came through in time`
        : 'the thread that renews it has given it up';
    throw new LeaseLostError(this.id, this.version, 'paused', now, detail);
  }

  #send(message: ToWorker): void {
    this.parts.thread.postMessage(message);
  }
}

/**
 * Acquires and keeps a node id in a worker thread: a blocked main thread does not lose it.
 * @throws what `acquireLease` throws
 */
export async function acquireInWorker(options: WorkerLeaseOptions): Promise<Lease> {
  options.signal?.throwIfAborted();
  const { taskId, store } = options.settings;
  const tracer = harmless(options.tracer);
  const facts = { 'nodelease.task_id': taskId, 'nodelease.store': store };
  return tracer.span('nodelease.acquire', facts, (note) => startThread({ ...options, tracer }, facts, note));
}

async function startThread(
  options: WorkerLeaseOptions & { readonly tracer: LeaseTracer },
  known: LeaseAttributes,
  note: NoteAttributes,
): Promise<Lease> {
  const { settings, emit, signal } = options;
  const shared = new SharedTenure();
  const thread = new Worker(threadFile(), {
    workerData: { ...settings, tenure: shared.memory } satisfies WorkerSettings,
  });
  const cancel = onAbort(signal, () => thread.postMessage({ type: 'abort' } satisfies ToWorker));
  let lease: WorkerLease | undefined;
  try {
    return await new Promise<Lease>((resolve, reject) => {
      thread.on('message', (message: FromWorker) => {
        if (message.type === 'acquired') {
          const facts = { 'nodelease.node_id': message.id, 'nodelease.version': message.version };
          note(facts);
          lease = new WorkerLease({
            ...options,
            acquired: message,
            thread,
            shared,
            facts: { ...facts, ...known },
          });
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
    cancel();
  }
}

/** @throws {ConfigError} in a bundle, which has no file for the thread */
function threadFile(): URL {
  // esbuild's CommonJS has no `import.meta.url`.
  const file = new URL('./keeper-thread.js', import.meta.url ?? 'file:///');
  if (existsSync(file)) return file;
  const expected = "'inline', or nodelease marked as external to this bundle (--external:nodelease)";
  throw new ConfigError('keeper', 'worker', expected);
}
