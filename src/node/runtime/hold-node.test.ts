import { expect, it } from 'vitest';
import { newRoot, removeRoot } from '../../../test/support/data-dirs.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { MemoryLeaseStore } from '../../core/store/memory/index.js';
import { type HoldOptions, holdNode } from './hold-node.js';

it('a node id whose file system is slow to mark the end of the data directory is held until then, and released', async () => {
  const root = newRoot();
  const store = new MemoryLeaseStore();
  let isReleased: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    isReleased = resolve;
  });
  const options: HoldOptions = {
    ...{ store, nodes: 1, taskId: 'a', dataDir: { root }, clock: systemClock, random: systemRandom },
    onLeaseEvent: ({ type }) => type === 'released' && isReleased(),
    // As if the time for the mark were over at once.
    limited: async (what, _limitMs, step) => (what.startsWith('marking') ? undefined : step),
  };
  const { lease, end } = await holdNode(options);
  await end({ workEnded: true });
  expect(lease.isValid()).toBe(true);
  await released;
  expect(lease.isValid()).toBe(false);
  expect((await store.read('0.json'))?.body).toContain('"released":true');
  removeRoot(root);
});
