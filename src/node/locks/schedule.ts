import { checkArguments, maybe, NAME, TEXT } from '../../core/base/arguments.js';
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

/**
 * The schedule of a plan. croner is loaded for a cron expression only.
 *
 * @param now about now: a cron expression must have ticks before and after it
 * @throws {ConfigError} for no plan, or two, and for values that cannot be used
 */
export async function scheduleOf({ every, offset, cron, tz }: SchedulePlan, now: number): Promise<Schedule> {
  // An empty zone would be the host's.
  checkArguments({ cron, tz }, { cron: maybe(TEXT), tz: maybe(NAME) });
  if ((every === undefined) === (cron === undefined))
    throw new ConfigError('every', every, 'a period such as 1d or a cron expression, and not both');
  if (cron === undefined) {
    if (tz !== undefined) throw new ConfigError('tz', tz, 'cron with it: a period has no time zone');
    const everyMs = toMs(PERIOD, every, 'every');
    const offsetMs = toMs(OFFSET, offset ?? 0, 'offset');
    if (offsetMs >= everyMs) throw new ConfigError('offset', offset, 'less than the period');
    return periodic(everyMs, offsetMs);
  }
  if (offset !== undefined) throw new ConfigError('offset', offset, 'every with it: cron has none');
  const { Cron } = await import('croner');
  const timezone = tz ?? 'UTC';
  try {
    const expression = new Cron(cron, { timezone, paused: true });
    const schedule: Schedule = {
      text: `cron ${cron} ${timezone}`,
      // The runs before a time exclude one at that time.
      last: (time) => Number(expression.previousRuns(1, new Date(time + 1))[0]),
      next: (time) => Number(expression.nextRun(new Date(time)) ?? Number.NaN),
    };
    if (schedule.last(now) < schedule.next(now)) return schedule;
  } catch (error) {
    const isZone = /timezone/i.test(explain(error));
    throw isZone
      ? new ConfigError('tz', tz, 'a time zone such as Europe/Berlin')
      : new ConfigError('cron', cron, `a cron expression (${explain(error)})`);
  }
  throw new ConfigError('cron', cron, 'a cron expression with ticks before and after now');
}

function toMs(kind: typeof PERIOD, value: unknown, label: string): number {
  if (typeof value === 'string') return kind.parse(value, label);
  kind.check?.(value, label);
  return Math.round(value as number);
}

function periodic(everyMs: number, offsetMs: number): Schedule {
  const last = (time: number) => Math.floor((time - offsetMs) / everyMs) * everyMs + offsetMs;
  const text = `every ${formatSetting(everyMs)}`;
  return {
    text: offsetMs === 0 ? text : `${text} offset ${formatSetting(offsetMs)}`,
    last,
    next: (time) => last(time) + everyMs,
  };
}

/**
 * Whether a tick of this schedule is the claimed one, which may come from another schedule or parser: it is
 * nearer to the tick than to the tick's predecessor (rule O7). Between two parsers the instants of one tick
 * differ where clocks are changed.
 */
export function isSameTick(schedule: Schedule, tick: number, claimed: number): boolean {
  return claimed >= tick || tick - claimed < claimed - schedule.last(tick - 1);
}
