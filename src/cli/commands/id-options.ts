import { ConfigError } from '../../base/errors.js';
import type { IdFormat } from '../../id/id-format.js';
import { type IdLayout, snowflake } from '../../id/id-layout.js';
import { environmentName } from '../../settings/settings.js';
import { parseInteger } from '../../settings/values.js';

/** The options of `id`, as they stand on the command line. */
export interface IdOptions {
  readonly count?: string;
  readonly format?: string;
  readonly layout?: string;
  readonly epoch?: string;
  readonly logLevel?: string;
}

/** Which ids are wanted. */
export interface WantedIds {
  /** 1 … 10^9. */
  readonly count: number;
  readonly format: IdFormat;
  /** Undefined for `cluster16`, which has as many bits for a node id as the cluster says. */
  readonly layout: IdLayout | undefined;
  /** No log level is given: a script that wants the ids alone is told of failures only. */
  readonly quiet: boolean;
}

const MAX_COUNT = 1_000_000_000;
const FORMATS: readonly string[] = ['decimal', 'base32', 'hex'] satisfies IdFormat[];

/**
 * Checks what `id` is asked for, before anything is acquired for it.
 *
 * @throws {ConfigError} naming the option, the value, and what was expected
 */
export function readIdOptions(
  { count = '1', format = 'decimal', layout = 'cluster16', epoch, logLevel }: IdOptions,
  env: Readonly<Record<string, string | undefined>>,
): WantedIds {
  const ids = parseInteger(count, '-n', 1, MAX_COUNT);
  if (!FORMATS.includes(format)) throw new ConfigError('--format', format, 'decimal, base32 or hex');
  checkNoFixedId(env);
  const quiet = logLevel === undefined && !env[environmentName('log-level')];
  return { count: ids, format: format as IdFormat, layout: fixedLayout(layout, epoch), quiet };
}

/** Two calls with the same fixed id would make the same ids, and so would the program that has it. */
function checkNoFixedId(env: Readonly<Record<string, string | undefined>>): void {
  const name = environmentName('node-id');
  const fixed = env[name];
  if (fixed) throw new ConfigError(name, fixed, 'none (nodelease id has to acquire a node id, so that nobody else makes the same ids)');
}

/**
 * The layout of that name; undefined for `cluster16`, which has one for each width.
 *
 * @param epoch what the time of `snowflake` counts from. @default that of its inventor
 * @throws {ConfigError} when the layout or the epoch is invalid
 */
export function fixedLayout(layout: string, epoch: string | undefined): IdLayout | undefined {
  if (layout === 'cluster16') {
    if (epoch === undefined) return undefined;
    throw new ConfigError('--epoch', epoch, '--layout snowflake beside it (cluster16 counts from 1970)');
  }
  if (layout !== 'snowflake') throw new ConfigError('--layout', layout, 'cluster16 or snowflake');
  if (epoch === undefined) return snowflake();
  if (!/^\d{1,15}$/.test(epoch)) throw new ConfigError('--epoch', epoch, 'a whole number of milliseconds since 1970');
  return snowflake(Number(epoch));
}
