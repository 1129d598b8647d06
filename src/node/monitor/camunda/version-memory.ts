import type { ForeignReader } from '../format-reader.js';
import type { LeaseChange } from '../lease-changes.js';

/**
 * Remembers the last version of each node id, and finds the versions that came back since the last call, or
 * were used by two tasks: these have then written under one fencing token.
 */
export function versionMemory(): ForeignReader['changes'] {
  const lastOf = new Map<
    number,
    { readonly version: number; readonly holder: string | null; readonly isHeld: boolean }
  >();
  return (nodes) =>
    nodes.flatMap(({ id, state, version, taskId = null }): LeaseChange[] => {
      if (state === 'absent' || state === 'unreadable') return [];
      const last = lastOf.get(id);
      const previousTaskId = last?.holder ?? null;
      lastOf.set(id, { version, holder: taskId ?? previousTaskId, isHeld: taskId !== null });
      if (last === undefined || version > last.version) return [];
      const isSame = version === last.version;
      // A renewal keeps the version, and so does a release.
      if (isSame && (taskId === null || (last.isHeld && taskId === previousTaskId))) return [];
      const what = isSame
        ? `version ${version} of node id ${id} is used again by ${taskId}, after its use by ${previousTaskId ?? 'another task'}`
        : `the version of node id ${id} has gone back from ${last.version} to ${version}`;
      const text = `${what}: what was written under it can no longer be distinguished`;
      return [{ kind: 'version-repeated', nodeId: id, version, taskId, previousTaskId, text }];
    });
}
