import * as api from '@opentelemetry/api';
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { acquireLease } from '../../core/lease/acquire/acquire-lease.js';
import { evictHolder } from '../../core/lease/operate/evict.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { OpenTelemetryTracer } from './open-telemetry-tracer.js';

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
const contexts = new AsyncLocalStorageContextManager();

/**
 * A lease on a store whose client is instrumented: every request is a span, within whatever span is active.
 */
async function hold() {
  const clock = new VirtualClock();
  const network = { isDown: false };
  const direct = new MemoryLeaseStore({ clock }, new MemoryBucket(clock, 1));
  const store = direct.connect((_call, apply) =>
    trace.getTracer('client').startActiveSpan('request', async (span) => {
      try {
        if (network.isDown)
          throw new StoreError('no answer', { fault: 'unreachable', outcome: 'not-applied' });
        return await apply();
      } finally {
        span.end();
      }
    }),
  );
  const tracer = new OpenTelemetryTracer(clock, api);
  const wanted = { nodes: 1, durationMs: 15_000, graceMs: 1_000 };
  // As within a request of a program: spans that outlive it must not become a part of its trace.
  const lease = await trace.getTracer('caller').startActiveSpan('start-up', async (span) => {
    const held = await acquireLease({
      clock,
      random: seededRandom(1),
      store,
      taskId: 'task',
      ...wanted,
      tracer,
    });
    span.end();
    return held;
  });
  await clock.advance(500);
  return { clock, network, lease, session: new StoreSession(direct, clock, 1_000) };
}

const spans = (name?: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => name === undefined || span.name === name);
const only = (name: string): ReadableSpan => {
  const found = spans(name);
  expect(found).toHaveLength(1);
  return found[0] as ReadableSpan;
};
const childrenOf = (parent: ReadableSpan) =>
  spans().filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent.spanContext().spanId);

describe('the spans of a lease', () => {
  beforeAll(() => {
    contexts.enable();
    context.setGlobalContextManager(contexts);
    trace.setGlobalTracerProvider(provider);
  });
  afterAll(async () => {
    trace.disable();
    context.disable();
    await provider.shutdown();
  });
  beforeEach(() => exporter.reset());

  it("have an acquisition in the caller's trace, with the requests that it took within it", async () => {
    await hold();
    const acquired = only('nodelease.acquire');
    expect(acquired.parentSpanContext?.spanId).toBe(only('start-up').spanContext().spanId);
    expect(acquired.attributes).toMatchObject({
      ...{
        'nodelease.node_id': 0,
        'nodelease.version': 1,
        'nodelease.task_id': 'task',
        'nodelease.from': 'vacant',
      },
      'nodelease.store': 'memory:',
    });
    expect(childrenOf(acquired).length).toBeGreaterThanOrEqual(
      Number(acquired.attributes['nodelease.requests']),
    );
    expect(acquired.status.code).toBe(SpanStatusCode.UNSET);
  });

  it('have every renewal as a separate trace, however long ago the caller has ended, and no request outside of one', async () => {
    const { clock } = await hold();
    // The very first holder of a cluster also completes its objects.
    await clock.advance(4_000);
    exporter.reset();
    await clock.advance(16_000);
    const renewals = spans('nodelease.renew');
    expect(renewals).toHaveLength(4);
    expect(new Set(renewals.map((span) => span.spanContext().traceId)).size).toBe(4);
    for (const renewal of renewals) {
      expect(renewal.parentSpanContext).toBeUndefined();
      expect(renewal.attributes).toMatchObject({
        'nodelease.node_id': 0,
        'nodelease.version': 1,
        'nodelease.task_id': 'task',
      });
      expect(childrenOf(renewal).length).toBeGreaterThan(0);
    }
    const requests = spans('request');
    expect(
      requests.filter((span) => renewals.some((renewal) => childrenOf(renewal).includes(span))),
    ).toHaveLength(requests.length);
  });

  it('show the failure that ended a lease, with the requests that failed', async () => {
    const { clock, network, lease } = await hold();
    await clock.advance(4_000);
    exporter.reset();
    network.isDown = true;
    await clock.advance(15_000);
    expect(lease.signal.aborted).toBe(true);
    const renewal = only('nodelease.renew');
    expect(renewal.status).toMatchObject({ code: SpanStatusCode.ERROR, message: 'no answer' });
    expect(renewal.events.map(({ name, attributes }) => [name, attributes?.['exception.message']])).toEqual([
      ['exception', 'no answer'],
    ]);
    expect(childrenOf(renewal).length).toBeGreaterThan(1);
  });

  it('have the release in the trace of its caller', async () => {
    const { lease } = await hold();
    exporter.reset();
    await trace.getTracer('caller').startActiveSpan('shut-down', async (span) => {
      await lease.release();
      await lease.release();
      span.end();
    });
    const released = only('nodelease.release');
    expect(released.parentSpanContext?.spanId).toBe(only('shut-down').spanContext().spanId);
    expect(childrenOf(released)).toHaveLength(1);
  });

  it('say why no node id was acquired', async () => {
    const { clock, session } = await hold();
    exporter.reset();
    const tracer = new OpenTelemetryTracer(clock, api);
    const second = acquireLease({
      clock,
      random: seededRandom(2),
      store: session.store,
      taskId: 'second',
      acquireTimeoutMs: 0,
      tracer,
    });
    await expect(second).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' });
    expect(only('nodelease.acquire').status.code).toBe(SpanStatusCode.ERROR);
    await evictHolder(session, 0);
  });

  it('do not contain the secrets of a store', async () => {
    const tracer = new OpenTelemetryTracer(new VirtualClock(), api);
    const shown = async (url: string) => {
      exporter.reset();
      await tracer.span('nodelease.acquire', { 'nodelease.store': url }, async () => undefined);
      return only('nodelease.acquire').attributes['nodelease.store'];
    };
    expect(await shown('redis://user:p@ss@host:1/leases?token=secret#x')).toBe('redis://host:1/leases');
    expect(await shown('s3://bucket/a@b')).toBe('s3://bucket/a@b');
    expect(await shown('file:/var/lib/leases')).toBe('file:/var/lib/leases');
  });

  it('can be reported after their end, with their duration', () => {
    const clock = new VirtualClock();
    const tracer = new OpenTelemetryTracer(clock, api);
    tracer.past('nodelease.renew', { 'nodelease.node_id': 3 }, 250);
    tracer.past('nodelease.renew', { 'nodelease.node_id': 3 }, 0, new Error('taken'));
    const [well, ill] = spans('nodelease.renew');
    expect(well?.duration).toEqual([0, 250_000_000]);
    expect(well?.endTime[0]).toBe(clock.now() / 1_000);
    expect([well?.status.code, ill?.status]).toEqual([
      SpanStatusCode.UNSET,
      { code: SpanStatusCode.ERROR, message: 'taken' },
    ]);
  });
});

describe('without an SDK', () => {
  it('acquiring, renewing and releasing are as they were', async () => {
    const clock = new VirtualClock();
    const store = new MemoryLeaseStore({ clock }, new MemoryBucket(clock, 1));
    const tracer = new OpenTelemetryTracer(clock, api);
    const lease = await acquireLease({
      clock,
      random: seededRandom(1),
      store,
      taskId: 'task',
      nodes: 1,
      durationMs: 15_000,
      tracer,
    });
    await clock.advance(20_000);
    expect(lease.isValid()).toBe(true);
    await lease.release();
    expect(lease.isValid()).toBe(false);
  });
});
