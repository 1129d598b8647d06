import { splitList } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import {
  checked,
  choice,
  filePath,
  onOff,
  parsed,
  type SettingRows,
  upToOneDay,
} from '../../core/settings/setting.js';
import { type GivenSettings, refuse, type ValueOf } from '../../core/settings/sources.js';
import { checkZnodeName } from '../../zookeeper/client/znode-path.js';
import { rootOf } from '../../zookeeper/configuration/layout.js';
import type { ZOOKEEPER_SETTINGS } from '../../zookeeper/discovery/discovery-settings.js';

/** The settings of a command's configuration in ZooKeeper. */
const CONFIG_SETTINGS = {
  config: {
    kind: parsed('app[,profile]', parseConfigName),
    needs: 'zookeeper',
    wanted: '--config APP with it (it is about the configuration of the command)',
    sentence:
      'the configuration in ZooKeeper that the command gets as variables: db.pool-size as DB_POOL_SIZE',
  },
  'on-config-change': {
    kind: choice('restart', 'signal:SIGHUP', 'signal:SIGUSR1', 'signal:SIGUSR2', 'signal:SIGWINCH', 'ignore'),
    default: 'ignore',
    needs: 'config',
    sentence: 'when it changes: restart the command, send it a signal, or only log it',
  },
  'config-spread': {
    kind: upToOneDay,
    default: '10s',
    needs: 'config',
    sentence: 'over how long the nodes spread that, each by its node id',
  },
  'config-one-by-one': {
    kind: onOff,
    needs: 'config',
    sentence: 'restart one node after the other, each when the one before has passed its check',
  },
  'config-snapshot': {
    kind: filePath,
    default: 'none',
    needs: 'config',
    sentence: 'the file with a copy of the configuration, for the command and for a start without ZooKeeper',
  },
  'config-required': {
    kind: onOff,
    needs: 'config',
    sentence: 'fail at the start when ZooKeeper cannot be reached, even with a copy',
  },
  'config-root': {
    kind: checked('path', (root, label) => void rootOf({ root }, label)),
    default: '/config',
    field: 'configRoot',
    needs: 'zookeeper',
    sentence: "the parent of all configuration in ZooKeeper: of the command's, and of what the console shows",
  },
} as const satisfies SettingRows;

/** The configuration of a command in ZooKeeper. */
export interface CommandConfigSettings {
  readonly name: ReturnType<typeof parseConfigName> & { readonly root?: string | undefined };
  /** What happens when it changes. @default ignore */
  readonly onChange: ValueOf<(typeof CONFIG_SETTINGS)['on-config-change']>;
  /** Over how long the nodes spread it, in milliseconds, 0 to 86,400,000. @default 10000 */
  readonly spreadMs: number;
  /** Whether the nodes restart one after the other. */
  readonly oneByOne: boolean;
  /** The path of the file with a copy. */
  readonly snapshot?: string | undefined;
  /** Fails the start when ZooKeeper cannot be reached. */
  readonly required: boolean;
}

/** What is said of the configuration to the table of settings. */
export const CONFIG = {
  rows: CONFIG_SETTINGS,
  commands: ['run'],
  read: { config: readCommandConfig },
} as const;

/** @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected */
function readCommandConfig(
  all: GivenSettings<typeof CONFIG_SETTINGS & typeof ZOOKEEPER_SETTINGS>,
): CommandConfigSettings | undefined {
  const given = all.find('config');
  const name = all.read('config');
  if (given === undefined || name === undefined) return undefined;
  // A variable too: without a word, the command would run without its configuration.
  if (all.find('zookeeper') === undefined)
    refuse(given, '--zookeeper with it, with the servers that have it');
  const onChange = all.readOrDefault('on-config-change');
  const turns = all.find('config-one-by-one');
  const oneByOne = all.read('config-one-by-one') ?? false;
  if (turns && oneByOne && onChange !== 'restart') refuse(turns, '--on-config-change restart with it');
  return {
    name: { ...name, root: all.read('config-root') },
    onChange,
    oneByOne,
    snapshot: all.read('config-snapshot'),
    spreadMs: all.readOrDefault('config-spread'),
    required: all.read('config-required') ?? false,
  };
}

/** Which configuration, as `--config` has it. */
function parseConfigName(given: string, label: string) {
  const [app = '', profile, more] = splitList(given, label);
  if (more !== undefined || app === '' || profile === '')
    throw new ConfigError(label, given, 'APP or APP,PROFILE');
  checkZnodeName(app, label);
  if (profile !== undefined) checkZnodeName(profile, label);
  return { app, profile };
}
