import { describe, expect, it } from 'vitest';
import { isSameTick, type SchedulePlan, scheduleOf } from './schedule.js';

const at = (text: string) => Date.parse(text);
const NOW = at('2026-11-29T12:00Z');
const iso = (time: number) => new Date(time).toISOString();
const BERLIN: SchedulePlan = { cron: '30 2 * * *', tz: 'Europe/Berlin' };

describe('a period', () => {
  it.each<[SchedulePlan, string, string, string]>([
    [{ every: '1d' }, '2026-11-29T00:00:00.000Z', '2026-11-30T00:00:00.000Z', 'every 24h'],
    [{ every: 900_000 }, '2026-11-29T12:00:00.000Z', '2026-11-29T12:15:00.000Z', 'every 15m'],
    [
      { every: '1d', offset: '13h' },
      '2026-11-28T13:00:00.000Z',
      '2026-11-29T13:00:00.000Z',
      'every 24h offset 13h',
    ],
  ])('%j has ticks at its multiples since 1970', async (plan, last, next, text) => {
    const schedule = await scheduleOf(plan, NOW);
    expect([iso(schedule.last(NOW)), iso(schedule.next(NOW)), schedule.text]).toEqual([last, next, text]);
    expect(schedule.last(schedule.last(NOW) - 1)).toBeLessThan(schedule.last(NOW));
  });
});

describe('a cron expression', () => {
  it('has ticks in UTC unless it has a time zone, and one at the very moment counts', async () => {
    const utc = await scheduleOf({ cron: '*/5 * * * * *' }, NOW);
    expect([utc.last(NOW), utc.last(NOW - 0.5), utc.next(NOW)]).toEqual([NOW, NOW - 5_000, NOW + 5_000]);
    const berlin = await scheduleOf({ cron: '0 13 * * *', tz: 'Europe/Berlin' }, NOW);
    expect([berlin.last(NOW), berlin.text]).toEqual([NOW, 'cron 0 13 * * * Europe/Berlin']);
  });

  it.each([
    ['which a gap swallows', '2026-03-28T12:00Z', ['2026-03-29T01:00Z', '2026-03-30T00:30Z']],
    ['which comes twice', '2026-10-24T12:00Z', ['2026-10-25T00:30Z', '2026-10-26T01:30Z']],
  ])('has one tick on a day with an hour %s, the same from both sides', async (_, from, expected) => {
    const schedule = await scheduleOf(BERLIN, NOW);
    const [first = 0, second = 0] = expected.map(at);
    expect([schedule.next(at(from)), schedule.next(first)]).toEqual([first, second]);
    expect([schedule.last(second - 1), schedule.last(second)]).toEqual([first, second]);
  });
});

describe('a tick that another parser has claimed', () => {
  // Of `30 2 * * *` in Berlin on 29 March 2026, as measured: croner 11.0.1 and cron-parser 5.10.6.
  const [CRONER, PARSER] = [at('2026-03-29T01:00Z'), at('2026-03-29T01:30Z')];

  it('is the same one, where clocks are changed and the parsers differ', async () => {
    const croner = await scheduleOf(BERLIN, NOW);
    const parser = {
      ...croner,
      last: (time: number) => (time >= PARSER ? PARSER : croner.last(time - 86_400_000)),
    };
    expect(croner.last(PARSER)).toBe(CRONER);
    expect(isSameTick(croner, CRONER, PARSER)).toBe(true);
    expect(isSameTick(parser, PARSER, CRONER)).toBe(true);
    // Not with the day before, and the day after.
    expect(isSameTick(croner, CRONER, at('2026-03-28T01:30Z'))).toBe(false);
    for (const claimed of [CRONER, PARSER])
      expect(isSameTick(croner, at('2026-03-30T00:30Z'), claimed)).toBe(false);
  });

  it('is the next one where it is nearer to the one before', async () => {
    const daily = await scheduleOf({ every: '1d' }, NOW);
    const tick = at('2026-11-29T00:00Z');
    const claimed = [-24, -12.1, -12, -11.9, -1, 0, 1].map((hours) => tick + hours * 3_600_000);
    expect(claimed.map((each) => isSameTick(daily, tick, each))).toEqual([
      ...[false, false, false],
      ...[true, true, true, true],
    ]);
  });
});

it.each<[string, SchedulePlan]>([
  ['every', {}],
  ['every', { every: '1d', cron: '* * * * *' }],
  ['every', { every: '1' }],
  ['every', { every: 999 }],
  ['every', { every: Number.NaN }],
  ['offset', { every: '1d', offset: '1d' }],
  ['offset', { every: '1d', offset: -1 }],
  ['offset', { cron: '* * * * *', offset: '1s' }],
  ['tz', { every: '1d', tz: 'UTC' }],
  ['tz', { cron: '* * * * *', tz: 'Mars/Olympus' }],
  ['tz', { cron: '* * * * *', tz: '' }],
  ['cron', { cron: '* * *' }],
  ['cron', { cron: '' }],
  ['cron', { cron: 7 as never }],
  ['cron', { cron: '0 0 30 2 *' }],
  ['cron', { cron: '0 0 0 1 1 * 2020' }],
])('a plan with a wrong %s is refused: %j', async (setting, plan) => {
  await expect(scheduleOf(plan, NOW)).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting });
});
