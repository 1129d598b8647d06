import { ConfigError } from '../../core/base/errors.js';
import { splitList } from '../../core/base/plain-text.js';
import type { Setting } from '../../core/settings/setting.js';
import { checked, choice, filePath, onOff, parsed, upToOneDay } from '../../core/settings/values.js';
import { checkZnodeName } from '../client/znode-path.js';
import { rootOf } from './layout.js';

/** The settings of a command's configuration in ZooKeeper. */
export const CONFIG_SETTINGS = {
  config: {
    kind: parsed('app[,profile]', parseConfigName),
    needs: 'zookeeper',
    sentence:
      'the configuration in ZooKeeper that the command gets as variables: db.pool-size as DB_POOL_SIZE',
  },
  'on-config-change': {
    kind: choice('restart', 'signal:SIGHUP', 'signal:SIGUSR1', 'signal:SIGUSR2', 'signal:SIGWINCH', 'ignore'),
    default: 'ignore',
    needs: 'config',
    sentence:
      'what happens when it changes: the command is started again, gets a signal, or nothing but a line in the log',
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
    sentence:
      'restart one node after the other instead, the next one when the one before has passed its check',
  },
  'config-snapshot': {
    kind: filePath,
    default: 'none',
    needs: 'config',
    sentence:
      'the file with a copy of the configuration, for a start without ZooKeeper and for the command to read',
  },
  'config-required': {
    kind: onOff,
    needs: 'config',
    sentence: 'fail at the start when ZooKeeper cannot be reached, also where there is a copy',
  },
  'config-root': {
    kind: checked('path', (root, label) => void rootOf({ root }, label)),
    default: '/config',
    needs: 'zookeeper',
    sentence: "the parent of all configuration in ZooKeeper: of the command's, and of what the console shows",
  },
} satisfies Readonly<Record<string, Setting>>;

/** Which configuration, as `--config` has it. */
function parseConfigName(given: string, label: string): { readonly app: string; readonly profile?: string } {
  const [app = '', profile, more] = splitList(given, label);
  if (more !== undefined || app === '' || profile === '')
    throw new ConfigError(label, given, 'APP or APP,PROFILE');
  checkZnodeName(app, label);
  if (profile === undefined) return { app };
  checkZnodeName(profile, label);
  return { app, profile };
}
