import { ConfigError } from '../../base/errors.js';
import { type ConfigName, contextsOf, parseNodeRange, rootOf } from '../../configuration/layout.js';
import { type ConfigPublisher, configPublisher } from '../../configuration/publisher.js';
import type { ConfigPlace } from '../../configuration/read-contexts.js';
import { parseInteger } from '../../settings/values.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';
import { onZooKeeper, type ZooKeeperCommandSettings } from '../commands/zookeeper-command.js';
import { UsageError } from '../exit-codes.js';
import type { Io } from '../terminal/io.js';

/** The options of the commands of the group `config`, as they stand on the command line. */
export interface ConfigOptions {
  readonly app?: string;
  readonly profile?: string;
  readonly root?: string;
  readonly json?: boolean;
  readonly node?: string;
  readonly nodes?: string;
  readonly own?: boolean;
  readonly message?: string;
  readonly expect?: string;
  readonly author?: string;
  readonly format?: string;
  readonly replace?: boolean;
  readonly exec?: string;
}

/** One call of a command of the group. */
export interface ConfigCall {
  readonly options: ConfigOptions;
  readonly settings: ZooKeeperCommandSettings;
  readonly io: Io;
}

/** What a command works on. */
export interface ConfigWork {
  readonly name: ConfigName;
  readonly contexts: readonly [string, ...string[]];
  /** The node whose overrides count. */
  readonly nodeId: number | undefined;
  /** The node ids whose overrides are meant. */
  readonly nodes: string | undefined;
  readonly place: ConfigPlace;
  readonly publisher: ConfigPublisher;
  readonly signal: AbortSignal;
}

/** Opens ZooKeeper for a command, and checks its options before that. @throws {ConfigError} or {UsageError} */
export async function onConfig({ options, settings, io }: ConfigCall, act: (work: ConfigWork) => Promise<number>): Promise<number> {
  const { app, profile, root, node, author = `${io.env.USER || io.env.LOGNAME || 'unknown'}@${io.hostname}` } = options;
  if (app === undefined) throw new UsageError('expected --app NAME, the application whose configuration is meant');
  const name = { app, profile, root };
  const contexts = contextsOf(name);
  const nodeId = node === undefined ? undefined : revisionNumber(node, '--node');
  const nodes = options.nodes === undefined ? undefined : parseNodeRange(options.nodes, '--nodes').text;
  const { clock, random } = io;
  const given = { name, contexts, nodeId, nodes };
  rootOf(name);
  return onZooKeeper(settings, io, async (zookeeper: ZooKeeper, signal) => {
    const place = { zookeeper, clock, random, root: rootOf(name) };
    const publisher = configPublisher(zookeeper, { ...name, author, clock, random });
    await zookeeper.whenConnected({ signal });
    return act({ ...given, place, publisher, signal });
  });
}

/** A revision, or a node id. @throws {ConfigError} */
export const revisionNumber = (text: string, label: string) => parseInteger(text, label, 0, 1_000_000_000);

/** `KEY=VALUE` as a key and a value. @throws {ConfigError} */
export function parseAssignment(text: string): readonly [key: string, value: string] {
  const at = text.indexOf('=');
  if (at < 1) throw new ConfigError('KEY=VALUE', text, 'a key, "=", and its value');
  return [text.slice(0, at), text.slice(at + 1)];
}
