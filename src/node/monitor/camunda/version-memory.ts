import type { NodeStatus } from '../../../core/lease/operate/inspect.js';
import type { LeaseChange } from '../lease-changes.js';

/**
 * Remembers the last version of each node id of Camunda, whose versions can repeat: two tasks have then
 * written under one fencing token.
 */
export class VersionMemory {
  readonly #last = new Map<
    number,
    { readonly version: number; readonly holder: string | null; readonly isHeld: boolean }
  >();

  /** The versions that came back since the last call, or were used by two tasks. */
  repeats(nodes: readonly NodeStatus[]): LeaseChange[] {
    return nodes.flatMap(({ id, state, version, taskId = null }): LeaseChange[] => {
      if (state === 'absent' || state === 'unreadable') return [];
      const last = this.#last.get(id);
      const previousTaskId = last?.holder ?? null;
      this.#last.set(id, { version, holder: taskId ?? previousTaskId, isHeld: taskId !== null });
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
}
