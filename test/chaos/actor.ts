/** The pause between two acts of a task, in milliseconds. */
export const ACT_EVERY_MS = 5;

/** What a task that acts says of itself, once, on its standard output. */
export interface Acting {
  /** The process that acts. */
  readonly pid: number;
  readonly nodeId: number;
  readonly version: number;
  readonly taskId: string;
}

/** Says, on standard output, that this process begins to act. */
export function sayActing(tenure: Omit<Acting, 'pid'>): void {
  process.stdout.write(`acting ${process.pid} ${tenure.nodeId} ${tenure.version} ${tenure.taskId}\n`);
}

/** What {@link sayActing} said, as soon as it has. */
export const ACTING = /^acting (\d+) (\d+) (\d+) (\S+)\n/m;

/** Reads a match of {@link ACTING}. */
export function readActing([, pid, nodeId, version, taskId = '']: RegExpExecArray): Acting {
  return { pid: Number(pid), nodeId: Number(nodeId), version: Number(version), taskId };
}
