import type { CreateMode, MultiOperation } from '../../zookeeper/zookeeper.js';
import type { ServiceType } from './service-instance.js';

/** How the servers keep an instance of a type. */
export function createModeOf(type: ServiceType): CreateMode {
  switch (type) {
    case 'DYNAMIC':
      return 'ephemeral';
    case 'DYNAMIC_SEQUENTIAL':
      return 'ephemeral-sequential';
    default:
      return 'persistent';
  }
}

/**
 * Puts a new znode in place of the one that stands at a path, in one transaction: nobody sees the place empty. Its data alone cannot be
 * replaced where the mode, or the session that it goes with, is another; and who made the new one can tell it by its transaction.
 * The new one never has the version of the old one: who has looked at that, and writes or removes by its version, does not hit the new one.
 *
 * @param version of the data that may be replaced
 */
export function replacing(path: string, version: number, data: string, mode: CreateMode): MultiOperation[] {
  return [
    { type: 'remove', path, version },
    { type: 'create', path, data, mode },
    ...(replacementVersion(version) === 0 ? [] : [{ type: 'set' as const, path, data, version: 0 }]),
  ];
}

/** Which version the data have of a znode that was put in place of another. */
export function replacementVersion(version: number): number {
  return version === 0 ? 1 : 0;
}
