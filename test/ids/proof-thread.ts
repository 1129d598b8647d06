// One thread of the proof: one tenure after the other, until it is asked to stop.

import { parentPort, workerData } from 'node:worker_threads';
import { StoreUnusableError } from '../../src/core/base/errors.js';
import { systemRandom } from '../../src/core/base/system.js';
import { FileLeaseStore } from '../../src/core/store/file/index.js';
import { seededRandom } from '../support/virtual-clock.js';
import { HurriedClock } from './hurried-clock.js';
import { IdBitmap } from './id-bitmap.js';
import { Shared, type ThreadSettings } from './proof-messages.js';
import { runTenure } from './proof-tenure.js';

const LOOK_MS = 20;

const settings = workerData as ThreadSettings;
const { thread, time, directory } = settings;
const clock = new HurriedClock(time);
// The folder is on the host of all threads, whose clock is not stepped; the threads' own are on hosts of
// theirs.
const storeClock = new HurriedClock(time);
const store = new FileLeaseStore({
  directory,
  clock: storeClock,
  random: systemRandom,
  boot: storeClock.bootClock(),
});
const bitmap = new IdBitmap(settings.shape, settings.bitmap);
const shared = new Shared(settings.shared);
const dice = seededRandom(settings.seed + thread);
const stop = new AbortController();
const look = setInterval(() => {
  if (shared.isStopped) stop.abort();
}, LOOK_MS);

try {
  for (let tenure = 0; !shared.isStopped; tenure += 1) {
    try {
      const report = await runTenure(
        { settings, store, clock, dice, bitmap, shared, signal: stop.signal },
        `thread-${thread}-${tenure}`,
      );
      parentPort?.postMessage(report);
    } catch (error) {
      // A machine that is busy with other things answers too late for a time that is in a hurry: no id was
      // made, the next one tries again.
      if (!(error instanceof StoreUnusableError)) throw error;
    }
  }
} catch (error) {
  // Nothing was free when the run ended.
  if (!stop.signal.aborted || error !== stop.signal.reason) throw error;
} finally {
  clearInterval(look);
  await store.close();
}
