import { expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { newCluster } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { acquired, evicted, type LeaseState } from '../model/lease-state.js';
import { ShownDurations } from './shown-durations.js';

it('a lease is judged by the duration that it last showed, for as long, and else by the settings', async () => {
  const clock = new VirtualClock();
  const shown = new ShownDurations(clock);
  const settings = newCluster({ nodes: 4, durationMs: 15_000, graceMs: 1_000 });
  const held = acquired(
    { kind: 'vacant' },
    { taskId: 'a', nonce: 'n', durationMs: 60_000, storeNow: 0, stampedUntil: 0, idWidth: 8 },
  );
  const note = (id: number, state: LeaseState) =>
    shown.note({
      ...{ key: `${id}.json`, etag: 'e', ...nativeCodec.encode(state) },
      ...{ age: { min: 0, max: 0 }, storeTime: { min: 0, max: 0 } },
    });
  note(0, held);
  note(1, evicted(held));
  shown.note({
    ...{ key: '2.json', etag: 'e', body: 'damaged', metadata: {} },
    ...{ age: { min: 0, max: 0 }, storeTime: { min: 0, max: 0 } },
  });
  const takenAfter = () => [0, 1, 2, 3].map((id) => shown.takenAfterMs(`${id}.json`, settings));
  expect(takenAfter()).toEqual([61_000, 16_000, 16_000, 16_000]);
  await clock.advance(59_999);
  expect(takenAfter()[0]).toBe(61_000);
  await clock.advance(1);
  expect(takenAfter()[0]).toBe(16_000);
});
