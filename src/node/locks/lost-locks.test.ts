import { expect, it } from 'vitest';
import { RewindableStore } from '../../../test/support/stores/rewindable-store.js';
import { timeless } from '../../../test/support/timeless-store.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { Clock } from '../../core/base/clock.js';
// Loaded here, and not by the first lock: virtual time continues while a module is being read.
import '../../core/lease/acquire/acquire-lease.js';
import { declareRestored } from '../../core/lease/operate/restored.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { observedAge } from '../../core/store/observed-age.js';
import { acquireLock, type LockOptions } from './store-lock.js';

const DURATION = 15_000;
const GRACE = 1_000;

/** Locks on a store that goes back, and tells so itself or not; `file`: each folder has its own epoch;
 * `observed`: it reports no times of writing. */
function scene(kind: 'remote' | 'observed' | 'file' | 'silent') {
  const clock = new VirtualClock();
  const stores = new Map<string, RewindableStore>();
  let epoch = 1;
  const at = (path: string) => {
    const store = stores.get(path) ?? new RewindableStore(clock);
    Object.assign(store, { remote: kind !== 'file' });
    const told = async () => `${kind === 'file' ? path : ''} ${epoch}`;
    store.epoch = kind === 'silent' ? (undefined as never) : told;
    stores.set(path, store);
    return store;
  };
  const save = () => new Map([...stores].map(([path, store]) => [path, store.save()]));
  const goBack = (copy: ReturnType<typeof save>) => {
    epoch += 1;
    for (const [path, store] of stores) store.goBack(copy.get(path) ?? new Map());
  };
  /** What `nodelease init --restored` does. */
  const declare = () =>
    declareRestored({ session: new StoreSession(at('locks'), clock, 1_000), clock, random: seededRandom(9) });
  let tasks = 0;
  const lock = (name: string, own: LockOptions = {}) => {
    tasks += 1;
    const store = kind === 'observed' ? (path: string) => observedAge(timeless(at(path)), clock) : at;
    const options = { store, clock: clock as Clock, random: seededRandom(tasks), taskId: `task-${tasks}` };
    const times = { durationMs: DURATION, graceMs: GRACE };
    return acquireLock(name, { ...options, ...times, ...own });
  };
  return { clock, at, lock, save, goBack, declare };
}

it.each([
  ['remote', DURATION],
  ['remote', 4 * DURATION],
  ['observed', 2 * DURATION],
  ['file', DURATION],
  ['silent', DURATION],
] as const)(
  'a lock that a store has lost in going back is not given out while it may be held, nor a token twice: %s, %d ms',
  async (kind, durationMs) => {
    const { clock, lock, save, goBack, declare } = scene(kind);
    await inVirtualTime(
      clock,
      lock('older').then((held) => held.release()),
    );
    const copy = save();
    const first = await inVirtualTime(clock, lock('younger', { durationMs }));
    await inVirtualTime(clock, first.release());
    const lost = await inVirtualTime(clock, lock('younger', { durationMs }));
    expect([first.token, lost.token]).toEqual([1n, 2n]);
    goBack(copy);
    if (kind === 'silent') await declare();
    // As if its holder were paused, or cut off from the store.
    const mayActUntil = lost.deadline;
    const next = await inVirtualTime(clock, lock('younger', { durationMs }));
    expect(clock.monotonic()).toBeGreaterThan(mayActUntil);
    expect(Number(next.token) / 2 ** 20).toBeCloseTo(clock.now() / 1_000, 0);
    await inVirtualTime(clock, next.release());
    expect((await inVirtualTime(clock, lock('younger', { durationMs }))).token).toBe(next.token + 1n);
  },
);

it.each(['remote', 'observed'] as const)(
  'a new lock is given out at once, above all lost tokens, once no lost one can be held: %s',
  async (kind) => {
    const { clock, lock, save, goBack } = scene(kind);
    await inVirtualTime(
      clock,
      lock('older').then((held) => held.release()),
    );
    goBack(save());
    await inVirtualTime(
      clock,
      lock('older').then((held) => held.release()),
    );
    await clock.advance(DURATION + GRACE);
    const begun = clock.monotonic();
    const { token } = await inVirtualTime(clock, lock('new', { timeoutMs: 0 }));
    expect(clock.monotonic() - begun).toBeLessThan(1_000);
    expect(token).toBeGreaterThan(2 ** 32);
  },
);

it('a lock is not given out while it may be held where the store goes back when another task has just begun to ask for it', async () => {
  const { clock, at, lock, save, goBack } = scene('remote');
  await inVirtualTime(
    clock,
    lock('older').then((held) => held.release()),
  );
  const copy = save();
  const lost = await inVirtualTime(clock, lock('younger'));
  const store = at('locks/younger');
  store.before = () => {
    store.before = () => undefined;
    goBack(copy);
  };
  const next = await inVirtualTime(clock, lock('younger'));
  expect(clock.monotonic()).toBeGreaterThan(lost.deadline);
  expect(next.token).toBeGreaterThan(2 ** 32);
});

it('a lost lock of a longer duration is not given out while it may be held, also after one of a shorter duration was', async () => {
  const { clock, lock, save, goBack } = scene('remote');
  await inVirtualTime(
    clock,
    lock('older').then((held) => held.release()),
  );
  const copy = save();
  const lost = await inVirtualTime(clock, lock('younger', { durationMs: 4 * DURATION }));
  goBack(copy);
  await inVirtualTime(
    clock,
    lock('older').then((held) => held.release()),
  );
  await clock.advance(DURATION + GRACE);
  const next = await inVirtualTime(clock, lock('younger', { durationMs: 4 * DURATION }));
  expect(clock.monotonic()).toBeGreaterThan(lost.deadline);
  expect(next.token).toBeGreaterThan(2 ** 32);
});
