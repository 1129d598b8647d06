import { type ConfigName, contextsOf, overridesOf, rootOf } from '../../zookeeper/configuration/layout.js';
import { type ConfigPublisher, configPublisher } from '../../zookeeper/configuration/publisher.js';
import type { ConfigPlace } from '../../zookeeper/configuration/read-contexts.js';
import { onConnecting, type ZooKeeperCall } from '../kit/call.js';
import { UsageError } from '../kit/exit-codes.js';

/** The options of the commands of the group `config`, as they are on the command line. */
interface ConfigOptions {
  readonly app?: string;
  readonly profile?: string;
  readonly root?: string;
  readonly node?: number;
  readonly nodes?: string;
  readonly own?: boolean;
  readonly message?: string;
  readonly expect?: number;
  readonly author?: string;
  readonly format?: string;
  readonly replace?: boolean;
}

export type ConfigCall = ZooKeeperCall<ConfigOptions>;

/** What a command works on. */
export interface ConfigWork {
  readonly name: ConfigName;
  readonly place: ConfigPlace;
  /** All contexts, the most specific first; one with `--own`, and that of the overrides with `--nodes`. */
  readonly contexts: readonly string[];
  /** The node whose overrides count. */
  readonly nodeId: number | undefined;
  readonly publisher: ConfigPublisher;
  readonly signal: AbortSignal;
}

/**
 * Opens ZooKeeper for a command, and checks its options before that.
 * @throws {ConfigError} or {UsageError}
 */
export async function onConfig(
  call: ConfigCall,
  act: (work: ConfigWork) => Promise<number>,
): Promise<number> {
  const { io } = call;
  const {
    app,
    profile,
    root,
    node: nodeId,
    nodes,
    own,
    author = `${io.env.USER || io.env.LOGNAME || 'unknown'}@${io.hostname}`,
  } = call.options;
  if (app === undefined)
    throw new UsageError('expected --app NAME, the application whose configuration is meant');
  const name = { app, profile, root };
  const all = contextsOf(name);
  const contexts = nodes !== undefined ? [overridesOf(all[0], nodes, '--nodes')] : own ? [all[0]] : all;
  const { clock, random } = io;
  const place = { clock, random, root: rootOf(name) };
  return onConnecting(call, async (zookeeper, signal) => {
    const publisher = configPublisher(zookeeper, { ...name, nodes, author, clock, random });
    await zookeeper.whenConnected({ signal });
    return act({ name, place: { ...place, zookeeper }, contexts, nodeId, publisher, signal });
  });
}
