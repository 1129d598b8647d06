import { compileSpringPrograms } from './interop.js';
import { type JavaPeer, startJavaPeer } from './java-peer.js';

/**
 * A Spring Boot application with its configuration in ZooKeeper, in a process of its own:
 * `test/interop/spring/SpringConfigPeer.java`.
 */
export interface SpringConfigPeer extends Pick<JavaPeer, 'stop' | 'kill'> {
  /** What the application gets by each key that stands in ZooKeeper. */
  properties(): Promise<Readonly<Record<string, string>>>;
  /** Where it looks, the most specific first. */
  contexts(): Promise<readonly string[]>;
  /** Sets a znode, parents included. */
  write(path: string, value: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** The keys of each change that Spring has reported to the application so far. */
  changes(): readonly (readonly string[])[];
}

/**
 * Starts one, configured when this resolves. It ends with this process.
 *
 * @throws Error with its words when it does not get ready
 */
export async function startSpringConfigPeer(
  connect: string,
  app: string,
  profile = '',
): Promise<SpringConfigPeer> {
  const peer = await startJavaPeer(await compileSpringPrograms(), 'SpringConfigPeer', [
    connect,
    app,
    profile,
  ]);
  return {
    stop: peer.stop,
    kill: peer.kill,
    properties: () => peer.call('properties'),
    contexts: () => peer.call('contexts'),
    write: (path, value) => peer.call('write', { path, value }),
    remove: (path) => peer.call('remove', { path }),
    changes: () =>
      peer.events.flatMap((reported) => ('keys' in reported ? [reported.keys as readonly string[]] : [])),
  };
}
