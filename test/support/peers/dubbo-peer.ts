import { compileDubboPrograms } from './interop.js';
import { type JavaPeer, startJavaPeer } from './java-peer.js';

/** Where a Dubbo application is, and what it is. */
export interface DubboPeerOptions {
  /** Without a chroot, which Dubbo does not have. */
  readonly servers: string;
  /** Everything of Dubbo's is below it: applications in `services`, interfaces in `dubbo`. */
  readonly root: string;
  readonly role: 'provider' | 'consumer';
  /** The name of the provider's application. */
  readonly application: string;
}

/** A Dubbo application in its own process: `test/interop/dubbo/DubboPeer.java`. */
export interface DubboPeer extends JavaPeer {
  /** A consumer's call of a provider. @throws {PeerError} where it knows none */
  greet(name: string): Promise<string>;
}

/** Maven takes seconds to find it. */
let classPath: Promise<string> | undefined;

/**
 * Starts one, connected to ZooKeeper and registered when this resolves. It ends with this process.
 *
 * @throws Error with its words when it does not get ready
 */
export async function startDubboPeer(options: DubboPeerOptions): Promise<DubboPeer> {
  const { servers, root, role, application } = options;
  const args = [servers, root, role, application];
  classPath ??= compileDubboPrograms();
  const peer = await startJavaPeer(await classPath, 'DubboPeer', args);
  return { ...peer, greet: (name) => peer.call('greet', { name }) };
}
