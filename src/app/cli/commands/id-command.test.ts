import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { settled, type VirtualClock } from '../../../../test/support/virtual-clock.js';
import { cluster16, snowflake } from '../../../core/id/id-layout.js';
import type { IdsExhaustedError } from '../../../core/id/id-time.js';
import { UniqueIdGenerator } from '../../../core/id/unique-id-generator.js';
import { printIds, readIdOptions } from './id-command.js';

const NEVER = new AbortController().signal;
const unexpected = () => expect.fail('a drought');

/** 256 ids a millisecond, none ahead of the time. */
function generator(
  clock: VirtualClock,
  check: () => void = () => undefined,
  laterMs = -1,
): UniqueIdGenerator {
  const time = {
    now: () => clock.now(),
    after: clock.now() + laterMs,
    before: () => Number.POSITIVE_INFINITY,
    check,
  };
  return new UniqueIdGenerator({ layout: cluster16(8), node: 8, time, clock, lagMs: 0, advanceMs: 0 });
}

const lines = (text: string) => text.split('\n').slice(0, -1);

describe('ids that are printed', () => {
  it('stand one on a line, in the format that is asked for', async () => {
    const io = capturedIo();
    expect(await printIds(generator(io.clock), { count: 3, format: 'base32' }, io, NEVER, unexpected)).toBe(
      true,
    );
    expect(io.answer()).toMatch(/^([0-9A-HJKMNP-TV-Z]{13}\n){3}$/);
  });

  it('are waited for where the generator has no more: each is printed once, all of them in order', async () => {
    const io = capturedIo();
    const printing = printIds(generator(io.clock), { count: 1_000, format: 'hex' }, io, NEVER, unexpected);
    await settled();
    expect(lines(io.answer())).toHaveLength(256);
    await io.clock.advance(2);
    expect(lines(io.answer())).toHaveLength(768);
    await io.clock.advance(1);
    expect(await printing).toBe(true);
    const printed = lines(io.answer());
    expect(printed).toHaveLength(1_000);
    expect(printed).toEqual([...new Set(printed)].sort());
  });

  it('are said to be waited for when none has come for 5 seconds, with the reason, and then once a minute', async () => {
    const io = capturedIo();
    const ids = generator(io.clock, undefined, 150_000);
    const reports: [at: number, detail: string, waitMs: number][] = [];
    const report = ({ detail, waitMs }: IdsExhaustedError) =>
      reports.push([io.clock.monotonic(), detail, waitMs]);
    const printing = printIds(ids, { count: 300, format: 'hex' }, io, NEVER, report);
    await io.clock.advance(150_000);
    expect(io.answer()).toBe('');
    expect(reports.map(([at, , waitMs]) => [at, waitMs])).toEqual([
      [5_000, 60_000],
      [65_000, 60_000],
      [125_000, 25_001],
    ]);
    expect(reports[0]?.[1]).toContain(`may have used it up to ${new Date(1_700_000_150_000).toISOString()}`);
    await io.clock.advance(10);
    expect(await printing).toBe(true);
    expect(lines(io.answer())).toHaveLength(300);
    expect(reports).toHaveLength(3);
  });

  it('are not said to be waited for where it is the reader that takes its time', async () => {
    const io = capturedIo();
    const slow = { ...io, taken: () => io.clock.sleep(20_000).then(() => true) };
    const ids = generator(io.clock);
    const drained = new BigUint64Array(256);
    // Nothing at first, some ids then, and nothing again when they have been taken: the first two of 3 s
    // each.
    const fill = (target: BigUint64Array, offset?: number, count?: number) => {
      if (io.clock.monotonic() % 20_000 < 3_000) ids.fill(drained);
      return ids.fill(target, offset, count);
    };
    const printing = printIds({ fill }, { count: 300, format: 'hex' }, slow, NEVER, unexpected);
    for (let second = 0; second < 60; second += 1) await io.clock.advance(1_000);
    expect(await printing).toBe(true);
  });

  it('are made no faster than the reader takes them', async () => {
    const io = capturedIo();
    let take: (isRead: boolean) => void = () => undefined;
    const slow = { ...io, taken: () => new Promise<boolean>((resolve) => (take = resolve)) };
    const printing = printIds(generator(io.clock), { count: 300, format: 'hex' }, slow, NEVER, unexpected);
    for (let i = 0; i < 5; i += 1) await io.clock.advance(100);
    expect(lines(io.answer())).toHaveLength(256);
    take(true);
    await io.clock.advance(100);
    take(true);
    expect(await printing).toBe(true);
    expect(lines(io.answer())).toHaveLength(300);
  });

  it('are objects of JSON where that is wanted, one on a line, with the id as a text', async () => {
    const io = capturedIo();
    const wanted = { count: 2, format: 'hex', json: true } as const;
    expect(await printIds(generator(io.clock), wanted, io, NEVER, unexpected)).toBe(true);
    expect(lines(io.answer()).map((line) => JSON.parse(line))).toEqual([
      { id: expect.stringMatching(/^[0-9a-f]{16}$/) },
      { id: expect.stringMatching(/^[0-9a-f]{16}$/) },
    ]);
  });

  it('end with the reader', async () => {
    const io = capturedIo();
    expect(
      await printIds(
        generator(io.clock),
        { count: 10_000, format: 'hex' },
        { ...io, taken: async () => false },
        NEVER,
        unexpected,
      ),
    ).toBe(false);
    expect(lines(io.answer())).toHaveLength(256);
  });

  it('end at once when they are interrupted while waiting, and leave no timer behind', async () => {
    const io = capturedIo();
    const interrupt = new AbortController();
    const printing = printIds(
      generator(io.clock),
      { count: 1_000, format: 'hex' },
      io,
      interrupt.signal,
      unexpected,
    );
    await settled();
    interrupt.abort(new Error('enough'));
    await expect(printing).rejects.toThrow('enough');
    // What the generator itself sleeps ends by itself.
    await io.clock.advance(100);
    expect(io.clock.sleepers).toBe(0);
  });

  it('end at once when they are interrupted, also where the reader has stopped reading', async () => {
    const io = { ...capturedIo(), taken: () => new Promise<boolean>(() => undefined) };
    const interrupt = new AbortController();
    const printing = printIds(
      generator(io.clock),
      { count: 1, format: 'hex' },
      io,
      interrupt.signal,
      unexpected,
    );
    await settled();
    interrupt.abort(new Error('enough'));
    await expect(printing).rejects.toThrow('enough');
  });

  it('end with the error of a generator that may make no more', async () => {
    const io = capturedIo();
    const lost = new Error('lost');
    const ids = generator(io.clock, () => {
      throw lost;
    });
    await expect(printIds(ids, { count: 1, format: 'hex' }, io, NEVER, unexpected)).rejects.toBe(lost);
  });
});

describe('the options of nodelease id', () => {
  it('ask for one decimal id of the default layout, without a log, unless they say otherwise', () => {
    expect(readIdOptions({}, {})).toEqual({
      ...{ count: 1, format: 'decimal', json: false, layout: undefined, quiet: true },
    });
    expect(
      readIdOptions(
        {
          ...{ count: 1_000_000_000, format: 'hex', layout: 'snowflake', epoch: 1_000, logLevel: 'info' },
          json: true,
        },
        {},
      ),
    ).toEqual({
      ...{ count: 1_000_000_000, format: 'hex', json: true, layout: snowflake(1_000), quiet: false },
    });
    expect(readIdOptions({}, { NODELEASE_LOG_LEVEL: 'info' }).quiet).toBe(false);
  });

  it('do not go with a fixed node id, which two calls at the same time would share', () => {
    expect(() => readIdOptions({}, { NODELEASE_NODE_ID: '3' })).toThrow(
      /^NODELEASE_NODE_ID: expected none .* got "3"$/,
    );
  });
});
