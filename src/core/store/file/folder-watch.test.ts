import { getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { systemRandom } from '../../base/system.js';
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
  it('wakes all waiting callers when another process has written', async () => {
    const { signal } = new AbortController();
    const waiting = Promise.all([store.changed(signal), store.changed(signal)]);
    await new FileLeaseStore({ directory, clock, random: systemRandom }).create('0.json', 'x', {});
    await waiting;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('uses one watcher however often it is asked, holds the process only while a caller waits, and has no watcher after close', async () => {
    const before = watchers();
    const given = new AbortController();
    const waiting = Array.from({ length: 8 }, () =>
      store.changed(given.signal).catch((error: unknown) => error),
    );
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

  it('reports the size of a changed file, and that a file is gone; a burst of writes of one file costs a scan or two', async () => {
    const other = new FileLeaseStore({ directory, clock, random: systemRandom });
    const changes: { key: string; size: number | undefined }[] = [];
    const waiting = store.changed(new AbortController().signal, (change) => {
      changes.push(change);
      return change.key === '1.json' && change.size === undefined;
    });
    await writeFile(join(directory, '.hidden'), 'no object');
    await other.create('1.json', 'first', {});
    for (let count = 1; count <= 200; count += 1) writeFileSync(join(directory, '0.json'), 'x'.repeat(count));
    await rm(join(directory, '1.json'));
    await waiting;
    expect(changes.filter(({ key }) => key === '0.json').at(-1)?.size).toBe(200);
    expect(changes.filter(({ key }) => key === '0.json').length).toBeLessThan(40);
    expect(new Set(changes.map(({ key }) => key))).toEqual(new Set(['0.json', '1.json']));
  });

  it('notifies the others, and continues to, where one of the listeners fails', async () => {
    const { signal } = new AbortController();
    const fault = new Error('cannot bear it');
    const failing = store.changed(signal, () => {
      throw fault;
    });
    const next = () => store.changed(signal, ({ key }) => key === '0.json');
    const waiting = Promise.all([expect(failing).rejects.toBe(fault), next()]);
    await writeFile(join(directory, '0.json'), 'x');
    await waiting;
    const again = next();
    await writeFile(join(directory, '0.json'), 'xx');
    await again;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('resolves after the poll interval where there is nothing to watch yet', async () => {
    const absent = new FileLeaseStore({
      directory: join(directory, 'absent'),
      clock,
      random: systemRandom,
      pollMs: 700,
    });
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
