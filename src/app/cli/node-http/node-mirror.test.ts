import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { shrinkSettings } from '../../../../test/support/shrunk-cluster.js';
import { seededRandom, settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { acquireLease } from '../../../core/lease/acquire/acquire-lease.js';
import { staticLease } from '../../../core/lease/hold/static-lease.js';
import { StoreError } from '../../../core/store/lease-store.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import { NodeMonitor } from '../../../node/runtime/node-monitor.js';
import { AskedMetrics, HealthMirror, HealthPublisher } from './node-mirror.js';

const DURATION = 15_000;

describe('the health mirror', () => {
  let clock: VirtualClock;
  let monitor: NodeMonitor;
  let publisher: HealthPublisher;
  let mirror: HealthMirror;
  let notified: number;

  beforeEach(() => {
    clock = new VirtualClock();
    monitor = new NodeMonitor();
    publisher = new HealthPublisher(monitor);
    mirror = new HealthMirror(publisher.connect(), clock);
    notified = 0;
    mirror.onEvent(() => {
      notified += 1;
    });
  });

  afterEach(() => {
    publisher.close();
    mirror.close();
  });

  const acquire = async () => {
    const lease = await acquireLease({
      ...{ clock, random: seededRandom(1), store: new MemoryLeaseStore({ clock }) },
      ...{ taskId: 'task', nodes: 1, durationMs: DURATION, graceMs: 1_000 },
      onEvent: monitor.onLeaseEvent,
    });
    monitor.hold(lease);
    return lease;
  };

  it('is current at any moment, also where a message has not been received yet', async () => {
    expect(mirror.health()).toEqual(monitor.health());
    const lease = await acquire();
    expect(mirror.health()).toEqual(monitor.health());
    expect(mirror.health()).toMatchObject({
      state: 'held',
      ready: true,
      nodeId: 0,
      deadline: lease.deadline,
    });
    monitor.stopping();
    expect(mirror.health()).toMatchObject({ state: 'stopping', ready: false });
    await lease.release();
    expect(mirror.health()).toMatchObject({ state: 'released', live: true });
  });

  it('knows at once that the node id is being retired', async () => {
    const bucket = new MemoryBucket(clock, 1);
    const wanted = {
      clock,
      random: seededRandom(1),
      store: new MemoryLeaseStore({ clock }, bucket),
      nodes: 2,
      durationMs: DURATION,
    };
    await acquireLease({ ...wanted, taskId: 'first' });
    monitor.hold(await acquireLease({ ...wanted, taskId: 'task', onEvent: monitor.onLeaseEvent }));
    await clock.advance(500);
    expect(mirror.health()).toMatchObject({ nodeId: 1, ready: true, retiring: false });
    shrinkSettings(bucket, 1);
    await clock.advance(DURATION);
    expect(mirror.health()).toEqual(monitor.health());
    expect(mirror.health()).toMatchObject({ state: 'held', ready: false, retiring: true });
    clock.freeze(DURATION);
    expect(mirror.health()).toMatchObject({ state: 'lost', ready: false, retiring: false });
  });

  it('says why there is none yet', async () => {
    const error = new StoreError('no answer', { fault: 'unreachable', outcome: 'unknown' });
    monitor.onLeaseEvent({ type: 'store-failed', error, sleepMs: 1 });
    await settled();
    expect(mirror.health().reason).toBe('the store failed: no answer');
  });

  it('says that nothing is held as soon as the release begins', async () => {
    const lease = await acquire();
    monitor.stopping();
    const released = lease.release();
    expect(mirror.health()).toMatchObject({ state: 'released', live: true, deadline: null });
    await released;
  });

  it('is lost in the first answer after its deadline, whether the other thread says so or not', async () => {
    const lease = await acquire();
    mirror.health();
    clock.freeze(lease.deadline - clock.monotonic() - 1);
    expect(mirror.health()).toMatchObject({ state: 'held', ready: true });
    clock.freeze(1);
    expect(mirror.health()).toMatchObject({
      state: 'lost',
      live: false,
      ready: false,
      deadline: null,
      nodeId: 0,
    });
    expect(mirror.health().reason).toMatch(/^the lease is over: no renewal came through/);
  });

  it('is held on as soon as it is renewed, also before the message has been received', async () => {
    const lease = await acquire();
    const before = mirror.health().deadline ?? 0;
    await clock.advance(DURATION / 2);
    expect(lease.deadline).toBeGreaterThan(before);
    expect(mirror.health()).toEqual(monitor.health());
    clock.freeze(before - clock.monotonic() + 1);
    expect(mirror.health()).toMatchObject({ state: 'held', deadline: lease.deadline });
  });

  it('has no deadline where its node id is fixed', () => {
    monitor.hold(staticLease({ id: 5, taskId: 'task' }));
    clock.freeze(1e9);
    expect(mirror.health()).toMatchObject({ state: 'held', ready: true, nodeId: 5, deadline: null });
  });

  it('notifies its followers of everything that happens, renewals included', async () => {
    await acquire();
    await settled();
    const before = notified;
    expect(before).toBeGreaterThan(0);
    await clock.advance(DURATION / 2);
    await settled();
    expect(notified).toBeGreaterThan(before);
  });

  it('goes as a whole to a thread that takes the place of another one', async () => {
    await acquire();
    const second = new HealthMirror(publisher.connect(), clock);
    expect(second.health()).toEqual(monitor.health());
    monitor.failed(new Error('over'));
    expect(second.health()).toEqual(monitor.health());
    second.close();
  });
});

const contentType = 'text/x-metrics';

function askedMetrics(answers = true) {
  const clock = new VirtualClock();
  const asked: number[] = [];
  const metrics: AskedMetrics = new AskedMetrics(clock, () => {
    asked.push(clock.monotonic());
    if (answers) metrics.answered({ contentType, text: `metrics ${asked.length}` });
  });
  return { clock, asked, metrics };
}

describe('the metrics of another thread', () => {
  it('are what it answers with', async () => {
    const { clock, metrics } = askedMetrics();
    const text = metrics.text();
    await clock.advance(0);
    expect([await text, metrics.contentType]).toEqual(['metrics 1', contentType]);
    expect(clock.sleepers).toBe(0);
  });

  it('are asked for ten times a second at the most, however many want them, and never before who gets them wants them', async () => {
    const { clock, metrics, asked } = askedMetrics();
    const first = metrics.text();
    await clock.advance(0);
    const others = Array.from({ length: 1_000 }, () => metrics.text());
    await clock.advance(99);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    expect([await first, new Set(await Promise.all(others))]).toEqual(['metrics 1', new Set(['metrics 2'])]);
  });

  it('are unavailable where it does not answer within two seconds, and it is not asked again before it has answered', async () => {
    const { clock, metrics, asked } = askedMetrics(false);
    for (let i = 0; i < 3; i += 1) {
      const refused = expect(metrics.text()).rejects.toMatchObject({ error: 'unavailable' });
      await clock.advance(2_000);
      await refused;
    }
    expect(asked).toHaveLength(1);
    const inTime = metrics.text();
    metrics.answered({ contentType, text: 'late, and as it is now' });
    expect(await inTime).toBe('late, and as it is now');
    const again = metrics.text();
    await clock.advance(0);
    expect(asked).toHaveLength(2);
    metrics.answered({ contentType, text: 'in time' });
    expect(await again).toBe('in time');
  });

  it('are unavailable at once where it has none', async () => {
    const { clock, metrics } = askedMetrics(false);
    const refused = expect(metrics.text()).rejects.toMatchObject({ error: 'unavailable' });
    await clock.advance(0);
    metrics.answered(undefined);
    await refused;
  });
});
