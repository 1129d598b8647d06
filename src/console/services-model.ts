import type { StreamEvent } from './feed.js';
import type { PageClock } from './page-clock.js';
import type { ServiceChanges, ServiceEntry, ServicesHello, ServicesStatus } from './services-wire.js';

/**
 * How something below a service is shown, in the order in which it is counted; `damaged` is what is no
 * instance.
 */
const STATES = ['enabled', 'disabled', 'out of service', 'of a Dubbo interface', 'damaged'] as const;
export type InstanceState = (typeof STATES)[number];

/** What the page knows of the services, from the events of the stream. */
export class ServicesModel {
  about: ServicesHello | undefined;
  store: ServicesStatus = { state: 'ok', problem: null, isWhole: false, isPartial: false };
  /**
   * Since when what there is has not been renewed, on the page's monotonic clock; undefined while it is
   * fresh.
   */
  staleSince: number | undefined;
  /** Services, instances, and what is none, by their paths. What is no different stays the same object. */
  readonly entries = new Map<string, ServiceEntry>();
  /** The paths of the last connection that this one has not confirmed. */
  #unconfirmed = new Set<string>();
  #isChanged = true;
  #spoken: string[] = [];

  constructor(private readonly clock: PageClock) {}

  get isKnown(): boolean {
    return this.about !== undefined;
  }

  /** Called when the connection comes and goes. */
  connection(isLive: boolean): void {
    const isFresh = isLive && this.store.state === 'ok';
    this.staleSince = isFresh ? undefined : (this.staleSince ?? this.clock.monotonic());
  }

  /**
   * Takes in an event of the stream; one that the page does not know is left out.
   * @throws {SyntaxError} when its data is no JSON
   */
  apply({ event, data }: StreamEvent): void {
    const json: unknown = JSON.parse(data);
    if (event === 'hello') {
      this.about = json as ServicesHello;
      this.#unconfirmed = new Set(this.entries.keys());
    } else if (event === 'status') {
      this.store = json as ServicesStatus;
      this.#isChanged = true;
      if (this.store.isWhole) for (const path of this.#unconfirmed) this.#put(path, undefined);
    } else if (event === 'entries') {
      const { set, gone } = json as ServiceChanges;
      for (const [path, entry] of set) this.#put(path, entry);
      for (const path of gone) this.#put(path, undefined);
    }
    this.connection(true);
  }

  /** Whether anything is different since the last call. */
  takeChange(): boolean {
    const isChanged = this.#isChanged;
    this.#isChanged = false;
    return isChanged;
  }

  /**
   * What has happened since the last call, for screen readers: nothing of what was there when the page began.
   */
  takeSpoken(): readonly string[] {
    return this.#spoken.splice(0);
  }

  #put(path: string, entry: ServiceEntry | undefined): void {
    const before = this.entries.get(path);
    this.#unconfirmed.delete(path);
    if (JSON.stringify(entry) === JSON.stringify(before)) return;
    this.#isChanged = true;
    if (entry) this.entries.set(path, entry);
    else this.entries.delete(path);
    const { service, id } = entry ?? before ?? {};
    const change = changeOf(before, entry);
    if (id != null && this.store.isWhole && change !== undefined)
      this.#spoken.push(`${service} ${id} ${change}`);
  }
}

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
  const inOrder = [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [path, entry] of inOrder) {
    if (entry.id === null) services.set(entry.service, { service: entry, instances: new Map() });
    else services.get(entry.service)?.instances.set(path, entry);
  }
  return [...services.values()];
}

export function stateOf({ instance, isDubboFolder }: ServiceEntry): InstanceState {
  return instance?.state ?? (isDubboFolder ? 'of a Dubbo interface' : 'damaged');
}

/** What has happened to an instance, as a verb; undefined where that is not announced. */
function changeOf(before: ServiceEntry | undefined, after: ServiceEntry | undefined): string | undefined {
  if (before === undefined || after === undefined) return after ? 'has come' : 'has gone';
  const state = stateOf(after);
  return state === stateOf(before) ? undefined : `is ${state}`;
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
