import { ConfigError } from '../../core/base/errors.js';
import { duration } from '../../core/settings/setting.js';
import type { OptionRow } from './command-row.js';

/** Of the commands that wait for others. */
export const WAITING_OPTIONS: readonly OptionRow[] = [
  ['--try', 'do not wait for others: exit with 75 instead'],
  ['--timeout <time>', 'how long to wait, up to 8760h (default: without limit)'],
];
/** Of the commands that run another one while they hold something. */
export const HOLDING_OPTIONS: readonly OptionRow[] = [
  ...WAITING_OPTIONS,
  ['--restart', 'after a loss: acquire it again, and start the command again'],
];

/** {@link HOLDING_OPTIONS}, as they are on the command line. */
export interface HoldingOptions {
  readonly try?: boolean;
  readonly timeout?: string;
  readonly restart?: boolean;
}

const TIMEOUT = duration({ max: 31_536_000_000 });

/** How long to wait, in milliseconds; undefined for without limit. @throws {ConfigError} */
export function waitTimeout({ try: once, timeout }: HoldingOptions): number | undefined {
  if (timeout === undefined) return once ? 0 : undefined;
  if (once) throw new ConfigError('--timeout', timeout, 'no --try with it, which does not wait');
  return TIMEOUT.parse(timeout, '--timeout');
}
