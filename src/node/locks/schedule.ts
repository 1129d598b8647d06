import { checkArguments, kind } from '../../core/base/arguments.js';
import { ConfigError, explain } from '../../core/base/errors.js';
import { duration, formatSetting } from '../../core/settings/setting.js';

/** When ticks are: multiples of a period, or the instants of a cron expression. */
export interface SchedulePlan {
  /** The period: milliseconds, or a text such as `15m` or `1d`. Ticks are its multiples since 1970, in UTC. */
  readonly every?: number | string | undefined;
  /** How much later than these multiples the ticks are: milliseconds, or a text. @default 0 */
  readonly offset?: number | string | undefined;
  /** In place of a period: a cron expression of five fields, or six with seconds. */
  readonly cron?: string | undefined;
  /** The time zone of `cron`, such as `Europe/Berlin`; never the host's. @default 'UTC' */
  readonly tz?: string | undefined;
}

/** Instants in milliseconds since the Unix epoch (rule O1). */
export interface Schedule {
  /** The same for the same schedule. */
  readonly text: string;
  /** The last tick at or before `time`. */
  last(time: number): number;
  /** The first tick after `time`. */
  next(time: number): number;
}

const DAY_MS = 86_400_000;
const PERIOD = duration({ min: 1_000, max: 366 * DAY_MS });
const OFFSET = duration({ max: 366 * DAY_MS });

/** Undefined passes: it is UTC. */
const ZONE = kind('a time zone such as Europe/Berlin', (timeZone) => {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: timeZone as string }));
  } catch {
    return false;
  }
});

/**
 * The schedule of a plan. croner is loaded for a cron expression only.
 *
 * @param now about now: a cron expression must have ticks before and after it
 * @throws {ConfigError} for no plan, or two, and for values that cannot be used
 */
export async function scheduleOf({ every, offset, cron, tz }: SchedulePlan, now: number): Promise<Schedule> {
  checkArguments({ tz }, { tz: ZONE });
  if ((every === undefined) === (cron === undefined))
    throw new ConfigError('every', every, 'a period such as 1d or a cron expression, and not both');
  if (cron === undefined) {
    if (tz !== undefined) throw new ConfigError('tz', tz, 'cron with it: a period has no time zone');
    const everyMs = toMs(PERIOD, every, 'every');
    const offsetMs = toMs(OFFSET, offset ?? 0, 'offset');
    if (offsetMs >= everyMs) throw new ConfigError('offset', offset, 'less than the period');
    const last = (time: number) => Math.floor((time - offsetMs) / everyMs) * everyMs + offsetMs;
    const later = offsetMs > 0 ? ` offset ${formatSetting(offsetMs)}` : '';
    return {
      text: `every ${formatSetting(everyMs)}${later}`,
      last,
      next: (time) => last(time) + everyMs,
    };
  }
  if (offset !== undefined) throw new ConfigError('offset', offset, 'every with it: cron has none');
  const timezone = tz ?? 'UTC';
  const { Cron } = await import('croner');
  try {
    const expression = new Cron(cron, { timezone, paused: true });
    const schedule: Schedule = {
      text: `cron ${cron} ${timezone}`,
      // The runs before a time exclude one at that time.
      last: (time) => Number(expression.previousRuns(1, new Date(time + 1))[0]),
      next: (time) => Number(expression.nextRun(new Date(time)) ?? Number.NaN),
    };
    if (schedule.last(now) < schedule.next(now)) return schedule;
    throw new Error('it has no ticks before and after now');
  } catch (error) {
    throw new ConfigError('cron', cron, `a cron expression (${explain(error)})`);
  }
}

function toMs(time: typeof PERIOD, value: unknown, label: string): number {
  if (typeof value === 'string') return time.parse(value, label);
  time.check?.(value, label);
  return Math.round(value as number);
}

/** A tenth of the period at that time, and at most so many milliseconds. */
export function tenthOf(schedule: Schedule, time: number, maxMs: number): number {
  return Math.min(maxMs, (schedule.next(time) - schedule.last(time)) / 10);
}

/**
 * Whether a tick of this schedule is the claimed one, which may come from another schedule or parser: it is
 * nearer to the tick than to the tick's predecessor (rule O7). Between two parsers the instants of one tick
 * differ where clocks are changed.
 */
export function isSameTick(schedule: Schedule, tick: number, claimed: number): boolean {
  return claimed >= tick || tick - claimed < claimed - schedule.last(tick - 1);
}
