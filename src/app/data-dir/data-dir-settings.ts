import type { DataDirOptions } from '../../core/data-dir/data-dir-options.js';
import { DATA_DIR_SETTINGS, WHY_STICKY } from '../../core/data-dir/data-dir-settings.js';
import type { LEASE_SETTINGS } from '../../core/lease/lease-settings.js';
import { type GivenSettings, refuse } from '../../core/settings/sources.js';

/** What is said of data directories to the table of settings. */
export const DATA_DIRS = {
  rows: DATA_DIR_SETTINGS,
  commands: ['run', 'serve'],
  read: { dataDir: readDataDir },
} as const;

/**
 * The data directory, which a fixed node id has not: without versions, the directory of a stale holder looks
 * like any other.
 */
function readDataDir(
  all: GivenSettings<typeof DATA_DIR_SETTINGS & typeof LEASE_SETTINGS>,
): Omit<DataDirOptions, 'onEvent'> | undefined {
  const given = all.find('data-dir');
  const root = all.read('data-dir');
  if (given === undefined || root === undefined) return undefined;
  const fixed = all.find('node-id');
  if (fixed) refuse(given, `no ${fixed.label} with it (a fixed id has no versions)`);
  const ofDisk = all.find('data-local');
  const local = all.read('data-local') ?? false;
  if (ofDisk && local && (all.find('sticky') === undefined || all.readOrDefault('provider') === 'zookeeper'))
    refuse(ofDisk, `--sticky KEY with it, such as file (${WHY_STICKY})`);
  return {
    root,
    retention: all.readOrDefault('data-retention'),
    exclude: all.read('data-exclude') ?? [],
    copy: all.read('data-copy') ?? false,
    local,
  };
}
