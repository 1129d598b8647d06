import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import { harmless, type LeaseTracer } from './lease-tracer.js';

const never = new Promise<never>(() => undefined);
const fail = () => {
  throw new Error('a bug in the tracer');
};

/** Tracers with every possible bug. No bug may have an effect. */
const BROKEN: readonly (readonly [name: string, tracer: LeaseTracer])[] = [
  ['throws', { span: fail, past: fail }],
  ['rejects', { span: async () => fail(), past: fail }],
  ['never calls what it traces', { span: () => never, past: fail }],
  ['never ends', { span: (_name, _facts, run) => run(() => undefined).then(() => never), past: fail }],
  [
    'calls it twice',
    { span: (_name, _facts, run) => run(() => undefined).then(() => run(() => undefined)), past: fail },
  ],
  [
    'calls it late',
    { span: async (_name, _facts, run) => Promise.resolve().then(() => run(() => undefined)), past: fail },
  ],
  ['answers with something else', { span: async <T>() => 'something else' as T, past: fail }],
  ['throws at late attributes', { span: (_name, _facts, run) => run(fail), past: fail }],
  [
    'throws when it ends the span',
    {
      span: async (_name, _facts, run) => {
        await run(() => undefined);
        return fail();
      },
      past: fail,
    },
  ],
];

describe('a tracer with a bug', () => {
  it.each(BROKEN)('that %s calls everything once, at once, and changes no outcome', async (_, tracer) => {
    let calls = 0;
    const end = harmless(tracer).span('nodelease.renew', {}, async (note) => {
      calls += 1;
      note({ 'nodelease.node_id': 1 });
      return 'done';
    });
    expect(calls).toBe(1);
    await expect(end).resolves.toBe('done');
    await expect(
      harmless(tracer).span('nodelease.renew', {}, () => Promise.reject(new Error('refused'))),
    ).rejects.toThrow('refused');
    harmless(tracer).past('nodelease.renew', {}, 1);
    expect(calls).toBe(1);
  });

  it.each(BROKEN)(
    'that %s does not keep a lease from being acquired, renewed in time, and released',
    async (_, tracer) => {
      const clock = new VirtualClock();
      const store = new MemoryLeaseStore({ clock }, new MemoryBucket(clock, 1));
      const renewed: number[] = [];
      const released: string[] = [];
      const lease = await acquireLease({
        ...{
          clock,
          random: seededRandom(1),
          store,
          taskId: 'task',
          nodes: 1,
          durationMs: 15_000,
          graceMs: 1_000,
          tracer,
        },
        onEvent: ({ type }) => {
          if (type === 'renewed') renewed.push(clock.monotonic());
          if (type === 'released') released.push(type);
        },
      });
      await clock.advance(16_000);
      expect(renewed).toEqual([5_000, 10_000, 15_000]);
      expect(lease.isValid()).toBe(true);
      await lease.release();
      expect(released).toEqual(['released']);
    },
  );
});

it('a tracer measures acquiring, each renewal and the release, with what is known of them', async () => {
  const spans: object[] = [];
  const tracer: LeaseTracer = {
    span: (name, facts, run) => {
      const span = { name, ...facts };
      spans.push(span);
      return run((later) => void Object.assign(span, later));
    },
    past: (name, facts, tookMs, failure) => void spans.push({ name, ...facts, tookMs, failure }),
  };
  const clock = new VirtualClock();
  const store = new MemoryLeaseStore({ clock }, new MemoryBucket(clock, 1));
  const lease = await acquireLease({ clock, random: seededRandom(1), store, taskId: 'task', tracer });
  await clock.advance(6_000);
  await lease.release();
  harmless(tracer).past('nodelease.renew', { 'nodelease.node_id': 7 }, 5, 'so it failed');
  const facts = {
    ...{ 'nodelease.node_id': 0, 'nodelease.version': 1 },
    ...{ 'nodelease.task_id': 'task', 'nodelease.store': store.url },
  };
  expect(spans).toEqual([
    {
      ...{ name: 'nodelease.acquire', ...facts },
      ...{ 'nodelease.from': 'vacant', 'nodelease.requests': expect.any(Number) },
    },
    { name: 'nodelease.renew', ...facts },
    { name: 'nodelease.release', ...facts },
    { name: 'nodelease.renew', 'nodelease.node_id': 7, tookMs: 5, failure: 'so it failed' },
  ]);
});
