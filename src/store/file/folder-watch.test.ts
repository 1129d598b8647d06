import { getEventListeners } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { systemRandom } from '../../system.js';
import { FileLeaseStore } from './file-lease-store.js';

let directory: string;
let clock: VirtualClock;
let store: FileLeaseStore;

const watchers = () => process.getActiveResourcesInfo().filter((name) => name.startsWith('FSEvent')).length;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelease-watch-'));
  clock = new VirtualClock();
  store = new FileLeaseStore({ directory, clock, random: systemRandom });
});

afterEach(async () => {
  await store.close();
  await rm(directory, { recursive: true, force: true });
});

describe('waiting for a change of the file store', () => {
  it('wakes everybody who waits when another process has written', async () => {
    const { signal } = new AbortController();
    const waiting = Promise.all([store.changed(signal), store.changed(signal)]);
    await new FileLeaseStore({ directory, clock, random: systemRandom }).create('0.json', 'x', {});
    await waiting;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('uses one watcher however often it is asked, holds the process only while somebody waits, and none after close', async () => {
    const before = watchers();
    const given = new AbortController();
    const waiting = Array.from({ length: 8 }, () => store.changed(given.signal).catch((error: unknown) => error));
    expect(watchers()).toBe(before + 1);
    given.abort(new Error('enough'));
    for (const outcome of await Promise.all(waiting)) expect(outcome).toEqual(new Error('enough'));
    expect(watchers()).toBe(before);
    expect(getEventListeners(given.signal, 'abort')).toHaveLength(0);

    const last = store.changed(new AbortController().signal);
    expect(watchers()).toBe(before + 1);
    await store.close();
    await last;
    await settled();
    expect(watchers()).toBe(before);
  });

  it('resolves after the poll interval where there is nothing to watch yet', async () => {
    const absent = new FileLeaseStore({ directory: join(directory, 'absent'), clock, random: systemRandom, pollMs: 700 });
    let woken = false;
    const waiting = absent.changed(new AbortController().signal).then(() => {
      woken = true;
    });
    await clock.advance(699);
    expect(woken).toBe(false);
    await clock.advance(1);
    await waiting;
    expect(clock.sleepers).toBe(0);
  });

  it('notices when the folder is removed, and watches the one that takes its place', async () => {
    const folder = join(directory, 'leases');
    await mkdir(folder);
    const watching = new FileLeaseStore({ directory: folder, clock, random: systemRandom });
    const removed = watching.changed(new AbortController().signal);
    await rm(folder, { recursive: true });
    await removed;
    await mkdir(folder);
    const changed = watching.changed(new AbortController().signal);
    await writeFile(join(folder, '0.json'), 'x');
    await changed;
    await watching.close();
  });
});
