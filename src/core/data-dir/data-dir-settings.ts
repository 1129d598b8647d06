import { checkArguments, FLAG, splitList } from '../base/arguments.js';
import { ConfigError } from '../base/errors.js';
import { checked, integer, onOff, parsed, type SettingRows } from '../settings/setting.js';
import type { DataDirOptions } from './data-dir-options.js';
import { exclusionOf } from './exclude.js';

const flag = {
  ...onOff,
  check: (given: unknown, label: string) => checkArguments({ [label]: given }, { [label]: FLAG }),
};

/** Why a disk of one host needs a sticky key, as a clause. */
export const WHY_STICKY =
  'without one, as with node ids from ZooKeeper, versions begin empty, and older ones are removed';

/** The settings of data directories that follow the node id. */
export const DATA_DIR_SETTINGS = {
  'data-dir': {
    kind: checked('root', checkRootText),
    option: 'dataDir.root',
    wanted: '--data-dir ROOT with it',
    common: true,
    sentence:
      'the parent of the directories that follow the node ids: NODE_DATA_DIR is the one of this tenure',
  },
  'data-retention': {
    kind: integer(1, 1_000),
    default: '2',
    option: 'dataDir.retention',
    field: 'dataRetention',
    sentence: 'how many versions of each directory are kept, the new one included',
  },
  'data-exclude': {
    kind: { ...parsed('patterns', parsePatterns), check: checkPatterns },
    default: 'nothing',
    option: 'dataDir.exclude',
    needs: 'data-dir',
    sentence:
      'what a new version does not get, separated by commas: names at any depth (runtime, *.tmp), or paths from the top (logs/old)',
  },
  'data-copy': {
    kind: flag,
    option: 'dataDir.copy',
    needs: 'data-dir',
    sentence: 'always copy files instead of linking them, so that older versions never change',
  },
  'data-local': {
    kind: flag,
    option: 'dataDir.local',
    needs: 'data-dir',
    sentence:
      'the root is on a disk of this host: a version begins empty, with NODE_DATA_RESTORED=false, unless this disk has that of the last tenure (see --sticky)',
  },
} as const satisfies SettingRows;

function checkRootText(given: string, label: string): void {
  if (given === '' || given.includes('\0')) throw new ConfigError(label, given, 'the path of a directory');
}

function parsePatterns(given: string, label: string): NonNullable<DataDirOptions['exclude']> {
  const patterns = splitList(given, label);
  checkPatterns(patterns, label);
  return patterns;
}

function checkPatterns(given: unknown, label: string): void {
  if (!Array.isArray(given)) throw new ConfigError(label, given, 'a list of patterns');
  exclusionOf(given, label);
}
