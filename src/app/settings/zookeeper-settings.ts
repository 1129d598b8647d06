import type { CheckTarget } from '../../core/settings/listen-address.js';
import type { ConnectString } from '../../zookeeper/client/connect-string.js';
import type { ZooKeeperTls } from '../../zookeeper/client/connection/tls.js';
import { type Announcement, checkPayload, type PayloadType } from '../../zookeeper/discovery/announcement.js';
import { checkAddress, checkServiceName } from '../../zookeeper/services/instance/new-instance.js';
import { shortened } from '../../zookeeper/services/shortened.js';
import { readEndpoints } from './endpoints.js';
import { type NamedSetting, SETTINGS } from './settings-table.js';
import { find, firstFlag, type Given, read, readOrDefault, refuse, type SettingSources } from './sources.js';
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
export function readZooKeeper(sources: SettingSources): ZooKeeperSettings | undefined {
  const connect = read(sources, 'zookeeper');
  if (connect === undefined) {
    checkNothingToAnnounce(sources);
    return undefined;
  }
  return {
    connect,
    required: read(sources, 'zookeeper-required') ?? false,
    sessionTimeoutMs: readOrDefault(sources, 'zookeeper-session-timeout'),
    readyTimeoutMs: readOrDefault(sources, 'ready-timeout'),
    basePath: readOrDefault(sources, 'service-base-path'),
    auth: read(sources, 'zookeeper-auth'),
    tls: readTls(sources),
    ...readAnnouncing(sources),
  };
}

function readTls(sources: SettingSources): ZooKeeperTls | undefined {
  if (read(sources, 'zookeeper-tls'))
    return { ...readTlsFiles(sources, 'zookeeper'), servername: read(sources, 'zookeeper-servername') };
  const useless = tlsFile(sources, 'zookeeper') ?? find(sources, 'zookeeper-servername');
  if (useless) refuse(useless, '--zookeeper-tls with it (nothing is encrypted without)');
  return undefined;
}

function checkNothingToAnnounce(sources: SettingSources): void {
  // By itself, or since the setting that it belongs to does.
  const needsZooKeeper = ({ needs }: NamedSetting) =>
    needs === 'zookeeper' || SETTINGS.some(({ name, needs: own }) => name === needs && own === 'zookeeper');
  const useless = firstFlag(sources, needsZooKeeper);
  if (useless) {
    // A password does not belong into a log.
    const shown = useless.label === '--zookeeper-auth' ? 'digest:…' : useless.text;
    refuse({ ...useless, text: shown }, '--zookeeper with it (it is of use with discovery only)');
  }
}

function readAnnouncing(sources: SettingSources) {
  const service = read(sources, 'service');
  const address = read(sources, 'address');
  const port = read(sources, 'port');
  const endpoints = readEndpoints(sources);
  if (sources.announces !== false) {
    if (service !== undefined) checkInstance(sources);
    const useless = firstFlag(sources, ({ name, needs }) => name === 'check' || needs === 'check');
    if (useless && service === undefined && endpoints.length === 0)
      refuse(useless, '--service or --announce NAME with it (it decides when these are announced)');
  }
  const payloadType = read(sources, 'payload-type');
  const spring = find(sources, 'payload-type');
  if (spring && payloadType === 'spring' && service && port === undefined && sources.announces !== false)
    refuse(spring, '--port with it (Spring cannot read a service with an instance that has none)');
  const uriSpec = read(sources, 'uri-spec');
  const payload = find(sources, 'payload');
  return {
    service,
    address,
    port,
    payloadType,
    uriSpec,
    payload: payload && parsePayload(payload, payloadType ?? 'map'),
    endpoints: endpoints.length > 0 ? endpoints : undefined,
    check: readCheck(sources),
  };
}

function readCheck(sources: SettingSources): CheckSettings | undefined {
  const target = read(sources, 'check');
  const intervalMs = readOrDefault(sources, 'check-interval');
  const threshold = readOrDefault(sources, 'check-threshold');
  return target && { target, intervalMs, threshold };
}

/** Other programs must be able to read what the instance is registered with; its id is the task's. */
function checkInstance(sources: SettingSources): void {
  for (const name of ['service', 'task-id'] as const) {
    const given = find(sources, name);
    if (given) checkServiceName(given.text, given.label);
  }
  const address = find(sources, 'address');
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
