import { isLoopback, parseListenAddress } from '../../core/settings/listen-address.js';
import { filePath, parsed, type SettingRows } from '../../core/settings/setting.js';
import { type GivenSettings, refuse } from '../../core/settings/sources.js';
import { parsePaths } from '../../zookeeper/client/znode-path.js';

/** The settings of what is answered over HTTP. */
export const HTTP_SETTINGS = {
  http: {
    kind: parsed('host:port', parseListenAddress),
    default: '127.0.0.1:7070; for run nowhere',
    field: 'http',
    common: true,
    sentence: 'where to answer HTTP requests: health, metrics and more; port 0 is any free port',
  },
  'bearer-token-file': {
    kind: filePath,
    default: 'no token is asked for',
    field: 'bearerTokenFile',
    common: true,
    sentence:
      'requests for more than health must send the token in this file; with discovery serve only changes must',
  },
  'console-locks': {
    kind: parsed('paths', parsePaths),
    field: 'consoleLocks',
    needs: 'zookeeper',
    sentence: 'paths of ZooKeeper, separated by commas: the console shows the locks there and below',
  },
  'console-data': {
    kind: parsed('paths', parsePaths),
    field: 'consoleData',
    needs: 'zookeeper',
    sentence: 'roots of shared data that the console shows, separated by commas, such as /shop/data',
  },
} as const satisfies SettingRows;

/**
 * Refuses to listen where any client can tell what `option` asks programs for.
 * @param what that is, as a clause @throws {ConfigError}
 */
export function checkPrivate(all: GivenSettings<typeof HTTP_SETTINGS>, option: string, what: string): void {
  const at = all.find('http');
  if (at && !isLoopback(all.read('http')?.host ?? '') && !all.find('bearer-token-file'))
    refuse(
      at,
      `a loopback address such as 127.0.0.1:7070, or a bearer token file, with ${option} (any client that reaches it could say that ${what})`,
    );
}
