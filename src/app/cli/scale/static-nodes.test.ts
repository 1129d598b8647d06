import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { nativeCodec } from '../../../core/lease/model/lease-codec.js';
import { acquired, evicted, type LeaseState } from '../../../core/lease/model/lease-state.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import { encodeAssignment } from '../../../zookeeper/discovery/layout.js';
import { staticNodes } from './static-nodes.js';

const FOLDER = '/discovery/nodes/00';

/** A discovery tree, and a store, with the given node ids. */
function scene(
  announced: Readonly<Record<number, string>>,
  leases: Readonly<Record<number, LeaseState | string>>,
) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  for (const [id, lease] of Object.entries(leases)) {
    if (typeof lease === 'string') bucket.create(`${id}.json`, lease, {});
    else bucket.create(`${id}.json`, nativeCodec.encode(lease).body, nativeCodec.encode(lease).metadata);
  }
  const path = (id: string) => `${FOLDER}/${(8 + Number(id)).toString(16).toUpperCase().padStart(2, '0')}`;
  const znodes = new Map(Object.entries(announced).map(([id, data]) => [path(id), data]));
  const zookeeper = {
    children: async (at: string) => {
      if (at === '/discovery/nodes') return znodes.size > 0 ? ['00'] : undefined;
      return [...znodes.keys()].map((each) => each.slice(FOLDER.length + 1));
    },
    read: async (at: string) => ({
      data: Buffer.from(znodes.get(at) ?? ''),
      stat: { owner: '1', createdZxid: 1n } as never,
    }),
  };
  const session = new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000);
  return (from: number, to: number) => staticNodes({ zookeeper, session, ids: [from, to] });
}

const claim = { taskId: 'leased', nonce: 'n', durationMs: 15_000, storeNow: 0, stampedUntil: 0, idWidth: 8 };
const held = acquired({ kind: 'vacant' }, claim);
const named = (nodeId: number, taskId: string) => encodeAssignment({ taskId, nodeId, version: 1 });

describe('node ids that are in use without a lease', () => {
  it('are the ones that are announced and not held in the store', async () => {
    const announced = {
      ...{
        3: named(3, 'absent'),
        4: named(4, 'never-held'),
        5: named(5, 'released'),
        6: named(6, 'leased'),
        7: 'not JSON',
      },
      ...{ 8: named(8, 'unreadable') },
    };
    const find = scene(announced, {
      4: { kind: 'vacant' },
      5: evicted(held, true),
      6: held,
      7: { kind: 'vacant' },
      8: '{ not JSON',
    });
    expect(await find(0, 100)).toEqual([
      { id: 3, taskId: 'absent' },
      { id: 4, taskId: 'never-held' },
      { id: 5, taskId: 'released' },
      { id: 7, taskId: undefined },
    ]);
  });

  it('are looked for from the first to the one before the last', async () => {
    const find = scene({ 3: named(3, 'a'), 4: named(4, 'b'), 5: named(5, 'c') }, {});
    expect(await find(4, 5)).toEqual([{ id: 4, taskId: 'b' }]);
    expect(await find(6, 100)).toEqual([]);
  });

  it('are none where no node is announced', async () => {
    expect(await scene({}, { 3: held })(0, 100)).toEqual([]);
  });
});
