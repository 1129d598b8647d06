import { compileCuratorPrograms } from './interop.js';
import { type JavaPeer, startJavaPeer } from './java-peer.js';

/** An instance as Java sees it. */
export interface JavaInstance {
  readonly name: string;
  readonly id: string;
  readonly address: string | null;
  readonly port: number | null;
  readonly sslPort: number | null;
  readonly payload: unknown;
  /** The name of the payload's class in Java. */
  readonly payloadClass: string | null;
  readonly registrationTimeUTC: number;
  readonly serviceType: string | null;
  /** What Curator makes of the uriSpec. */
  readonly url: string | null;
  readonly enabled: boolean;
}

/** What Java is to register. */
export interface JavaInit {
  readonly name: string;
  readonly id: string;
  readonly address: string;
  readonly port?: number;
  readonly sslPort?: number;
  /** An object arrives as a `TreeMap`. */
  readonly payload?: unknown;
  readonly serviceType?: string;
  /** Such as `{scheme}://{address}:{port}`. */
  readonly uriSpec?: string;
  readonly enabled?: boolean;
}

/** Java's cache has changed, or its connection. */
export type JavaEvent =
  | { readonly event: 'ready' }
  | { readonly event: 'state'; readonly state: string }
  | { readonly event: 'cache'; readonly name: string; readonly instances: readonly JavaInstance[] };

/** A Java service that uses Curator, in a process of its own: `test/interop/CuratorPeer.java`. */
export interface CuratorPeer extends Omit<JavaPeer, 'call'> {
  /** What has happened there so far, oldest first. */
  readonly events: readonly JavaEvent[];
  register(instance: JavaInit): Promise<void>;
  update(instance: JavaInit): Promise<void>;
  unregister(name: string, id: string): Promise<void>;
  names(): Promise<readonly string[]>;
  /** `queryForInstances`. */
  instances(name: string): Promise<readonly JavaInstance[]>;
  /** `queryForInstance`. */
  instance(name: string, id: string): Promise<JavaInstance | null>;
  /** Starts a `ServiceCache`, whose changes are reported among the events. */
  follow(name: string): Promise<void>;
  /** What that cache holds. */
  cached(name: string): Promise<readonly JavaInstance[]>;
  /** Starts a `ServiceProvider` that goes round. */
  provide(name: string): Promise<void>;
  /** What that provider picks. */
  pick(name: string): Promise<JavaInstance | null>;
  /** What Curator's serializer makes of a znode's data. */
  decode(json: string): Promise<JavaInstance>;
}

export interface CuratorPeerOptions {
  readonly connect: string;
  readonly basePath: string;
  /** @default 10000 */
  readonly sessionTimeoutMs?: number;
  /** The class that its payloads are cast to: `Object` or `Map`. @default any */
  readonly payload?: 'any' | 'map';
  /**
   * Whether it writes the field `enabled`: by default Curator's serializer leaves it out.
   * @default true
   */
  readonly enabledField?: boolean;
}

/**
 * Starts a Java service, connected to ZooKeeper when this resolves. It ends with this process.
 *
 * @throws Error with its words when it does not get ready
 */
export async function startCuratorPeer(options: CuratorPeerOptions): Promise<CuratorPeer> {
  const { connect, basePath, sessionTimeoutMs = 10_000, payload = 'any', enabledField = true } = options;
  const args = [connect, basePath, String(sessionTimeoutMs), payload, String(enabledField)];
  const peer = await startJavaPeer(await compileCuratorPrograms(), 'CuratorPeer', args);
  const { call } = peer;
  return {
    ...peer,
    events: peer.events as readonly JavaEvent[],
    register: (instance) => call('register', { instance }),
    update: (instance) => call('update', { instance }),
    unregister: (name, id) => call('unregister', { name, id }),
    names: () => call('names'),
    instances: (name) => call('instances', { name }),
    instance: (name, id) => call('instance', { name, id }),
    follow: (name) => call('follow', { name }),
    cached: (name) => call('cached', { name }),
    provide: (name) => call('provide', { name }),
    pick: (name) => call('pick', { name }),
    decode: (json) => call('decode', { json }),
  };
}
