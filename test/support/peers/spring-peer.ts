import { compileSpringPrograms } from './interop.js';
import { type JavaPeer, startJavaPeer } from './java-peer.js';

/** An instance as a Spring application has it from its `DiscoveryClient`. */
export interface SpringServiceInstance {
  readonly id: string;
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly uri: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** What Spring is to register. */
export interface SpringInit {
  readonly name: string;
  readonly id: string;
  readonly address: string;
  readonly port: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * A Spring Boot application with Spring Cloud Zookeeper, in a process of its own:
 * `test/interop/spring/SpringPeer.java`.
 */
export interface SpringPeer extends JavaPeer {
  register(instance: SpringInit): Promise<void>;
  /** What its `DiscoveryClient` finds. */
  instances(name: string): Promise<readonly SpringServiceInstance[]>;
  /** What its load balancer chooses. */
  choose(name: string): Promise<SpringServiceInstance | null>;
}

/**
 * Starts one, connected to ZooKeeper when this resolves. It ends with this process.
 *
 * @throws Error with its words when it does not get ready
 */
export async function startSpringPeer(connect: string, root: string): Promise<SpringPeer> {
  const peer = await startJavaPeer(await compileSpringPrograms(), 'SpringPeer', [connect, root]);
  return {
    ...peer,
    register: (instance) => peer.call('register', { instance }),
    instances: (name) => peer.call('instances', { name }),
    choose: (name) => peer.call('choose', { name }),
  };
}
