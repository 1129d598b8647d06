import { JAVA_OPTIONS } from './interop.js';
import { type LinePeer, startLinePeer, stopLinePeers } from './line-peer.js';

/** A Java program of `test/interop`. */
export type JavaPeer = LinePeer;

/**
 * Starts one, ready when this resolves. It ends with this process.
 *
 * @throws Error with its words when it does not get ready
 */
export function startJavaPeer(
  classPath: string,
  program: string,
  args: readonly string[],
  options: readonly string[] = JAVA_OPTIONS,
): Promise<JavaPeer> {
  return startLinePeer({
    name: program,
    command: 'java',
    args: [...options, '-cp', classPath, program, ...args],
  });
}

/** For `afterEach`. */
export const stopJavaPeers: () => Promise<void> = stopLinePeers;
