import { ConfigError } from '../../core/base/errors.js';
import type { CheckTarget } from '../../core/settings/listen-address.js';
import { type Given, refuse } from '../../core/settings/sources.js';
import type { ConnectString } from '../../zookeeper/client/connect-string.js';
import type { ZooKeeperTls } from '../../zookeeper/client/connection/tls.js';
import { checkZnodeName } from '../../zookeeper/client/znode-path.js';
import {
  type AnnouncedEndpoint,
  type Announcement,
  checkPayload,
  type PayloadType,
} from '../../zookeeper/discovery/announcement.js';
import { checkAddress, checkServiceName } from '../../zookeeper/services/instance/new-instance.js';
import { shortened } from '../../zookeeper/services/shortened.js';
import { type AllSettings, SETTINGS } from './settings-table.js';
import { readTlsFiles, tlsFile } from './tls-files.js';

/** How to reach ZooKeeper, and what to announce there: no endpoint twice. */
export interface ZooKeeperSettings extends Announcement {
  readonly connect: ConnectString;
  /** `digest:user:password`. */
  readonly auth?: string | undefined;
  readonly tls?: ZooKeeperTls | undefined;
  /**
   * How long a session outlives its connection, 1,000 to 600,000. The servers may grant another.
   * @default 10000; 20000 for `zk` commands
   */
  readonly sessionTimeoutMs: number;
  /** Fails the start when ZooKeeper cannot be reached. */
  readonly required: boolean;
  /** How long a node that took over an expired lease waits until the others know of it. @default 60000 */
  readonly readyTimeoutMs: number;
  /** The parent of the services that Curator knows of, within the chroot. @default /services */
  readonly basePath: string;
  /** When the service and the endpoints are to be announced. @default as long as the node id is held */
  readonly check?: CheckSettings | undefined;
}

/** When a service counts as able to work. */
export interface CheckSettings {
  readonly target: CheckTarget;
  /** From one check to the next, and how long one may take, in milliseconds, 100 to 600,000. @default 2000 */
  readonly intervalMs: number;
  /** How many checks in a row have to say so before the service goes out, or comes back. @default 3 */
  readonly threshold: number;
}

/** Why what is announced is of little use, for a log; undefined where it is not. */
export function announcingProblem({ service, port }: Announcement): string | undefined {
  if (service === undefined || port !== undefined) return undefined;
  return `the service ${service} is announced without a port, so its URL is unknown: give --port`;
}

/**
 * The settings that are about ZooKeeper; undefined where it is not used.
 *
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function readZooKeeper(all: AllSettings): ZooKeeperSettings | undefined {
  const connect = all.read('zookeeper');
  if (connect === undefined) {
    checkNothingToAnnounce(all);
    return undefined;
  }
  return {
    connect,
    required: all.read('zookeeper-required') ?? false,
    sessionTimeoutMs: all.readOrDefault('zookeeper-session-timeout'),
    readyTimeoutMs: all.readOrDefault('ready-timeout'),
    basePath: all.readOrDefault('service-base-path'),
    auth: all.read('zookeeper-auth'),
    tls: readTls(all),
    ...readAnnouncing(all),
  };
}

function readTls(all: AllSettings): ZooKeeperTls | undefined {
  if (all.read('zookeeper-tls'))
    return { ...readTlsFiles(all, 'zookeeper'), servername: all.read('zookeeper-servername') };
  const useless = tlsFile(all, 'zookeeper') ?? all.find('zookeeper-servername');
  if (useless) refuse(useless, '--zookeeper-tls with it (nothing is encrypted without)');
  return undefined;
}

function checkNothingToAnnounce(all: AllSettings) {
  // By itself, or since the setting that it belongs to does.
  const useless = all.firstFlag(
    ({ needs }) =>
      needs === 'zookeeper' || SETTINGS.some(({ name, needs: own }) => name === needs && own === 'zookeeper'),
  );
  if (useless) {
    // A password does not belong into a log.
    const shown = useless.label === '--zookeeper-auth' ? 'digest:…' : useless.text;
    refuse({ ...useless, text: shown }, '--zookeeper with it (it is of use with discovery only)');
  }
}

function readAnnouncing(all: AllSettings) {
  const service = all.read('service');
  const address = all.read('address');
  const port = all.read('port');
  const endpoints = readEndpoints(all);
  const { announces = true } = all.sources;
  if (announces) {
    if (service !== undefined) checkInstance(all);
    const useless = all.firstFlag(({ needs }, name) => name === 'check' || needs === 'check');
    if (useless && service === undefined && endpoints.length === 0)
      refuse(useless, '--service or --announce NAME with it (it decides when these are announced)');
  }
  const payloadType = all.read('payload-type');
  const spring = all.find('payload-type');
  if (spring && payloadType === 'spring' && service && port === undefined && announces)
    refuse(spring, '--port with it (Spring cannot read a service with an instance that has none)');
  const uriSpec = all.read('uri-spec');
  const payload = all.find('payload');
  return {
    service,
    address,
    port,
    payloadType,
    uriSpec,
    payload: payload && parsePayload(payload, payloadType ?? 'map'),
    endpoints: endpoints.length > 0 ? endpoints : undefined,
    check: readCheck(all),
  };
}

function readCheck(all: AllSettings): CheckSettings | undefined {
  const target = all.read('check');
  const intervalMs = all.readOrDefault('check-interval');
  const threshold = all.readOrDefault('check-threshold');
  return target && { target, intervalMs, threshold };
}

/** Other programs must be able to read what the instance is registered with; its id is the task's. */
function checkInstance(all: AllSettings) {
  for (const name of ['service', 'task-id'] as const) {
    const given = all.find(name);
    if (given) checkServiceName(given.text, given.label);
  }
  const address = all.find('address');
  if (address) checkAddress(address.text, address.label);
}

function parsePayload(given: Given, type: PayloadType): Readonly<Record<string, unknown>> {
  let payload: unknown;
  try {
    payload = JSON.parse(given.text);
  } catch {
    refuse({ ...given, text: shortened(given.text) }, 'a JSON object such as {"weight":5}');
  }
  return payload === null ? {} : checkPayload(payload, type, given.label);
}

const NAME_AND_KEY = 'NAME[:KEY] of an endpoint to announce';
/** How many endpoints one task may announce. */
const MAX_ENDPOINTS = 100;

/**
 * The endpoints to announce: those of the flags, else those of the variable. One that is named twice is
 * announced once.
 *
 * @throws {ConfigError} when a name or a key cannot be a znode's, or there are too many
 */
function readEndpoints(all: AllSettings): readonly AnnouncedEndpoint[] {
  if (all.sources.announces === false) return [];
  const given = all.findAll('announce');
  const flags = given.filter(({ flag }) => flag);
  const names = flags.length > 0 ? flags : given.flatMap(listed);
  const excess = names[MAX_ENDPOINTS];
  if (excess) refuse(excess, `at most ${MAX_ENDPOINTS} endpoints`);
  return [...new Map(names.map(parseEndpointName).map((each) => [JSON.stringify(each), each])).values()];
}

const listed = (given: Given) => given.text.split(',').map((text) => ({ ...given, text: text.trim() }));

/**
 * The name of an endpoint, and its key after the first colon.
 * @throws {ConfigError} when one of them cannot be a znode's
 */
export function parseEndpointName(given: Given): AnnouncedEndpoint {
  const { text, label } = given;
  if (/[,;]/.test(text))
    refuse(given, `${NAME_AND_KEY}: several have an option each, or commas between them in a variable`);
  if (text.includes('://'))
    refuse(given, `${NAME_AND_KEY}: the URL of a store's server has a setting of its own`);
  const [, endpoint = '', key] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? [];
  try {
    checkZnodeName(endpoint, label);
    if (key !== undefined) checkZnodeName(key, label);
  } catch (error) {
    // It names the whole text: of a part that is empty, say, the user would not know where it comes from.
    throw error instanceof ConfigError
      ? new ConfigError(label, text, `${NAME_AND_KEY}, each ${error.expected}`)
      : error;
  }
  if (key === '_') refuse(given, 'a key other than _, which stands for none');
  return key === undefined ? { endpoint } : { endpoint, key };
}
