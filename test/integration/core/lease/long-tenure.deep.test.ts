import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import { acquireLease } from '../../../../src/core/lease/acquire/acquire-lease.js';
import type { LeaseEvent } from '../../../../src/core/lease/model/lease.js';
import { initializeCluster } from '../../../../src/core/lease/operate/initialize.js';
import { StoreSession } from '../../../../src/core/lease/session/store-session.js';
import { openS3Store } from '../../../../src/core/store/s3/open-s3-store.js';
import type { S3LeaseStore } from '../../../../src/core/store/s3/s3-lease-store.js';
import { S3StandIn } from '../../../support/s3-stand-in.js';
import { seededRandom, VirtualClock } from '../../../support/virtual-clock.js';

const RENEWALS = 10_000;
const DURATION_MS = 15_000;

let server: S3StandIn;
let store: S3LeaseStore;
const clock = new VirtualClock();

beforeEach(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'id');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  server = await S3StandIn.start();
  const options = {
    bucket: server.bucket,
    prefix: 'p',
    endpoint: server.endpoint,
    region: 'us-east-1',
    clock,
    requestTimeoutMs: 5_000,
  };
  store = await openS3Store(options);
});

afterEach(async () => {
  await store.close();
  await server.stop();
  vi.unstubAllEnvs();
});

/** What keeps a process busy, by kind: sockets, timers and the like. */
function resources(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

it('a lease on S3 survives 10,000 renewals over one connection, and leaves no timer, socket or listener behind', async () => {
  // The probe compares the ages that the server reports with a clock that has to go.
  const session = new StoreSession(store, systemClock, 4_000);
  await initializeCluster({
    session,
    clock: systemClock,
    random: seededRandom(1),
    wanted: { nodes: 1, durationMs: DURATION_MS },
  });
  const events = new EventTarget();
  let renewals = 0;
  const onEvent = ({ type }: LeaseEvent) => {
    if (type !== 'renewed') return;
    renewals += 1;
    events.dispatchEvent(new Event('renewed'));
  };
  const lease = await acquireLease({ store, clock, random: seededRandom(2), taskId: 'task', onEvent });
  const renewOnce = async () => {
    const renewed = once(events, 'renewed');
    // Only the clock of the engine moves; the requests take the time that they take.
    await clock.advance(DURATION_MS / 3);
    await renewed;
  };
  for (let i = 0; i < 100; i += 1) await renewOnce();
  await sleep(50);
  const before = { resources: resources(), sleepers: clock.sleepers };
  server.requests.length = 0;
  while (renewals < RENEWALS) await renewOnce();
  /**
   * What there is more of than there was. Fewer is fine: an idle connection of the beginning may have been
   * closed.
   */
  const more = () =>
    Object.entries(resources()).filter(([kind, count]) => count > (before.resources[kind] ?? 0));
  for (let looks = 0; looks < 100; looks += 1) {
    await sleep(50);
    if (more().length === 0) break;
  }
  const connections = new Set(server.requests.map(({ clientPort }) => clientPort)).size;
  expect(lease.isValid()).toBe(true);
  expect(more()).toEqual([]);
  expect(clock.sleepers).toBe(before.sleepers);
  expect(connections).toBeLessThanOrEqual(3);
  await lease.release();
  expect(clock.sleepers).toBe(0);
});
