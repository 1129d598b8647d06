import { describe, expect, it } from 'vitest';
import { onceFleet } from '../../../test/support/once-fleet.js';
import {
  type Network,
  ofTick,
  onceScene,
  UNREACHABLE,
  writesTick,
} from '../../../test/support/once-scene.js';
import { inVirtualTime, seededRandom, type VirtualClock } from '../../../test/support/virtual-clock.js';
import type { MemoryCall } from '../../core/store/memory/memory-lease-store.js';
import type { OnceOptions } from './once.js';

const HOUR = 3_600_000;
const KILLED = new Error('killed');
const FORGET = /nodelease once NAME --forget/;

/** Moves the clock to so long after a full hour of store time. */
async function toHour(clock: VirtualClock, ms = 0) {
  await clock.advance((HOUR - (clock.now() % HOUR) + ms + HOUR) % HOUR);
}

async function hourly(options?: Parameters<typeof onceScene>[0]) {
  const scene = onceScene(options);
  await toHour(scene.clock, 60_000);
  const once = (host: ReturnType<typeof scene.process>, options: Partial<OnceOptions> = {}) =>
    inVirtualTime(scene.clock, host.once({ every: '1h', ...options }));
  return { ...scene, once, tick: scene.clock.now() - 60_000 };
}

describe('a tick', () => {
  it('runs at the first host that asks for it, under a lock, and at no other one', async () => {
    const { process, once, record, tick } = await hourly();
    const [a, b] = [process(), process({ offMs: -HOUR })];
    const run = await once(a);
    expect(run).toMatchObject({ name: 'nightly', token: 1n, tick, attempt: 1, missed: 0, isCatchUp: false });
    expect([run?.isValid(), run?.signal.aborted]).toEqual([true, false]);
    expect(record()).toMatchObject({ tick, attempt: 1, token: 1, taskId: a.taskId, schedule: 'every 1h' });
    expect(record()?.outcome).toBeUndefined();
    expect(await once(b)).toBeUndefined();
    expect(await run?.complete()).toBe(true);
    expect(record()).toMatchObject({ tick, outcome: 'succeeded', taskId: a.taskId });
    await run?.[Symbol.asyncDispose]();
    expect(record()).toMatchObject({ outcome: 'succeeded' });
    expect(await once(b)).toBeUndefined();
    expect([a.open(), b.open()]).toEqual([0, 0]);
  });

  it('is recorded as failed where the run is disposed of, and does not run again', async () => {
    const { process, once, record } = await hourly();
    await (await once(process()))?.[Symbol.asyncDispose]();
    expect(record()).toMatchObject({ outcome: 'failed' });
    expect(await once(process())).toBeUndefined();
  });

  it('is waited for a moment where the one before it has run: a cron may be early (rule O8)', async () => {
    const { process, once, clock, tick } = await hourly();
    await (await once(process()))?.complete();
    await toHour(clock, -310_000);
    expect(await once(process())).toBeUndefined();
    await toHour(clock, -200_000);
    const next = await once(process());
    expect(next?.tick).toBe(tick + HOUR);
    expect(clock.now()).toBeGreaterThanOrEqual(tick + HOUR);
    await next?.complete();
  });

  it('is reported with how many before it have run nowhere, and the latest of these runs first where that is asked for', async () => {
    const { process, once, clock, record, tick } = await hourly();
    await (await once(process()))?.complete();
    await clock.advance(4 * HOUR);
    const late = await once(process(), { catchUp: true });
    expect(late).toMatchObject({ tick: tick + 3 * HOUR, missed: 2, isCatchUp: true });
    await late?.complete();
    const due = await once(process(), { catchUp: true });
    expect(due).toMatchObject({ tick: tick + 4 * HOUR, missed: 0, isCatchUp: false });
    await due?.complete();
    expect(await once(process(), { catchUp: true })).toBeUndefined();
    await clock.advance(3 * HOUR);
    const next = await once(process());
    expect(next).toMatchObject({ tick: tick + 7 * HOUR, missed: 2, previous: { tick: tick + 4 * HOUR } });
    await next?.complete();
    expect(record()).toMatchObject({ missed: 2 });
  });

  it('is the first one of a schedule that begins after what was claimed before', async () => {
    const { process, once, clock } = await hourly();
    await (await once(process()))?.complete();
    const year = new Date(clock.now()).getUTCFullYear() + 1;
    await clock.advance(Date.UTC(year) + 60_000 - clock.now());
    const run = await once(process(), { every: undefined, cron: `0 0 0 * * * ${year}` });
    expect(run).toMatchObject({ tick: Date.UTC(year), missed: 0 });
    await run?.complete();
  });

  it('is waited for during a long run until the next one is due, and is missed then', async () => {
    const { process, once, clock, tick } = await hourly();
    const long = await once(process());
    await clock.advance(HOUR);
    const waiting = process().once({ every: '1h' });
    await clock.advance(50 * 60_000);
    const begun = clock.monotonic();
    expect(await inVirtualTime(clock, waiting)).toBeUndefined();
    expect(clock.monotonic() - begun).toBeLessThan(20 * 60_000);
    await long?.complete();
    const next = await once(process());
    expect(next).toMatchObject({ tick: tick + 2 * HOUR, missed: 1 });
    await next?.complete();
  });

  it.each(['1s', '3s'])('every %s is not waited for again where store time is that vague', async (every) => {
    const { process, bucketAt, clock } = onceScene({ resolutionMs: 1_000 });
    await (await inVirtualTime(clock, process().once({ every })))?.complete();
    const bucket = bucketAt('locks/nightly');
    const { body = '' } = bucket.read('tick.json') ?? {};
    const claimed = () => {
      const tick = `"tick":${clock.now() - (clock.now() % 1_000)}`;
      bucket.replace('tick.json', body.replace(/"tick":\d+/, tick), {}, `${bucket.read('tick.json')?.etag}`);
    };
    let isOver = false;
    void process()
      .once({ every })
      .then((run) => {
        isOver = run === undefined;
      });
    for (let second = 0; second < 20; second += 1) {
      claimed();
      await clock.advance(1_000);
    }
    expect(isOver).toBe(true);
  });

  it('is waited for besides the time for the lock', async () => {
    const { process, once, clock, tick } = await hourly();
    const long = await once(process());
    await toHour(clock, -200_000);
    const early = process().once({ every: '1h', timeoutMs: 60_000 });
    early.catch(() => undefined);
    await clock.advance(230_000);
    await long?.complete();
    const next = await inVirtualTime(clock, early);
    expect(next).toMatchObject({ tick: tick + HOUR, missed: 0 });
    await next?.complete();
  });

  it('has its lock waited for as long as was asked, whatever it waits so that not all hosts ask at once', async () => {
    const { process, once, clock, tick } = await hourly();
    const long = await once(process());
    await toHour(clock);
    const late = Object.assign(seededRandom(1), { next: () => 0.999 });
    const next = process().once({ every: '1h', timeoutMs: 3_000, random: late });
    next.catch(() => undefined);
    await clock.advance(6_000);
    await long?.complete();
    expect(await inVirtualTime(clock, next)).toMatchObject({ tick: tick + HOUR });
  });

  it('is kept from a host with the schedule of another parser', async () => {
    const { process, once, tick } = await hourly();
    await (await once(process(), { every: '1h' }))?.complete();
    expect(await once(process(), { every: '1h', offset: '1s' })).toBeUndefined();
    expect(tick % HOUR).toBe(0);
  });
});

describe('a claim', () => {
  /** The first so many writes of a tick are applied, or not, and their replies are lost. */
  const losing = (count: number, applied: boolean): Network => {
    let left = count;
    return async (call, apply) => {
      if (!writesTick(call) || left <= 0) return apply();
      left -= 1;
      if (applied) apply();
      throw UNREACHABLE;
    };
  };
  const writes = (host: { calls: readonly MemoryCall[] }) => host.calls.filter(writesTick).length;

  it.each([
    ['was applied', true, 1],
    ['was not applied', false, 4],
  ])(
    'whose reply is lost is read back, and sent again until it is known: it %s',
    async (_, applied, sent) => {
      const { process, once, record } = await hourly();
      const host = process({ network: losing(3, applied) });
      const run = await once(host);
      expect([run?.attempt, writes(host)]).toEqual([1, sent]);
      await run?.complete();
      expect(record()).toMatchObject({ attempt: 1, outcome: 'succeeded' });
    },
  );

  it.each([
    ['is refused', false],
    ['would let a tick run twice, if the store ignored its etag', true],
  ])('that arrives after the next tick has run %s', async (_, careless) => {
    const { process, once, clock, tick } = await hourly({ careless });
    await (await once(process()))?.complete();
    await clock.advance(HOUR);
    const killed = new AbortController();
    let arrive: () => unknown = () => undefined;
    const host = process({
      network: async (call, apply) => {
        if (!writesTick(call)) return apply();
        arrive = apply;
        killed.abort(KILLED);
        throw UNREACHABLE;
      },
    });
    await expect(once(host, { signal: killed.signal })).rejects.toBe(KILLED);
    await clock.advance(HOUR);
    await (await once(process()))?.complete();
    arrive();
    expect((await once(process()))?.tick).toBe(careless ? tick + 2 * HOUR : undefined);
  });

  it('that stays unknown starts nothing, and fails after the timeout', async () => {
    const { process, once } = await hourly();
    let isCut = false;
    const host = process({
      network: async (call, apply) => {
        isCut ||= writesTick(call);
        if (isCut && ofTick(call)) throw UNREACHABLE;
        return apply();
      },
    });
    await expect(once(host, { timeoutMs: 20_000 })).rejects.toMatchObject({
      code: 'WAIT_TIMEOUT',
      message: 'whether this task has the tick of nightly is unknown',
    });
    expect(host.open()).toBe(0);
    expect(await once(process())).toBeDefined();
  });

  it('after which the lock has expired starts nothing, and with retry the tick runs elsewhere', async () => {
    const { process, once, clock, record } = await hourly();
    const freezing: Network = async (call, apply) => {
      const reply = apply();
      if (writesTick(call)) clock.freeze(15_000);
      return reply;
    };
    await expect(once(process({ network: freezing }))).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(record()).toMatchObject({ attempt: 1 });
    expect(await once(process())).toBeUndefined();
    const again = await once(process(), { retry: 1 });
    expect(again).toMatchObject({ attempt: 2, previous: { attempt: 1 } });
    await again?.complete();
  });
});

describe('with retry, a tick', () => {
  it('runs again after a failure, so often and no more, also at a host that has waited for the first run', async () => {
    const { process, once, clock, record } = await hourly();
    const first = await once(process(), { retry: 1 });
    const waiting = process().once({ every: '1h', retry: 1 });
    await clock.advance(5 * 60_000);
    await first?.[Symbol.asyncDispose]();
    const second = await inVirtualTime(clock, waiting);
    expect(second).toMatchObject({ attempt: 2, token: 2n });
    await second?.[Symbol.asyncDispose]();
    expect(await once(process(), { retry: 1 })).toBeUndefined();
    expect(record()).toMatchObject({ attempt: 2, outcome: 'failed' });
  });

  it('ends the wait of the other hosts with its success', async () => {
    const { process, once, clock } = await hourly();
    const first = await once(process(), { retry: 1 });
    const waiting = process().once({ every: '1h', retry: 1 });
    await clock.advance(60_000);
    await first?.complete();
    expect(await inVirtualTime(clock, waiting)).toBeUndefined();
  });

  it('is claimed again, and no later one, where it is asked for', async () => {
    const { process, once, clock, record, tick } = await hourly();
    await (await once(process(), { retry: 2 }))?.release();
    const second = await once(process(), { retry: 2, tick });
    expect(second).toMatchObject({ attempt: 2, tick });
    await toHour(clock, -60_000);
    await second?.release();
    // The next one comes in a minute: another call waits for it.
    expect(await once(process(), { retry: 1, tick })).toBeUndefined();
    expect(clock.now()).toBeLessThan(tick + HOUR);
    await toHour(clock, 1_000);
    expect(await once(process(), { retry: 2, tick })).toBeUndefined();
    expect(record()).toMatchObject({ tick, attempt: 2 });
    expect(await once(process(), { retry: 2 })).toMatchObject({ attempt: 1, tick: tick + HOUR });
  });

  it('is claimed again as often where another schedule had claimed it a little earlier', async () => {
    const { process, once, clock, tick } = await hourly();
    await (await once(process()))?.release();
    await clock.advance(5 * 60_000);
    for (const attempt of [2, 3]) {
      const run = await once(process(), { offset: '5m', retry: 2, tick: attempt > 2 ? tick : undefined });
      expect(run).toMatchObject({ attempt, tick });
      await run?.release();
    }
  });

  it('is not claimed again where it is over when the lock is free', async () => {
    const { process, once, clock, record, tick } = await hourly();
    await (await once(process(), { retry: 1 }))?.release();
    await toHour(clock, -8_000);
    let isHeld = false;
    const host = process({
      network: async (call, apply) => {
        if (isHeld && ofTick(call) === 'read' && clock.now() < tick + HOUR) throw UNREACHABLE;
        isHeld ||= call.operation === 'replace';
        return apply();
      },
    });
    expect(await once(host, { retry: 1, tick })).toBeUndefined();
    expect(isHeld).toBe(true);
    expect(record()).toMatchObject({ tick, attempt: 1 });
  });

  it('has not succeeded once it was given up', async () => {
    const { process, once, record } = await hourly();
    const run = await once(process(), { retry: 1 });
    await run?.release();
    expect(await run?.complete()).toBe(false);
    expect(record()).toMatchObject({ outcome: 'failed' });
  });

  it('is not released before its success is known to be recorded (rule O6)', async () => {
    const { process, once, clock, bucketAt, record } = await hourly();
    let isCut = false;
    const host = process({
      network: async (call, apply) => {
        if (isCut && writesTick(call)) throw UNREACHABLE;
        return apply();
      },
    });
    const run = await once(host, { retry: 1 });
    isCut = true;
    const ending = run?.complete();
    await clock.advance(60_000);
    expect(JSON.parse(bucketAt('locks/nightly').read('0.json')?.body ?? '')).toMatchObject({
      version: 1,
      taskId: host.taskId,
    });
    isCut = false;
    expect(await inVirtualTime(clock, Promise.resolve(ending))).toBe(true);
    expect(record()).toMatchObject({ outcome: 'succeeded' });
    expect(bucketAt('locks/nightly').read('0.json')?.body).toMatch(/"released":true/);
  });
});

describe('a damaged tick.json', () => {
  it.each([
    [
      'of a tick in the future',
      (body: string) => body.replace(/"tick":\d+/, `"tick":${4e12}`),
      'has a tick in the future',
    ],
    ['that is no JSON', () => 'x', 'is not JSON'],
    ['without a tick', () => '{}', 'has no usable "tick"'],
    ['with a text as a number', (body: string) => body.replace('"missed":0', '"missed":"0"'), '"missed"'],
    [
      'with an object that cannot be shown',
      (body: string) => body.replace(/"taskId":"[^"]+"/, '"taskId":{"toString":1}'),
      'has no usable "taskId": expected a non-empty string, got {"toString":1}',
    ],
    ['that is gone', undefined, 'is gone'],
  ])('%s is refused with advice, and runs nothing; --forget mends it', async (_, spoil, problem) => {
    const { process, once, bucketAt, clock } = await hourly();
    await (await once(process()))?.complete();
    const bucket = bucketAt('locks/nightly');
    const { body, etag } = bucket.read('tick.json') ?? { body: '', etag: '' };
    if (spoil) bucket.replace('tick.json', spoil(body), {}, etag);
    else bucket.remove('tick.json');
    const refused = once(process());
    await expect(refused).rejects.toMatchObject({
      code: 'CLUSTER_DAMAGED',
      message: expect.stringContaining(problem),
    });
    await expect(refused).rejects.toThrow(FORGET);
    const { forgetTicks } = await import('./once.js');
    const host = process();
    const forgotten = await forgetTicks(host.store, {
      name: 'nightly',
      every: '1h',
      clock,
      taskId: 'operator',
    });
    expect(forgotten).toBe(clock.now() - (clock.now() % HOUR));
    expect(host.open()).toBe(0);
    expect(await once(process())).toBeUndefined();
    await clock.advance(HOUR);
    expect(await once(process())).toMatchObject({ tick: forgotten + HOUR, missed: 0 });
  });

  it('is never forgotten for an earlier tick, which another schedule has', async () => {
    const { process, once, record, clock, tick } = await hourly();
    await (await once(process()))?.complete();
    const { forgetTicks } = await import('./once.js');
    const options = { name: 'nightly', every: '366d', clock, taskId: 'operator' };
    expect(await forgetTicks(process().store, options)).toBe(tick);
    expect(record()).toMatchObject({ tick, outcome: 'forgotten' });
    expect(await once(process())).toBeUndefined();
  });

  it('is never forgotten for an earlier tick while the claimed one may come: store time may have gone back', async () => {
    const { process, once, record, bucketAt, clock, tick } = await hourly();
    await (await once(process()))?.complete();
    const bucket = bucketAt('locks/nightly');
    const { body, etag } = bucket.read('tick.json') ?? { body: '', etag: '' };
    const next = tick + HOUR;
    bucket.replace('tick.json', body.replace(`"tick":${tick}`, `"tick":${next}`), {}, etag);
    const { forgetTicks } = await import('./once.js');
    const options = { name: 'nightly', every: '1h', clock, taskId: 'operator' };
    expect(await forgetTicks(process().store, options)).toBe(next);
    expect(record()).toMatchObject({ tick: next, outcome: 'forgotten' });
    await clock.advance(HOUR);
    expect(await once(process())).toBeUndefined();
  });

  it('is nothing to forget where no task has used the lock', async () => {
    const { forgetTicks } = await import('./once.js');
    const { process, clock } = await hourly();
    const options = { name: 'nightly', every: '1h', clock, taskId: 'operator' };
    await expect(forgetTicks(process().store, options)).rejects.toMatchObject({ code: 'CLUSTER_MISSING' });
  });
});

it('a store that says no time is refused', async () => {
  const { process, clock } = await hourly();
  const host = process();
  const { oncePer } = await import('./once.js');
  const timeless = (path: string) => {
    const store = host.store(path);
    const list = store.list.bind(store);
    store.list = async () => ({ ...(await list()), storeTime: { min: 0, max: Number.POSITIVE_INFINITY } });
    return store;
  };
  const asked = oncePer(timeless, { name: 'nightly', every: '1h', clock, taskId: 'me' });
  await expect(inVirtualTime(clock, asked)).rejects.toMatchObject({ code: 'STORE_UNSUPPORTED' });
});

it('is refused in the place of a lock, where it would be another one', async () => {
  const { oncePer } = await import('./once.js');
  const asked = oncePer('file:absent/locks/report', { name: 'report', every: '1h' });
  await expect(asked).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting: 'store' });
});

it.each<[string, object, string]>([
  ['options', { retries: 2 }, 'the nearest is retry'],
  ['retry', { retry: -1 }, '0 to 1000, got -1'],
  ['retry', { retry: 'yes' }, 'got "yes"'],
  ['catchUp', { catchUp: 1 }, 'true or false'],
  ['name of the lock', { name: 'a/b' }, 'got "a/b"'],
  ['every', { every: undefined }, 'a period such as 1d or a cron expression'],
  ['every', { cron: '* * * * *' }, 'and not both'],
  ['cron', { every: undefined, cron: '* *' }, 'a cron expression (CronPattern'],
  ['tz', { every: undefined, cron: '* * * * *', tz: 'Mars' }, 'such as Europe/Berlin, got "Mars"'],
  ['timeoutMs', { timeoutMs: -1 }, 'at least 0'],
])('names the option that is wrong, and what was expected: %s in %j', async (setting, options, expected) => {
  const { process } = onceScene();
  const host = process();
  await expect(host.once({ every: '1h', ...options })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    setting,
    message: expect.stringContaining(expected),
  });
  expect(host.calls).toEqual([]);
});

it('refuses options that are getters of a class, which it would not see', async () => {
  const { oncePer } = await import('./once.js');
  class Settings {
    readonly name = 'report';
    readonly every = '1h';
    get timeoutMs() {
      return 0;
    }
  }
  await expect(oncePer('memory:', new Settings())).rejects.toThrow(
    'options: expected only own properties, not a getter of a class, got "timeoutMs"',
  );
});

it('five hosts with clocks an hour off, that are killed and lose replies, start each tick once', async () => {
  const { runs, startsOf } = await onceFleet({ ticks: 60, seed: 3 });
  expect([...startsOf.values()].filter((starts) => starts.length > 1)).toEqual([]);
  expect(runs.length).toBeGreaterThan(55);
});
