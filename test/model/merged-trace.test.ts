import { beforeAll, describe, expect, it } from 'vitest';
import { acquireLease } from '../../src/core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../src/core/lease/model/lease.js';
import { evictHolder } from '../../src/core/lease/operate/evict.js';
import { initializeCluster } from '../../src/core/lease/operate/initialize.js';
import { StoreSession } from '../../src/core/lease/session/store-session.js';
import { StoreError } from '../../src/core/store/lease-store.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../src/core/store/memory/memory-lease-store.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../support/virtual-clock.js';
import { tracedObject } from './lease-trace.js';
import { explainRun, type KeptStates } from './merged-trace.js';
import { type TaskEvent, TaskRecorder } from './task-recorder.js';

// Tasks whose requests take time, and what they and the store have noted. The chaos run does the same with processes.

const KEY = '0.json';
const LATENCY_MS = 20;
const DURATION_MS = 3_000;
const GRACE_MS = 1_000;
/** How long after the engine has read its clock for a write the write is noted. */
const NOTED_LATE_MS = 0.3;

type Recorded = { [Kind in TaskEvent['kind']]: Extract<TaskEvent, { kind: Kind }> };
type Events = Record<string, TaskEvent[]>;

/** A run on one node id. */
class Run {
  readonly clock = new VirtualClock();
  readonly random = seededRandom(1);
  readonly events: Events = {};
  readonly kept = { settings: [] as string[], leases: new Map<string, string[]>() };
  /** The next reply to a write is lost. */
  losesReply = false;
  readonly #cutOff = new Set<string>();
  readonly #store = new MemoryLeaseStore(
    { clock: this.clock, remote: true },
    new MemoryBucket(this.clock, 1),
  );

  async initialize(): Promise<void> {
    const { clock, random } = this;
    const wanted = { nodes: 1, durationMs: DURATION_MS, graceMs: GRACE_MS };
    const session = this.#session('operator');
    await inVirtualTime(clock, initializeCluster({ session, clock, random, wanted }));
  }

  acquire(task: string): Promise<Lease> {
    const noted: TaskEvent[] = [];
    this.events[task] = noted;
    const recorder = new TaskRecorder(
      () => this.clock.monotonic(),
      (event) => noted.push({ ...event, at: event.at + (event.kind === 'sends' ? NOTED_LATE_MS : 0) }),
    );
    const { clock, random } = this;
    const store = recorder.follow(this.#store.connect(this.#network(task)));
    const acquired = acquireLease({
      ...{ store, clock, random, taskId: task },
      onEvent: (event) => event.type === 'lost' && recorder.onLost(event.error),
    });
    return inVirtualTime(
      clock,
      acquired.then((lease) => {
        recorder.onAcquired(lease);
        return lease;
      }),
    );
  }

  cut(task: string): void {
    this.#cutOff.add(task);
  }

  evict(): Promise<unknown> {
    return inVirtualTime(this.clock, evictHolder(this.#session('operator'), 0));
  }

  #session(name: string): StoreSession {
    return new StoreSession(this.#store.connect(this.#network(name)), this.clock, 1_000);
  }

  #network(task: string): MemoryIntercept {
    return async (call, apply) => {
      if (this.#cutOff.has(task)) await this.clock.sleep(1e9);
      await this.clock.sleep(LATENCY_MS);
      const reply = apply();
      const isWrite = call.operation === 'create' || call.operation === 'replace';
      if (isWrite && (reply as { status?: string }).status === 'written') this.#keep(call.key, call.body);
      await this.clock.sleep(LATENCY_MS);
      if (!isWrite || !this.losesReply || call.key !== KEY) return reply;
      this.losesReply = false;
      throw new StoreError('the reply is lost', { fault: 'unreachable', outcome: 'unknown' });
    };
  }

  #keep(key: string, body: string): void {
    if (key === 'cluster.json') this.kept.settings.push(body);
    if (key === KEY) this.kept.leases.set(KEY, [...(this.kept.leases.get(KEY) ?? []), body]);
  }
}

let run: Run;
beforeAll(async () => {
  run = new Run();
  const { clock } = run;
  await run.initialize();
  await run.acquire('one');
  await clock.advance(2_500);
  run.losesReply = true;
  await clock.advance(4_000);
  run.cut('one');
  const two = await run.acquire('two');
  await clock.advance(1_500);
  await inVirtualTime(clock, two.release());
  await run.acquire('three');
  await clock.advance(1_500);
  await run.evict();
  await clock.advance(1_500);
  const four = await run.acquire('four');
  await inVirtualTime(clock, four.release());
});

/** What is said of the run, with changes in what was noted. */
function explained(change: (events: Events, kept: KeptStates) => void = () => undefined) {
  const events = structuredClone(run.events);
  const kept = structuredClone(run.kept);
  change(events, kept);
  return explainRun(new Map(Object.entries(events)), kept);
}

function find<Kind extends TaskEvent['kind']>(
  events: Events,
  task: string,
  kind: Kind,
  which: (event: Recorded[Kind]) => boolean = () => true,
) {
  const found = events[task]?.find((event) => event.kind === kind && which(event as Recorded[Kind]));
  if (found === undefined) throw new Error(`${task} has noted no such event`);
  return found as { -readonly [Field in keyof Recorded[Kind]]: Recorded[Kind][Field] };
}

const isHeld = ({ body }: { readonly body?: string | undefined }) => body?.includes('"taskId"') === true;
const isTombstone = ({ body }: { readonly body: string }) => body.includes('"released"');

describe('a run of several tasks', () => {
  it('is a path of the model: a lost reply, a take-over, a release, a forced release', () => {
    const { failure, ...counts } = explained();
    expect(failure).toBeUndefined();
    expect(counts).toMatchObject({ objects: 1, tasks: 4, forced: 1, unheard: 1, late: 0, leftOut: {} });
    expect(counts.events).toBeGreaterThan(40);
  });

  it('is one where a task that got its answer late renews before it notes that it holds', () => {
    const { failure } = explained((events) => {
      const holds = find(events, 'one', 'holds');
      const renews = find(events, 'one', 'sends', ({ at }) => at > holds.at);
      const others = events.one?.filter((event) => event !== holds) ?? [];
      others.splice(others.indexOf(renews) + 1, 0, { ...holds, at: renews.at + 0.1 });
      delete renews.until;
      events.one = others;
    });
    expect(failure).toBeUndefined();
  });

  it.each<readonly [string, Parameters<typeof explained>[0], RegExp]>([
    [
      'a claim of a lease that is too young',
      (events) => {
        const { at } = find(events, 'two', 'sends');
        const last = events.two?.findLast((event) => event.kind === 'hears' && event.at <= at);
        Object.assign(last ?? {}, { age: DURATION_MS + GRACE_MS });
      },
      /two has a read answered, which the model does not allow/,
    ],
    [
      'a claim of a lease that is younger than the store says',
      (events) => {
        for (const event of events.two ?? []) Object.assign(event, { at: event.at - 500 });
      },
      /two has a read answered, which the model does not allow/,
    ],
    [
      'a claim on another etag',
      (events) => {
        find(events, 'two', 'sends').etag = 'another';
      },
      /two sends a claim of version 2, .*its condition is an outdated etag, that of the model current/,
    ],
    [
      'a belief that counts from later than the request',
      (events) => {
        const { until = 0 } = find(events, 'one', 'holds');
        for (const event of events.one ?? [])
          if (event.until === until) Object.assign(event, { until: until + 1 });
      },
      /one holds it, .*it believes for .* ms, in the model for/,
    ],
    [
      'a hold after the deadline',
      (events) => {
        const holds = find(events, 'one', 'holds');
        const last = events.one?.at(-1)?.at ?? 0;
        events.one?.push({ ...holds, at: last + DURATION_MS });
      },
      /one holds it, which the model does not allow/,
    ],
    [
      'a tombstone before the work has ended',
      (events) => {
        const sends = find(events, 'two', 'sends', isTombstone);
        sends.until = sends.at + 1_000;
      },
      /two sends a release .*it still believes in its lease/,
    ],
    [
      'a lease that is given up as taken, though its object shows the own write',
      (events) => {
        const look = find(events, 'one', 'hears', (event) => event.answer === 'read' && isHeld(event));
        const at = look.at + 1;
        const index = events.one?.indexOf(look) ?? 0;
        events.one?.splice(index + 1, 0, { kind: 'loses', toAnother: true, key: KEY, at });
      },
      /one loses it, which the model does not allow/,
    ],
    [
      'a write that no task has sent',
      (events) => {
        events.three = events.three?.filter(({ kind }) => kind !== 'sends') ?? [];
      },
      /no task has written .*"taskId":"three"/,
    ],
    [
      'a read of a state after the next one is known to be written',
      (events, { leases }) => {
        const read = find(events, 'four', 'hears', ({ answer }) => answer === 'read');
        read.body = leases.get(KEY)?.[1];
      },
      /one hears of its write of version 1 too early: four reads an earlier state/,
    ],
    [
      'a forced release of a lease that has not expired, as if it had',
      (events, { leases }) => {
        const expired = (body: string) =>
          body.includes('"released"') ? body.replace(/,"durationMs":\d+/, '') : body;
        (leases as Map<string, string[]>).set(KEY, leases.get(KEY)?.map(expired) ?? []);
        for (const event of Object.values(events).flat())
          if (event.kind === 'hears' && event.body) Object.assign(event, { body: expired(event.body) });
      },
      /an operator .*forced release of version 4/,
    ],
    [
      'the same one where no task has read the object since',
      (events, { leases }) => {
        const isEviction = (body: string) => tracedObject(body).version === 4;
        const seen = Object.values(events)
          .flat()
          .filter((event) => event.kind === 'hears' && isEviction(event.body ?? ''));
        const end = Math.min(...seen.map(({ at }) => at));
        for (const [task, own] of Object.entries(events)) events[task] = own.filter(({ at }) => at < end);
        const kept = (leases.get(KEY) ?? []).filter((body) => tracedObject(body).version <= 4);
        const expired = kept.map((body) => (isEviction(body) ? body.replace(/,"durationMs":\d+/, '') : body));
        (leases as Map<string, string[]>).set(KEY, expired);
      },
      /an operator .*forced release of version 4/,
    ],
    [
      'a claim that is kept, though it was heard not to be applied',
      (events) => {
        find(events, 'two', 'hears', ({ answer }) => answer === 'written').answer = 'not applied';
      },
      /two hears 'not applied' of its write of version 2, which is kept/,
    ],
    [
      'a release that is kept, though it was heard to be refused',
      (events) => {
        const { request } = find(events, 'two', 'sends', isTombstone);
        find(events, 'two', 'hears', (event) => event.request === request).answer = 'conflict';
      },
      /two hears 'conflict' of its write of version 2, which is kept/,
    ],
  ])('is none with %s', (_, change, text) => {
    expect(explained(change).failure?.text).toMatch(text);
  });
});
