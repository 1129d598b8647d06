import type { StreamEvent } from './feed.js';
import type { PageClock } from './page-clock.js';
import type { WireService, WireServiceChanges, WireServices, WireServicesStatus } from './services-wire.js';

/** How something below a service is shown; `damaged` is what is no instance. */
export type InstanceState = 'enabled' | 'disabled' | 'out of service' | 'damaged';

/** What is different since the last call. */
export interface ServicesChanges {
  /** The services with something new in them. */
  readonly services: ReadonlySet<string>;
  /** What has happened since all had been read, for screen readers. */
  readonly spoken: readonly string[];
}

/** A service, and by their paths its instances and what is none. */
export interface SeenService {
  /** Why its instances cannot be listed, as the rest of the sentence "<service> …". */
  problem: string | null;
  readonly instances: Map<string, WireService>;
}

const NOTHING_READ: WireServicesStatus = { state: 'ok', problem: null, isWhole: false, isPartial: false };

/** What the page knows of the services, from the events of the stream. */
export class ServicesModel {
  about: WireServices | undefined;
  store = NOTHING_READ;
  /** Since when what there is has not been renewed, on the page's monotonic clock; undefined while it is fresh. */
  staleSince: number | undefined;
  /** By their names. */
  readonly services = new Map<string, SeenService>();
  readonly #byPath = new Map<string, WireService>();
  /** The paths of what was there before the connection began anew, and has not been told of since. */
  #untold = new Set<string>();
  #isLive = false;
  #changed = new Set<string>();
  #spoken: string[] = [];

  constructor(private readonly clock: PageClock) {}

  get isKnown(): boolean {
    return this.about !== undefined;
  }

  /** How many instances there are, and what is no instance. */
  get count(): number {
    return [...this.services.values()].reduce((sum, { instances }) => sum + instances.size, 0);
  }

  /** Called when the connection comes and goes. */
  connection(isLive: boolean): void {
    this.#isLive = isLive;
    this.#judgeFreshness();
  }

  /** Takes in an event of the stream; one that the page does not know is left out. @throws {SyntaxError} when its data is no JSON */
  apply({ event, data }: StreamEvent): void {
    const json: unknown = JSON.parse(data);
    if (event === 'hello') this.#begin(json as WireServices);
    else if (event === 'status') this.#takeStatus(json as WireServicesStatus);
    else if (event === 'entries') this.#take(json as WireServiceChanges);
    this.#isLive = true;
    this.#judgeFreshness();
  }

  takeChanges(): ServicesChanges {
    const changes = { services: this.#changed, spoken: this.#spoken };
    this.#changed = new Set();
    this.#spoken = [];
    return changes;
  }

  #begin(about: WireServices): void {
    this.about = about;
    this.store = NOTHING_READ;
    this.#untold = new Set(this.#byPath.keys());
  }

  #takeStatus(status: WireServicesStatus): void {
    this.store = status;
    if (!status.isWhole) return;
    for (const path of this.#untold) this.#put(path, undefined);
    this.#untold.clear();
  }

  #take({ set, gone }: WireServiceChanges): void {
    for (const [path, entry] of set) this.#put(path, entry);
    for (const path of gone) this.#put(path, undefined);
  }

  #put(path: string, entry: WireService | undefined): void {
    const before = this.#byPath.get(path);
    const { service: name, id } = entry ?? before ?? {};
    this.#untold.delete(path);
    if (name === undefined || JSON.stringify(entry) === JSON.stringify(before)) return;
    this.#changed.add(name);
    if (entry) this.#byPath.set(path, entry);
    else this.#byPath.delete(path);
    const service = this.services.get(name) ?? { problem: null, instances: new Map<string, WireService>() };
    this.services.set(name, service);
    if (id === null) {
      service.problem = entry?.problem ?? null;
      if (!entry) this.services.delete(name);
      return;
    }
    if (entry) service.instances.set(path, entry);
    else service.instances.delete(path);
    const change = changeOf(before, entry);
    if (this.store.isWhole && change !== undefined) this.#spoken.push(`${name} ${id} ${change}`);
  }

  #judgeFreshness(): void {
    const isFresh = this.#isLive && this.store.state === 'ok';
    this.staleSince = isFresh ? undefined : (this.staleSince ?? this.clock.monotonic());
  }
}

export function stateOf({ instance }: WireService): InstanceState {
  return instance?.state ?? 'damaged';
}

/** What has happened to an instance, as a verb; undefined where that is nothing to be told aloud. */
function changeOf(before: WireService | undefined, after: WireService | undefined): string | undefined {
  if (before === undefined || after === undefined) return before === after ? undefined : after ? 'has come' : 'has gone';
  const state = stateOf(after);
  return state === stateOf(before) ? undefined : `is ${state}`;
}

/** Whose lease an instance is, in words; none where nobody says. */
export function leaseText({ lease }: WireService): string {
  if (lease === null) return '';
  const { nodeId, version, taskId, toldBy, otherVersion } = lease;
  const node = `node id ${nodeId}${version === null ? '' : `, version ${version}`}`;
  if (toldBy === 'tree') return `${node}, task ${taskId}`;
  const tree = otherVersion === null ? 'the discovery tree has no such node' : `the discovery tree has version ${otherVersion}`;
  return `${node}, says its payload: ${tree}`;
}

/** Where an instance answers; none where it does not say. */
export function addressText({ instance }: WireService): string {
  const { address = null, port = null, sslPort = null } = instance ?? {};
  const host = address?.includes(':') ? `[${address}]` : (address ?? '');
  return `${host}${port === null ? '' : `:${port}`}${sslPort === null ? '' : ` TLS :${sslPort}`}`;
}

/** Whether all words of a filter stand in what is shown of an entry. `words` are in lower case. */
export function fits(entry: WireService, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const { service, id, text, problem, instance } = entry;
  const shown = [service, id, stateOf(entry), instance?.serviceType, addressText(entry), leaseText(entry), text, problem];
  const all = shown.join('\n').toLowerCase();
  return words.every((word) => all.includes(word));
}

/** How many there are of each state, in words: `48 enabled, 1 damaged`. */
export function countText(entries: Iterable<WireService>): string {
  const counts = new Map<InstanceState, number>();
  for (const entry of entries) counts.set(stateOf(entry), (counts.get(stateOf(entry)) ?? 0) + 1);
  const told = (['enabled', 'disabled', 'out of service', 'damaged'] as const).flatMap((state) => {
    const count = counts.get(state);
    return count === undefined ? [] : [`${count.toLocaleString('en')} ${state}`];
  });
  return told.length === 0 ? 'no instances' : told.join(', ');
}
