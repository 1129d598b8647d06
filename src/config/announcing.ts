import { checkPayload, type PayloadType } from '../discovery/announcement-payload.js';
import { newInstance } from '../discovery/services/new-instance.js';
import { shortened } from '../discovery/services/shortened.js';
import { parseUriSpec } from '../discovery/services/uri-spec.js';
import { ConfigError } from '../errors.js';
import { checkZnodeName } from '../zookeeper/znode-path.js';
import { type EndpointName, parseEndpointName } from './endpoints.js';
import { type CheckSettings, parseCheckTarget } from './health-check.js';
import { find, type Given, type Read, type SettingName, type SettingSources } from './sources.js';
import { parseDuration, parseInteger } from './values.js';

/** What to announce in ZooKeeper beside the node id. */
export interface Announcing {
  /** A znode's name. */
  readonly service?: string;
  readonly address?: string;
  readonly port?: number;
  /** What the instance says of itself, beside its node id and version. */
  readonly payload?: Readonly<Record<string, unknown>>;
  /** @default map */
  readonly payloadType?: PayloadType;
  /** How the URL of the instance is made. */
  readonly uriSpec?: string;
  /** None twice. */
  readonly endpoints?: readonly EndpointName[];
  /** When the service and the endpoints are to be announced; as long as the node id is held unless given. */
  readonly check?: CheckSettings;
}

/** What is of no use without `service`. */
const SERVICE_SETTINGS: readonly SettingName[] = ['payload', 'payload-type', 'uri-spec', 'service-base-path'];
/** What is of no use without `check`. */
const CHECK_SETTINGS: readonly SettingName[] = ['check-interval', 'check-threshold'];

/** Why what is announced is of little use, for a log; undefined where it is not. */
export function announcingProblem({ service, port }: Announcing): string | undefined {
  if (service === undefined || port !== undefined) return undefined;
  return `the service ${service} is announced without a port, so that nobody can tell its URL: give --port`;
}

/** @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected */
export function readAnnouncing(sources: SettingSources, read: Read, names: readonly Given[]): Announcing {
  const service = read('service', (text, label) => {
    checkZnodeName(text, label);
    return text;
  });
  const address = read('address', checkAddress);
  const port = read('port', (text, label) => parseInteger(text, label, 1, 65_535));
  const endpoints = distinct(names.map(parseEndpointName));
  if (sources.announces !== false) {
    if (service === undefined) refuse(sources, SERVICE_SETTINGS, '--service beside it (it is about an instance of a service)');
    else checkInstanceFields(sources, service, address);
    if (service === undefined && endpoints.length === 0) {
      refuse(sources, ['check', ...CHECK_SETTINGS], '--service or --endpoint NAME beside it (it decides when these are announced)');
    }
  }
  const payloadType = read('payload-type', (text, label) => {
    const type = checkPayloadType(text, label);
    if (type === 'spring' && service !== undefined && port === undefined && sources.announces !== false)
      throw new ConfigError(label, text, '--port beside it (Spring cannot read a service with an instance that has none)');
    return type;
  });
  const uriSpec = read('uri-spec', (text, label) => {
    parseUriSpec(text, label);
    return text;
  });
  const payload = read('payload', (text, label) => parsePayload(text, label, payloadType ?? 'map'));
  const check = readCheck(sources, read);
  return {
    ...(service !== undefined && { service }),
    ...(address !== undefined && { address }),
    ...(port !== undefined && { port }),
    ...(payload !== undefined && { payload }),
    ...(payloadType !== undefined && { payloadType }),
    ...(uriSpec !== undefined && { uriSpec }),
    ...(endpoints.length > 0 && { endpoints }),
    ...(check !== undefined && { check }),
  };
}

function readCheck(sources: SettingSources, read: Read): CheckSettings | undefined {
  const target = read('check', parseCheckTarget);
  if (target === undefined) refuse(sources, CHECK_SETTINGS, '--check beside it');
  const intervalMs = read('check-interval', (text, label) =>
    parseDuration(text, label, {
      least: [100, 'at least 100ms (the command has work to do)'],
      most: [600_000, 'at most 10m (so long nobody would notice)'],
    }),
  );
  const threshold = read('check-threshold', (text, label) => parseInteger(text, label, 1, 1_000));
  return target && { target, intervalMs: intervalMs ?? 2_000, threshold: threshold ?? 3 };
}

/** Variables may be there for other programs of the same surroundings; a flag is meant for this one. */
function refuse(sources: SettingSources, names: readonly SettingName[], expected: string): void {
  const useless = names.map((name) => find(sources, name)).find((given) => given?.flag);
  if (useless) throw new ConfigError(useless.label, useless.text, expected);
}

/** What the instance is registered with must suit those who read it; its id is the task's. */
function checkInstanceFields(sources: SettingSources, name: string, address = 'localhost'): void {
  const settings: Readonly<Record<string, SettingName>> = {
    'instance.name': 'service',
    'instance.id': 'task-id',
    'instance.address': 'address',
  };
  const clock = { now: () => 0 };
  const random = { hex: (bytes: number) => '0'.repeat(2 * bytes) };
  try {
    newInstance({ name, address, id: find(sources, 'task-id')?.text }, { clock, random });
  } catch (error) {
    const given = error instanceof ConfigError && settings[error.setting] && find(sources, settings[error.setting] as SettingName);
    throw given ? new ConfigError(given.label, error.value, error.expected) : error;
  }
}

function parsePayload(text: string, label: string, type: PayloadType): Readonly<Record<string, unknown>> {
  let payload: unknown;
  try {
    payload = JSON.parse(text);
  } catch {
    throw new ConfigError(label, shortened(text), 'a JSON object such as {"weight":5}');
  }
  return payload === null ? {} : checkPayload(payload, type, label);
}

function checkPayloadType(text: string, label: string): PayloadType {
  if (text !== 'map' && text !== 'spring') throw new ConfigError(label, text, 'map or spring');
  return text;
}

function checkAddress(text: string, label: string): string {
  if (!/^[A-Za-z0-9._:%-]{1,255}$/.test(text)) throw new ConfigError(label, text, 'a host name or an IP address, without a port');
  return text;
}

/** An endpoint that is named twice is announced once. */
function distinct(endpoints: readonly EndpointName[]): readonly EndpointName[] {
  return [...new Map(endpoints.map((each) => [JSON.stringify(each), each])).values()];
}
