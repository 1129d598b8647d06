import { ConfigError } from '../../core/base/errors.js';
import { duration, formatSetting } from '../../core/settings/setting.js';
import type { OptionRow } from './command-row.js';

/** Of the commands that wait for others. */
export const WAITING_OPTIONS: readonly OptionRow[] = [
  ['--try', 'do not wait for others: exit with 75 instead'],
  [
    '--timeout <time>',
    'how long to wait, up to 8760h (default: without limit)',
    { kind: duration({ max: 31_536_000_000 }) },
  ],
];
/** Of the commands that run another one while they hold something. */
export const HOLDING_OPTIONS: readonly OptionRow[] = [
  ...WAITING_OPTIONS,
  ['--restart', 'after a loss: acquire it again, and start the command again'],
];

/** {@link HOLDING_OPTIONS}, as they are on the command line. */
export interface HoldingOptions {
  readonly try?: boolean;
  readonly timeout?: number;
  readonly restart?: boolean;
}

/** How long to wait, in milliseconds; undefined for without limit. @throws {ConfigError} */
export function waitTimeout({ try: once, timeout }: HoldingOptions): number | undefined {
  if (once && timeout !== undefined)
    throw new ConfigError('--timeout', formatSetting(timeout), 'no --try with it, which does not wait');
  return once ? 0 : timeout;
}
