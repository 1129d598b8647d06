import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { systemClock } from '../../base/system.js';
import { type Checks, createFirst, isThere, written } from './handles.js';

/** How late a store may report a change, in milliseconds. */
const REPORT_TIMEOUT_MS = 20_000;

export const WATCHING_AND_ENDING: Checks = {
  'reports to a waiting task what has changed, and wakes it for what it wants and for nothing else': async (
    store,
    other,
  ) => {
    const first = written(await other.create('0.json', 'x'.repeat(300), {}));
    if (store.changed === undefined) return ok((store.pollMs ?? 1) > 0);
    const reported = new Map<string, number | undefined>();
    const given = new AbortController();
    let woken = false;
    const waiting = store
      .changed(given.signal, ({ key, size }) => {
        reported.set(key, size);
        return size !== undefined && size <= 135;
      })
      .then(() => {
        woken = true;
      });
    written(await other.create('1.json', 'y'.repeat(400), {}));
    const second = written(await other.replace('0.json', 'x'.repeat(200), {}, first));
    const isReported = () => reported.get('0.json') === 200 && reported.get('1.json') === 400;
    for (const end = systemClock.monotonic() + REPORT_TIMEOUT_MS; !isReported(); await systemClock.sleep(10))
      ok(systemClock.monotonic() < end, `reported ${JSON.stringify([...reported])} alone`);
    strictEqual(woken, false);
    written(await other.replace('0.json', 'released', {}, second));
    await waiting;
    strictEqual(reported.get('0.json'), 8);
    strictEqual(getEventListeners(given.signal, 'abort').length, 0, 'a listener is left');
  },

  'wakes a task that does not say what it wants at every change, and at none when it gives up': async (
    store,
    other,
  ) => {
    written(await other.create('0.json', 'x', {}));
    if (store.changed === undefined) return;
    const given = new AbortController();
    const waiting = store.changed(given.signal);
    written(await other.create('1.json', 'y'.repeat(400), {}));
    await waiting;
    const again = store.changed(given.signal, () => true);
    given.abort(new Error('enough'));
    await rejects(again, /enough/);
    strictEqual(getEventListeners(given.signal, 'abort').length, 0, 'a listener is left');
  },

  'rejects every call whose signal has aborted, and writes nothing': async (store) => {
    const etag = await createFirst(store);
    written(await store.create('probe-ab.json', 'x', {}));
    const aborted = { signal: AbortSignal.abort(new Error('given up')) };
    await rejects(store.read('0.json', aborted));
    await rejects(store.list(aborted));
    await rejects(store.create('1.json', 'x', {}, aborted));
    await rejects(store.replace('0.json', 'second', {}, etag, aborted));
    await rejects(store.discardProbe('probe-ab.json', aborted));
    deepStrictEqual((await store.list()).objects.map(({ key }) => key).sort(), ['0.json', 'probe-ab.json']);
    await isThere(store, '0.json', { body: 'first', etag });
  },

  'discards scratch objects of a probe and nothing else': async (store) => {
    await createFirst(store);
    written(await store.create('probe-ab.json', 'x', {}));
    await store.discardProbe('probe-ab.json');
    for (const key of ['0.json', 'cluster.json', 'xprobe-ab.json'])
      await rejects(store.discardProbe(key), (error: Error) => error.message.includes(key));
    strictEqual(await store.read('probe-ab.json'), undefined);
    deepStrictEqual(
      (await store.list()).objects.map(({ key }) => key),
      ['0.json'],
    );
  },

  'can be closed twice': async (store) => {
    await createFirst(store);
    await store.close();
    await store.close();
  },
};
