import { checkArguments, oneOf } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { catchUp } from '../client/retry.js';
import type { Condition } from './collision-chain.js';
import type { DataEntry, DatumReport, Kind, Scalar } from './data-report.js';
import type { DataCall } from './datum.js';
import { type Address, dataFolder, KINDS, titleOf } from './layout.js';
import { readSharedData } from './report.js';
import { isScalarType, parseScalar, SCALAR_TYPES, scalarOf, TypedText } from './scalar-codec.js';
import type { SharedData } from './shared-data.js';
import { SharedDataError } from './shared-data-error.js';

// Changes of persistent data as a person makes them: by texts and types.

/** An entry that is written. Its texts may come from anywhere. */
export interface EntryEdit {
  readonly name: string;
  readonly scope: string;
  readonly kind: Kind;
  /** Of a map. */
  readonly key?: Scalar | null | undefined;
  readonly value: Scalar;
  /** As {@link ConditionalCall.ifVersion}; not for sets and lists, where an entry is added. */
  readonly ifVersion?: Condition | undefined;
}

/** An entry that is removed. */
export interface EntryRemoval extends Pick<EntryEdit, 'name' | 'scope' | 'ifVersion'> {
  /** Its key, index or value; any type where only one entry has that text. */
  readonly entry: { readonly value: string; readonly type?: string | undefined };
}

/**
 * Writes a scalar or the entry of a map, adds to a set, or appends to a list. Resolves to false where
 * `ifVersion` does not hold.
 *
 * @throws {ConfigError} for a type that there is not, and a text that it does not allow @throws
 * {SharedDataError} also where it is ephemeral
 */
export async function writeEntry(
  shared: SharedData,
  { name, scope, kind, key, value, ifVersion }: EntryEdit,
  call: DataCall,
): Promise<boolean> {
  checkArguments({ kind }, { kind: oneOf(...KINDS) });
  const written = parsed(value, 'value');
  const options = { scope, ...call };
  const conditional = { ...call, ifVersion };
  if (kind === 'scalar') return persistent(await shared.scalar(name, options)).set(written, conditional);
  if (kind === 'map')
    return persistent(await shared.map(name, options)).set(parsed(key, 'key'), written, conditional);
  if (kind === 'list') await persistent(await shared.list(name, options)).append(written, call);
  else await persistent(await shared.set(name, options)).add(written, call);
  return true;
}

/**
 * Removes an entry of a collection. Resolves to false for none, and where `ifVersion` does not hold.
 *
 * @throws {ConfigError} where no entry is named
 * @throws {SharedDataError} `ambiguous`; `kind-clash` for a scalar, which has none; also where it is
 * ephemeral
 */
export async function removeEntry(
  shared: SharedData,
  { name, scope, entry, ifVersion }: EntryRemoval,
  call: DataCall,
): Promise<boolean> {
  if (typeof entry?.value !== 'string')
    throw new ConfigError(
      'entry',
      entry?.value ?? entry,
      'the text of its key, index or value: {"value":"…"}',
    );
  const datum = await presentDatum(shared, { name, scope }, entry.value, call);
  const found =
    datum?.entries.flatMap((each) => (isEntry(each, entry) ? (each.key ?? each.scalar ?? []) : [])) ?? [];
  const [only] = found;
  if (!datum || !only) return false;
  const fail = (problem: string, fault: 'ambiguous' | 'kind-clash') =>
    new SharedDataError(`${titleOf({ name, scope })} ${problem}`, fault, datum.path);
  if (datum.kind === 'scalar') throw fail('is a scalar, and has no entries', 'kind-clash');
  if (found.length > 1)
    throw fail(
      `has ${found.length} entries ${JSON.stringify(entry.value)}: expected --type with it`,
      'ambiguous',
    );
  const options = { scope, ...call };
  const conditional = { ...call, ifVersion };
  if (datum.kind === 'list')
    return persistent(await shared.list(name, options)).remove(Number(only.value), conditional);
  const value = new TypedText(only.type, only.value);
  if (datum.kind === 'map') return persistent(await shared.map(name, options)).remove(value, conditional);
  return persistent(await shared.set(name, options)).remove(value, conditional);
}

/** Reads a datum, and of its entries those that may have that text. Undefined where there is none. */
export async function presentDatum(
  { root, context }: SharedData,
  address: Address,
  key: string,
  call: DataCall,
): Promise<DatumReport | undefined> {
  // A server that lags behind may not show it yet.
  await catchUp(context.zookeeper, dataFolder(root), call);
  const query = { connect: '', root, address, key };
  return (await readSharedData(context.zookeeper, query, call.signal)).data[0];
}

/** Whether an entry is the one that was asked for by its text, and its type where that is given. */
export function isEntry({ key, scalar }: DataEntry, { value, type }: EntryRemoval['entry']): boolean {
  const named = key ?? scalar;
  return named?.value === value && (type === undefined || named.type === type);
}

/** @throws {ConfigError} for a type that there is not, and a text that it does not allow */
export function parsed(text: Scalar | null | undefined, label: 'key' | 'value'): TypedText {
  const { type, value } = scalarOf(text) ?? {};
  if (type === undefined || value === undefined) throw new ConfigError(label, text, 'a text and its type');
  if (!isScalarType(type))
    throw new ConfigError(label === 'key' ? 'key-type' : 'type', type, `one of ${SCALAR_TYPES.join(', ')}`);
  const scalar = parseScalar(type, value);
  if (scalar === undefined) throw new ConfigError(label, value, `the text of a value of the type ${type}`);
  return scalar;
}

function persistent<T extends { readonly lifespan: string; readonly path: string }>(datum: T): T {
  if (datum.lifespan === 'persistent') return datum;
  throw new SharedDataError(
    'the data is ephemeral: only the node that contributes an entry writes it',
    'owned-by-other',
    datum.path,
  );
}
