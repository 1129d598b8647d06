import { checkArguments, type Kinds, listOf, OBJECT, oneOf, whole } from '../../core/base/arguments.js';
import type { MultiOperation } from './zookeeper.js';

/** What calls on znodes are made of, by the names of the arguments. */
export const ZNODE_ARGUMENTS: Kinds = {
  mode: oneOf('shared', 'persistent', 'ephemeral', 'persistent-sequential', 'ephemeral-sequential'),
  version: whole(-1),
  type: oneOf('create', 'set', 'remove', 'check'),
};
/** Checks a transaction. @throws {ConfigError} */
export function checkOperations(operations: readonly MultiOperation[]): void {
  checkArguments({ operations }, { operations: listOf(OBJECT) });
  for (const operation of operations) {
    const { type, path, data, mode, version = -1 } = operation as Readonly<Record<string, unknown>>;
    checkArguments({ type, path, version }, ZNODE_ARGUMENTS);
    if (type === 'create' || type === 'set') checkArguments({ data });
    if (type === 'create') checkArguments({ mode }, ZNODE_ARGUMENTS);
  }
}
