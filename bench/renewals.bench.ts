import { it } from 'vitest';
import { acquireLease } from '../src/core/lease/acquire/acquire-lease.js';
import { nativeCodec } from '../src/core/lease/model/lease-codec.js';
import { MemoryBucket } from '../src/core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../src/core/store/memory/memory-lease-store.js';
import { seededRandom, VirtualClock } from '../test/support/virtual-clock.js';
import { report } from './report.js';

const LEASES = 500;
const ROUNDS = 40;

it('renewals a second that one process can sustain on the memory store', async () => {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const store = new MemoryLeaseStore({ clock }, bucket);
  let renewals = 0;
  const onEvent = ({ type }: { type: string }) => {
    if (type === 'renewed') renewals += 1;
  };
  const start = (n: number) =>
    acquireLease({
      store,
      clock,
      random: seededRandom(n),
      taskId: `task-${n}`,
      nodes: LEASES,
      durationMs: 15_000,
      graceMs: 1_000,
      onEvent,
    });
  const leases = await Promise.all(Array.from({ length: LEASES }, (_, n) => start(n)));
  await clock.advance(60_000);
  renewals = 0;
  const begun = process.hrtime.bigint();
  await clock.advance(ROUNDS * 5_000);
  const kept = renewals / (Number(process.hrtime.bigint() - begun) / 1e9);
  await Promise.all(leases.map((lease) => lease.release()));

  // The floor: the same writes without an engine around them.
  const held = nativeCodec.encode({
    kind: 'held',
    taskId: 'task-0',
    version: 1,
    timestamp: 1,
    durationMs: 15_000,
    knownNodes: {},
    nonce: 'x'.repeat(24),
    renewal: 1,
    acquiredAt: 1,
    idWidth: 8,
    narrowIdsUntil: 0,
  });
  await store.create('floor.json', held.body, held.metadata);
  let etag = (await store.read('floor.json'))?.etag ?? '';
  const floorBegun = process.hrtime.bigint();
  for (let i = 0; i < LEASES * ROUNDS; i += 1) {
    const result = await store.replace('floor.json', `${held.body}${i}`, held.metadata, etag);
    if (result.status === 'written') etag = result.etag;
  }
  const floor = (LEASES * ROUNDS) / (Number(process.hrtime.bigint() - floorBegun) / 1e9);
  report(`Renewals on the memory store, ${LEASES} leases, ${renewals} renewals`, [
    ['the bare conditional writes', `${Math.round(floor).toLocaleString('en')} a second`, '1.00'],
    [
      'renewals by the keeper',
      `${Math.round(kept).toLocaleString('en')} a second`,
      (floor / kept).toFixed(2),
    ],
  ]);
}, 120_000);
