import type { ServiceEntry } from '../../../node/wire/entries-wire.js';

/**
 * How something below a service is shown, in the order in which it is counted; `damaged` is what is no
 * instance.
 */
const STATES = ['enabled', 'disabled', 'out of service', 'of a Dubbo interface', 'damaged'] as const;
type InstanceState = (typeof STATES)[number];

/** Instances that are shown together. */
export interface SeenService {
  readonly service: ServiceEntry;
  /** And what is no instance; by path, in the order of the paths. */
  readonly instances: ReadonlyMap<string, ServiceEntry>;
}

/** The services in the order of their names. */
export function servicesIn(entries: ReadonlyMap<string, ServiceEntry>): readonly SeenService[] {
  const services = new Map<string, { service: ServiceEntry; instances: Map<string, ServiceEntry> }>();
  // A service's path goes before those of its instances.
  for (const [path, entry] of [...entries].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (entry.id === null) services.set(entry.service, { service: entry, instances: new Map() });
    else services.get(entry.service)?.instances.set(path, entry);
  }
  return [...services.values()];
}

export function stateOf({ instance, isDubboFolder }: ServiceEntry): InstanceState {
  return instance?.state ?? (isDubboFolder ? 'of a Dubbo interface' : 'damaged');
}

/** What has happened to an instance; undefined where that is not announced. */
export function changeText(
  before: ServiceEntry | undefined,
  after: ServiceEntry | undefined,
): string | undefined {
  const { service, id = null } = after ?? before ?? {};
  const state = after && stateOf(after);
  if (id === null || (before && after && state === stateOf(before))) return undefined;
  return `${service} ${id} ${!before ? 'has come' : !after ? 'has gone' : `is ${state}`}`;
}

/** Whose lease an instance is, in words; none where neither it nor the discovery tree says. */
export function leaseText({ instance, node }: ServiceEntry): string {
  const { nodeId, version = null } = instance?.claim ?? node ?? {};
  if (nodeId === undefined) return '';
  if (node && (version === null || version === node.version))
    return `node id ${nodeId}, version ${node.version}, task ${node.taskId}`;
  const tree = node ? `version ${node.version}` : 'no such node';
  return `node id ${nodeId}${version === null ? '' : `, version ${version}`}, says its payload: the discovery tree has ${tree}`;
}

/** What is known of the session of an instance, in words: while the znode exists, the servers have not ended it. */
export function sessionText({ sessionId }: ServiceEntry): string {
  return sessionId === null ? 'no session' : `session ${sessionId} alive`;
}

/** Where an instance answers; none where it does not say. */
export function addressText({ instance }: ServiceEntry): string {
  const { address = null, port = null, sslPort = null } = instance ?? {};
  const host = address?.includes(':') ? `[${address}]` : (address ?? '');
  return `${host}${port === null ? '' : `:${port}`}${sslPort === null ? '' : ` TLS :${sslPort}`}`;
}

/** How many there are of each state, in words: `48 enabled, 1 damaged`. */
export function countText(entries: readonly ServiceEntry[]): string {
  const counts = STATES.flatMap((state) => {
    const { length } = entries.filter((entry) => stateOf(entry) === state);
    return length === 0 ? [] : [`${length.toLocaleString('en')} ${state}`];
  });
  return counts.length === 0 ? 'no instances' : counts.join(', ');
}
