import type { NodeStatus } from '../lease/operate/inspect.js';
import type { LeaseChange } from './lease-changes.js';

/** Remembers the last version of each node id of Camunda, whose versions can repeat: then two tasks have written under one fencing token. */
export class VersionMemory {
  readonly #last = new Map<number, Pick<NodeStatus, 'version' | 'taskId'> & { readonly released: boolean }>();

  /** What came back since the last call, or was used by two tasks. */
  repeats(nodes: readonly NodeStatus[]): LeaseChange[] {
    return nodes.flatMap((node) => {
      const { id, state, version, taskId } = node;
      if (state === 'absent' || state === 'unreadable') return [];
      const last = this.#last.get(id);
      const isReleased = taskId === undefined;
      this.#last.set(id, { version, taskId: taskId ?? last?.taskId, released: isReleased });
      if (last === undefined || version > last.version) return [];
      const isSame = version === last.version;
      if (isSame && (isReleased || (!last.released && taskId === last.taskId))) return [];
      const who = taskId === undefined ? '' : ` by ${taskId}`;
      const before = last.taskId === undefined ? '' : ` by ${last.taskId}`;
      const text = isSame
        ? `version ${version} of node id ${id} is used again${who}, after its use${before}`
        : `the version of node id ${id} has gone back from ${last.version}${before} to ${version}${who}`;
      const tasks = { taskId: taskId ?? null, previousTaskId: last.taskId ?? null };
      return [
        { kind: 'version-repeated', nodeId: id, version, ...tasks, text: `${text}: what was written under it can no longer be told apart` },
      ];
    });
  }
}
