import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../core/base/system.js';
import { RestartingWorker, type RestartingWorkerOptions } from './restarting-worker.js';

const PROGRAM = new URL('../../../../test/fixtures/programs/restarting-worker.mjs', import.meta.url);
const failures: { failure: unknown; againInMs: number }[] = [];
const workers: Worker[] = [];
/** When each of them is ready. */
const starts: Promise<void>[] = [];
let thread: RestartingWorker | undefined;

/** A real thread, which is ready when it says so. */
const start: RestartingWorkerOptions['start'] = () => {
  const worker = new Worker(PROGRAM, { resourceLimits: { maxOldGenerationSizeMb: 16 }, stderr: true });
  const ready = once(worker, 'message').then(() => undefined);
  workers.push(worker);
  starts.push(ready);
  return { worker, ready };
};

async function started(options: Partial<RestartingWorkerOptions> = {}): Promise<RestartingWorker> {
  thread = await RestartingWorker.start({
    ...{ clock: systemClock, start },
    onFailure: (failure, againInMs) => failures.push({ failure, againInMs }),
    ...options,
  });
  return thread;
}

const current = () => workers.at(-1) as Worker;
const exitOf = (worker: Worker) => new Promise((resolve) => worker.once('exit', resolve));

/** Ends the thread that there is, and waits for the next one. */
async function killed(message: 'die' | 'grow'): Promise<void> {
  const { length } = workers;
  current().postMessage(message);
  while (workers.length === length) await systemClock.sleep(5);
  await starts.at(-1);
}

afterEach(async () => {
  await thread?.close();
  await Promise.all(workers.splice(0).map((worker) => worker.terminate()));
  starts.length = 0;
  failures.length = 0;
});

describe('a restarting worker', () => {
  it('is started again when it dies of an error, or for want of memory, later and later, and the process goes on', async () => {
    await started();
    await killed('die');
    await killed('grow');
    expect(failures).toMatchObject([
      { failure: { message: 'a fault in the thread' }, againInMs: 100 },
      { failure: { code: 'ERR_WORKER_OUT_OF_MEMORY' }, againInMs: 200 },
    ]);
    expect(workers).toHaveLength(3);
  });

  it('is tried again where it could not be started', async () => {
    let tries = 0;
    await started({
      start: () => {
        tries += 1;
        if (tries === 2) throw new Error('no thread to be had');
        return tries === 3 ? { ...start(), ready: Promise.reject(new Error('the port is taken')) } : start();
      },
    });
    current().postMessage('die');
    while (tries < 4) await systemClock.sleep(5);
    expect(failures.map(({ failure, againInMs }) => [(failure as Error).message, againInMs])).toEqual([
      ['a fault in the thread', 100],
      ['no thread to be had', 200],
      ['the port is taken', 400],
    ]);
  });

  it('is what keeps the start from succeeding where it cannot do its work at first', async () => {
    const never = () => ({ ...start(), ready: Promise.reject(new Error('the port is taken')) });
    await expect(started({ start: never })).rejects.toThrow('the port is taken');
    expect(current().threadId).toBe(-1);
    expect(failures).toEqual([]);
  });

  it('ends when it is asked to, and is not started again', async () => {
    const asked = await started();
    const exit = exitOf(current());
    await asked.close();
    await exit;
    await systemClock.sleep(300);
    expect([failures, workers.length]).toEqual([[], 1]);
  });

  it('is ended where it does not end in time', async () => {
    const hanging = await started();
    const exit = exitOf(current());
    current().postMessage('hang');
    await hanging.close();
    await exit;
  });
});
