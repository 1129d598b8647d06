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

if (parentPort === null) throw new Error('this module runs as a worker thread only');

// The keeper in a separate thread: it acquires and renews while the main thread may block. The facts that the
// main thread must know at any moment are in shared memory, so that it need not receive a message.
const port: MessagePort = parentPort;
const settings: WorkerSettings = workerData;
const shared = new SharedTenure(settings.tenure);
const stopWaiting = new AbortController();
/** Aborts when the main thread's work has ended: it must not be killed any more. */
const workEnded = new AbortController();
let store: LeaseStore | undefined;
let lease: Lease | undefined;
/**
 * True once the main thread may make ids: from then on it must confirm that it has adopted a wider width.
 */
let makesIds = false;
let adopted: () => void = () => undefined;

async function run(): Promise<void> {
  const system = { clock: systemClock, random: systemRandom };
  try {
    store = await openedStore(settings, system);
    const { signal } = stopWaiting;
    lease = await acquireLease({ ...settings, ...system, store, signal, onEvent });
    publish();
    lease.tenureTime?.onWidth(onWidth);
    post({
      type: 'acquired',
      id: lease.id,
      version: lease.version,
      previous: lease.previous,
      idWidth: lease.tenureTime?.idWidth ?? 0,
    });
  } catch (error) {
    await finish({ type: 'failed', error: toWire(error) });
  }
}

function receive(message: ToWorker): void {
  switch (message.type) {
    case 'abort':
      stopWaiting.abort(new Error('aborted by the caller'));
      break;
    case 'known-nodes':
      lease?.setKnownNodes(message.versions);
      break;
    case 'mark':
      void lease?.home?.mark(message.mark).then(() => post({ type: 'marked', number: message.number }));
      break;
    case 'prepare':
      makesIds = true;
      void prepare();
      break;
    case 'adopted':
      // The last timestamp of the narrower ids. No more of them are made.
      lease?.tenureTime?.stamp(shared.stampedUntil);
      // An answer that was overtaken by a still wider width does not confirm that width.
      if (message.idWidth >= (lease?.tenureTime?.idWidth ?? 0)) adopted();
      break;
    case 'release':
      if (message.workEnded) workEnded.abort();
      lease?.home?.attach({ end: async () => message.workEnded });
      shared.end();
      // The main thread had stopped making ids when it sent this.
      lease?.tenureTime?.stamp(shared.stampedUntil);
      void lease?.release().then(() => finish({ type: 'released' }));
  }
}

async function prepare(): Promise<void> {
  const time = lease?.tenureTime;
  if (time === undefined) return;
  try {
    await time.prepare();
    publish();
    post({ type: 'prepared' });
  } catch (error) {
    post({ type: 'prepared', error: toWire(error) });
  }
}

/**
 * Resolves when the main thread makes no narrower ids any more. It does not resolve while that thread is
 * blocked, since it may be making some.
 */
function onWidth(idWidth: number): Promise<void> | undefined {
  post({ type: 'width', idWidth });
  if (!makesIds) return undefined;
  return new Promise((resolve) => {
    const earlier = adopted;
    adopted = () => {
      earlier();
      resolve();
    };
  });
}

function onEvent(event: LeaseEvent): void {
  if (event.type === 'renewed') publish();
  if (event.type === 'lost') void onLost(event.error);
  else post({ type: 'event', event: cloneable(event) });
}

async function onLost(error: LeaseLostError): Promise<void> {
  shared.end();
  post({ type: 'lost', error: toWire(error) });
  if (!settings.killOnLoss) return;
  const killAt = leavesTime(error.reason)
    ? error.deadline - KILL_MARGIN_MS
    : systemClock.monotonic() + TAKEN_TIMEOUT_MS;
  try {
    await sleepUntil(systemClock, killAt, workEnded.signal);
  } catch {
    return;
  }
  // The main thread is blocked, since otherwise it would have exited by now. A signal ends it, but
  // process.exit() in a thread would not.
  process.kill(process.pid, 'SIGKILL');
}

function publish(): void {
  // A tenure that has ended stays so, whatever the reply to a late renewal is.
  if (lease?.tenureTime === undefined || lease.tenureTime.signal.aborted) return;
  shared.publish(lease.deadline, lease.tenureTime, systemClock.monotonic());
}

function post(message: FromWorker): void {
  port.postMessage(message);
}

async function finish(last: FromWorker): Promise<void> {
  await store?.close();
  post(last);
  port.close();
}

port.on('message', receive);
void run();
