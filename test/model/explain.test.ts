import { describe, expect, it } from 'vitest';
import { simulate } from '../simulation/simulation.js';
import { explain } from './explain.js';
import type { Stops, TracedObject, TraceEvent } from './lease-trace.js';

const KEY = '0.json';
const DURATION_MS = 6_000;
const GRACE_MS = 1_000;

/** The life of one lease object, an event each millisecond, on tasks whose clocks are right. */
class Story {
  readonly events: TraceEvent[] = [
    { at: 0, kind: 'settings', key: '', durationMs: DURATION_MS, graceMs: GRACE_MS },
  ];
  #now = 0;
  #requests = 0;
  #etags = 0;

  get now(): number {
    return this.#now;
  }

  passes(ms: number): this {
    this.#now += ms;
    return this;
  }

  /** The object's etag. */
  get etag(): string {
    return `etag ${this.#etags}`;
  }

  /** @param meanwhile what happens while the answer is on its way */
  reads(task: string, age = 0, until?: number, meanwhile: () => void = () => undefined): this {
    const request = this.#request();
    this.events.push({ kind: 'asks', request, ...this.#of(task, until) });
    this.passes(1).events.push({
      kind: 'shown',
      at: this.#now,
      key: KEY,
      request,
      time: 0,
      etag: this.etag,
      age,
    });
    meanwhile();
    this.passes(1).events.push({ kind: 'hears', request, answer: 'read', time: 0, ...this.#of(task, until) });
    return this;
  }

  sends(
    task: string,
    object: TracedObject,
    { etag = this.etag, until }: { etag?: string; until?: number } = {},
  ): number {
    const request = this.#request();
    this.events.push({ kind: 'sends', request, object, etag, ...this.#of(task, until) });
    this.passes(1);
    return request;
  }

  applies(request: number): this {
    this.#etags += 1;
    this.events.push({ kind: 'applied', at: this.#now, key: KEY, request, etag: this.etag });
    return this.passes(1);
  }

  hears(task: string, request: number, answer: 'written' | 'conflict' | 'unknown'): this {
    this.events.push({ kind: 'hears', request, answer, time: 0, ...this.#of(task) });
    return this;
  }

  holds(task: string, until: number): this {
    this.events.push({ kind: 'holds', ...this.#of(task, until) });
    return this;
  }

  /** @returns until when it holds */
  acquires(task: string, version: number, age = 0): number {
    this.reads(task, age);
    const until = this.#now + DURATION_MS;
    const request = this.sends(task, held(version));
    this.applies(request).hears(task, request, 'written').holds(task, until);
    return until;
  }

  explained(stops: Stops = new Map()) {
    return explain({ vacant: new Map([[KEY, 'etag 0']]), events: this.events, stops });
  }

  get problem(): string | undefined {
    return this.explained().failure?.text;
  }

  #of(task: string, until?: number) {
    return { at: this.#now, key: KEY, task, clock: this.#now, until };
  }

  #request(): number {
    this.#requests += 1;
    return this.#requests;
  }
}

const held = (version: number, renewal = 0, durationMs = DURATION_MS): TracedObject => ({
  ...{ kind: 'held', version, durationMs, renewal },
  nonce: `tenure ${version}`,
});

describe('a trace', () => {
  it.each([
    ['after a duration and a grace', DURATION_MS + GRACE_MS + 1, undefined],
    [
      'not before',
      DURATION_MS + GRACE_MS,
      /^0\.json: task 2 has a read answered, which the model does not allow/,
    ],
  ])('has a take-over %s', (_, age, problem) => {
    const story = new Story();
    story.acquires('task 1', 1);
    story.passes(age).acquires('task 2', 2, age);
    if (problem === undefined) expect(story.problem).toBeUndefined();
    else expect(story.problem).toMatch(problem);
  });

  it('has a renewal whose reply is lost, is applied late, and is found', () => {
    const story = new Story();
    const until = story.acquires('task 1', 1);
    story.passes(2_000);
    const later = story.now + DURATION_MS;
    const renewal = story.sends('task 1', held(1, 1), { until });
    story.hears('task 1', renewal, 'unknown').reads('task 1', 0, until).applies(renewal);
    const again = story.sends('task 1', held(1, 2), { until, etag: 'etag 1' });
    story.hears('task 1', again, 'conflict').reads('task 1', 0, until);
    story.passes(1_000).sends('task 1', held(1, 3), { until: later });
    expect(story.problem).toBeUndefined();
  });

  it('has a claim that is found though an operator has taken the id away while the answer was on its way', () => {
    const story = new Story();
    story.reads('task 1');
    const until = story.now + DURATION_MS;
    const claim = story.sends('task 1', held(1));
    story.applies(claim).hears('task 1', claim, 'unknown');
    story.reads('task 1', 0, undefined, () => {
      story.reads('operator');
      story.applies(story.sends('operator', { kind: 'released', version: 2, durationMs: DURATION_MS }));
    });
    story.holds('task 1', until);
    expect(story.problem).toBeUndefined();
  });

  it.each<readonly [string, TracedObject, { etag?: string; late?: number; early?: number }, RegExp]>([
    ['with another duration', held(1, 1, 7_000), {}, /its duration is 7000 ms, that of the model 6000 ms/],
    ['with another version', held(2, 1), {}, /its version is 2, that of its tenure 1/],
    ['on an outdated etag', held(1, 1), { etag: 'etag 0' }, /an outdated etag, that of the model current/],
    ['past the stop point', held(1, 1), { late: 5_100 }, /task 1 sends a renewal of version 1/],
    [
      'by another deadline',
      held(1, 1),
      { early: 10 },
      /it believes for 3988\.000 ms, in the model for 3998\.000 ms/,
    ],
  ])('has no renewal %s', (_, object, { etag, late = 2_000, early = 0 }, problem) => {
    const story = new Story();
    const until = story.acquires('task 1', 1) - early;
    story.passes(late).sends('task 1', object, { until, ...(etag !== undefined && { etag }) });
    expect(story.problem).toMatch(problem);
  });

  it.each([
    [10, true],
    [300, false],
  ])('has a renewal past the stop point %d ms after a look of a real task: %s', (afterMs, isPath) => {
    const story = new Story();
    const until = story.acquires('task 1', 1);
    story.hears('task 1', story.passes(4_000).sends('task 1', held(1, 1), { until }), 'unknown');
    story.reads('task 1', 0, until, () => story.passes(1_100));
    story.passes(afterMs).sends('task 1', held(1, 2), { until });
    expect(story.explained().failure).toBeDefined();
    const { failure, late } = story.explained(new Map([['task 1', []]]));
    expect({ isPath: failure === undefined, late }).toEqual({ isPath, late: Number(isPath) });
  });

  it('has a renewal past the stop point where its task was stopped since its last event, and counts it', () => {
    const story = new Story();
    story.passes(1_000);
    const until = story.acquires('task 1', 1);
    const acquired = story.now;
    story.passes(5_100).sends('task 1', held(1, 1), { until });
    const stopped = (task: string, at: number) => story.explained(new Map([[task, [at]]]));
    expect(stopped('task 1', acquired + 10)).toMatchObject({ failure: undefined, late: 1 });
    for (const other of [
      stopped('task 1', acquired - 10),
      stopped('task 1', story.now + 10),
      stopped('task 2', acquired + 10),
    ])
      expect(other.failure?.text).toMatch(/task 1 sends a renewal of version 1/);
  });

  it('has one after a look where its task was stopped since it began that', () => {
    const story = new Story();
    const until = story.acquires('task 1', 1);
    const lost = story.passes(2_000).sends('task 1', held(1, 1), { until });
    story.hears('task 1', lost, 'unknown');
    const asked = story.passes(100).now;
    story.reads('task 1', 0, until, () => story.passes(3_000));
    story.passes(1).sends('task 1', held(1, 2), { until });
    expect(story.explained(new Map([['task 1', [asked + 10]]]))).toMatchObject({
      failure: undefined,
      late: 1,
    });
    expect(story.problem).toMatch(/task 1 sends a renewal of version 1/);
  });

  it('has no renewal without a look where one was refused', () => {
    const story = new Story();
    const until = story.acquires('task 1', 1);
    const refused = story.passes(2_000).sends('task 1', held(1, 1), { until });
    story.hears('task 1', refused, 'conflict').sends('task 1', held(1, 2), { until });
    expect(story.problem).toMatch(/task 1 sends a renewal .* and the task doubts/);
  });
});

describe('the simulation', () => {
  it('takes paths of the model', async () => {
    let events = 0;
    for (let seed = 0; seed < 12; seed += 1) {
      const { violation, explanation } = await simulate(seed, { tracing: true });
      expect(violation).toBeUndefined();
      events += explanation && 'events' in explanation ? explanation.events : 0;
    }
    expect(events).toBeGreaterThan(1_000);
  });
});
