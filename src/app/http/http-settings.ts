import { parseListenAddress } from '../../core/settings/listen-address.js';
import { filePath, parsed, type SettingRows } from '../../core/settings/setting.js';
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
    sentence: 'requests for more than health must send the token in this file',
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
