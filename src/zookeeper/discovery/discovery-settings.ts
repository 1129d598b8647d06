import { MAX_PORT } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { parseCheckTarget } from '../../core/settings/listen-address.js';
import {
  checked,
  choice,
  duration,
  integer,
  onOff,
  parsed,
  type SettingRows,
  text,
} from '../../core/settings/setting.js';
import { type ConnectString, parseAuth, parseConnectString } from '../client/connect-string.js';
import { checkZnodeName } from '../client/znode-path.js';
import { parseUriSpec } from '../services/instance/uri-spec.js';
import { checkBasePath, DEFAULT_BASE_PATH } from '../services/service-path.js';

/** The settings of ZooKeeper. */
export const ZOOKEEPER_SETTINGS = {
  zookeeper: {
    kind: parsed('servers', parseServers),
    option: 'zookeeper.connect',
    common: true,
    sentence: 'ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT]...[/CHROOT]; one chroot for all servers',
  },
  'zookeeper-auth': {
    kind: checked('digest', parseAuth),
    secret: true,
    default: 'none',
    option: 'zookeeper.auth',
    needs: 'zookeeper',
    sentence: 'credentials for ZooKeeper: digest:USER:PASSWORD',
  },
  'zookeeper-session-timeout': {
    kind: duration({
      min: 1_000,
      minWhy: 'a session must outlive a short break of the connection',
      max: 600_000,
      maxWhy: 'that long a dead node stays in the tree',
    }),
    default: '10s',
    option: 'zookeeper.sessionTimeoutMs',
    needs: 'zookeeper',
    sentence: 'how long a ZooKeeper session outlives its connection',
  },
  'zookeeper-required': {
    kind: onOff,
    option: 'zookeeper.required',
    needs: 'zookeeper',
    sentence: 'fail at the start when ZooKeeper cannot be reached, instead of working without it',
  },
  'ready-timeout': {
    kind: duration({ max: 86_400_000, open: true }),
    default: '60s',
    option: 'zookeeper.readyTimeoutMs',
    needs: 'zookeeper',
    storeOnly: true,
    sentence: 'how long to wait, after taking over an expired lease, until all other nodes know of it',
  },
} as const satisfies SettingRows;

/** The settings of what is announced in ZooKeeper, and of services. */
export const ANNOUNCING_SETTINGS = {
  service: {
    kind: checked('name', checkZnodeName),
    option: 'zookeeper.service',
    needs: 'zookeeper',
    wanted: '--service with it (it is about an instance of a service)',
    sentence: 'the service to announce this node under',
  },
  address: {
    kind: text(
      'host',
      /^(?![^:]*:\d*$)[A-Za-z0-9._:%-]{1,255}$/,
      'a host name or an IP address, without a port',
    ),
    default: 'the first of this host that others can reach',
    option: 'zookeeper.address',
    needs: 'zookeeper',
    sentence: 'the address to announce',
  },
  port: {
    kind: integer(1, MAX_PORT),
    option: 'zookeeper.port',
    needs: 'zookeeper',
    sentence: 'the port to announce',
  },
  payload: {
    kind: checked('json', () => undefined),
    verbatim: true,
    option: 'zookeeper.payload',
    needs: 'service',
    default: 'none, which Curator and Spring can read',
    sentence: 'a JSON object with more about the instance; nodeId and version are added',
  },
  'payload-type': {
    kind: choice('map', 'spring'),
    default: 'map with --payload, else no payload',
    option: 'zookeeper.payloadType',
    needs: 'service',
    sentence: 'how the payload is written; spring is for services of Spring Cloud Zookeeper',
  },
  'uri-spec': {
    kind: checked('template', parseUriSpec),
    default: 'none, for spring its own',
    option: 'zookeeper.uriSpec',
    needs: 'service',
    sentence: 'how the URL of the instance is made: {scheme}://{address}:{port}/v1, for example',
  },
  'service-base-path': {
    kind: checked('path', checkBasePath),
    default: DEFAULT_BASE_PATH,
    option: 'zookeeper.basePath',
    needs: 'service',
    sentence: 'the znode of the services that Curator knows of, within the chroot',
  },
  announce: {
    kind: checked('name[:key]', () => undefined),
    repeatable: true,
    option: 'zookeeper.endpoints',
    needs: 'zookeeper',
    sentence: 'an endpoint to announce, any number of times; NODELEASE_ANNOUNCE is a list with commas',
  },
  check: {
    kind: parsed('target', parseCheckTarget),
    default: 'from start to end',
    needs: 'zookeeper',
    wanted: '--check with it',
    sentence:
      'announce only while the command answers: http(s)://HOST:PORT/PATH with 2xx, or tcp:PORT or tcp:HOST:PORT with a connection',
  },
  'check-interval': {
    kind: duration({
      min: 100,
      minWhy: 'the command has work to do',
      max: 600_000,
      maxWhy: 'a failure would be noticed too late',
    }),
    default: '2s',
    needs: 'check',
    sentence: 'from one check to the next; a check may take as long, and at most 5s',
  },
  'check-threshold': {
    kind: integer(1, 1_000),
    default: '3',
    needs: 'check',
    sentence: 'how many failed checks in a row take the service out, and how many good ones put it back',
  },
} as const satisfies SettingRows;

function parseServers(given: string, label: string): ConnectString {
  if (!/^digest:/i.test(given)) return parseConnectString(given, label);
  // It may be a password.
  throw new ConfigError(
    label,
    'digest:…',
    'servers, HOST:PORT[,HOST:PORT]...[/CHROOT] (credentials go to --zookeeper-auth)',
  );
}
