import { ConfigError } from '../../base/errors.js';
import { readSharedData } from '../../monitor/shared-data-report.js';
import { TypedText } from '../../shared-data/scalar-codec.js';
import { isScalarType, parseScalar, SCALAR_TYPES } from '../../shared-data/scalar-types.js';
import { type SharedData, sharedData } from '../../shared-data/shared-data.js';
import { SharedDataError } from '../../shared-data/shared-data-error.js';
import { complain, say, sayJson } from '../commands/store-command.js';
import { onZooKeeper, type ZooKeeperCommandSettings } from '../commands/zookeeper-command.js';
import { ExitCode, UsageError } from '../exit-codes.js';
import type { Io } from '../terminal/io.js';
import { checkOptions, type DataCommandOptions, isEntry, isNamed, titleOf } from './data-command.js';

/** One call of a command of the group `data` that changes something. */
export interface DataCall {
  readonly name: string;
  readonly options: DataCommandOptions;
  readonly settings: ZooKeeperCommandSettings;
  readonly io: Io;
}

/** What a change needs to know. */
interface Change {
  readonly shared: SharedData;
  readonly scope: string;
  readonly signal: AbortSignal;
}

/** `nodelease data set NAME VALUE`. Resolves to the exit code. */
export function setCommand(call: DataCall, text: string): Promise<number> {
  const value = scalarOf(text, 'value', call.options.type);
  return changed(call, 'written', async ({ shared, scope, signal }) => {
    const scalar = await shared.scalar(call.name, { scope, signal });
    return persistent(scalar, call).set(value, { signal });
  });
}

/** `nodelease data put NAME KEY VALUE`. Resolves to the exit code. */
export function putCommand(call: DataCall, keyText: string, text: string): Promise<number> {
  const key = scalarOf(keyText, 'key', call.options.keyType);
  const value = scalarOf(text, 'value', call.options.type);
  return changed(call, 'written', async ({ shared, scope, signal }) => {
    const map = await shared.map(call.name, { scope, signal });
    return persistent(map, call).set(key, value, { signal });
  });
}

/** `nodelease data add NAME VALUE`. Resolves to the exit code. */
export function addCommand(call: DataCall, text: string): Promise<number> {
  const { name, options } = call;
  const value = scalarOf(text, 'value', options.type);
  if (options.kind === 'scalar' || options.kind === 'map') throw new ConfigError('--kind', options.kind, 'set or list');
  return changed(call, 'added', async ({ shared, scope, signal }) => {
    const kind = options.kind ?? (await shared.describe(name, { scope, signal }))?.kind;
    if (kind === 'list') await persistent(await shared.list(name, { scope, signal }), call).append(value, { signal });
    else await persistent(await shared.set(name, { scope, signal }), call).add(value, { signal });
    return true;
  });
}

/** `nodelease data rm NAME [KEY]`: exit code 1 where there is none. */
export function removeCommand(call: DataCall, key: string | undefined): Promise<number> {
  const { name, options, settings } = call;
  return changed(call, 'removed', async ({ shared, scope, signal }) => {
    if (key === undefined) {
      const { path, problem } = (await shared.describe(name, { scope, signal })) ?? {};
      if (path !== undefined && problem !== undefined) throw new SharedDataError(`${path}: ${problem}`, 'foreign-znode', path);
      return shared.remove(name, { scope, signal });
    }
    const query = { connect: settings.zookeeper.connect.text, root: shared.root, only: isNamed(name, options), key };
    const [datum] = (await readSharedData(shared.context.zookeeper, query, signal)).data;
    const found = datum?.entries.filter((entry) => entry.scalar && isEntry(entry, key, options)) ?? [];
    const [{ key: keyOf, scalar } = { key: null, scalar: null }] = found;
    const named = keyOf ?? scalar;
    if (!datum || !named) return false;
    if (found.length > 1)
      throw new UsageError(`${titleOf(name, scope)} has ${found.length} entries ${JSON.stringify(key)}: expected --type beside it`);
    if (datum.kind === 'scalar') throw new UsageError(`${titleOf(name, scope)} is a scalar, and has no entries`);
    if (datum.kind === 'list') return persistent(await shared.list(name, { scope, signal }), call).remove(Number(key), { signal });
    const collection = datum.kind === 'map' ? await shared.map(name, { scope, signal }) : await shared.set(name, { scope, signal });
    return persistent(collection, call).remove(new TypedText(named.type, named.value), { signal });
  });
}

/** Makes a change, and says it. A clash of kinds is a wrong call. */
function changed({ name, options, settings, io }: DataCall, done: string, change: (change: Change) => Promise<boolean>): Promise<number> {
  const { root, scope = '', json } = checkOptions(options, name);
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    const shared = sharedData(zookeeper, { root, clock: io.clock, random: io.random });
    try {
      if (!(await change({ shared, scope, signal }))) {
        complain(io, `${titleOf(name, scope)}: there is no such entry at ${root}`);
        return ExitCode.nothing;
      }
    } catch (error) {
      if (error instanceof UsageError || (error instanceof SharedDataError && error.fault === 'kind-clash')) {
        complain(io, error.message);
        return ExitCode.usage;
      }
      throw error;
    } finally {
      await shared.close();
    }
    if (json) sayJson(io, { root, name, scope, state: done });
    else say(io, done);
    return ExitCode.ok;
  });
}

/** @throws {UsageError} for ephemeral data, which would go with the session of this command */
function persistent<T extends { readonly lifespan: string }>(datum: T, { name, options }: DataCall): T {
  if (datum.lifespan === 'persistent') return datum;
  throw new UsageError(`${titleOf(name, options.scope)} is ephemeral: only the node that contributes an entry writes it`);
}

/** @throws {ConfigError} for a type that there is not, and a text that it does not allow */
function scalarOf(text: string, label: string, type = 'String'): TypedText {
  if (!isScalarType(type)) throw new ConfigError(`--${label === 'key' ? 'key-' : ''}type`, type, `one of ${SCALAR_TYPES.join(', ')}`);
  const scalar = parseScalar(type, text);
  if (scalar === undefined) throw new ConfigError(label, text, `the text of a value of the type ${type}`);
  return scalar;
}
