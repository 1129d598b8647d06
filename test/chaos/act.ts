import { closeSync, constants, openSync, writeSync } from 'node:fs';

/**
 * Who acts.
 * - `run`: the command of `nodelease run`. It asks no lease: while it runs, it acts.
 * - `library`: a program that asks `isValid()` just before.
 */
export type ActorKind = 'run' | 'library';

/** The numbers of shards and locks in acts. Node ids are smaller. */
export const FIRST = { shard: 10_000, lock: 20_000 };

/** What a number in acts means. */
export function describeId(id: number): string {
  if (id >= FIRST.lock) return `lock ${id - FIRST.lock}`;
  return id >= FIRST.shard ? `shard ${id - FIRST.shard}` : `node id ${id}`;
}

/**
 * Something done under a node id, a shard or a lock: what must not happen twice at a time. Times are
 * microseconds of the machine's CLOCK_MONOTONIC.
 */
export interface Act {
  readonly nodeId: number;
  /** The fencing token. */
  readonly version: number;
  readonly taskId: string;
  readonly kind: ActorKind;
  /** Counts the acts of this task, from 0. */
  readonly sequence: number;
  /** Read before the task made sure that it holds the id, so not later than that. */
  readonly before: number;
  /** Read after it had made sure, so not earlier than that. */
  readonly after: number;
}

/**
 * CLOCK_MONOTONIC, which all processes of the machine share, whatever their wall clocks say, in microseconds,
 * rounded down.
 */
export function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

/** One line for an act; far shorter than what a pipe takes in one piece. */
export function formatAct({ nodeId, version, taskId, kind, sequence, before, after }: Act): string {
  return `${nodeId} ${version} ${taskId} ${kind} ${sequence} ${before} ${after}\n`;
}

/** @throws Error when the line is not one of {@link formatAct} */
export function parseAct(line: string): Act {
  const [nodeId, version, taskId, kind, sequence, before, after, ...rest] = line.split(' ');
  const act = {
    nodeId: Number(nodeId),
    version: Number(version),
    sequence: Number(sequence),
    before: Number(before),
    after: Number(after),
  };
  if (
    !taskId ||
    (kind !== 'run' && kind !== 'library') ||
    rest.length > 0 ||
    Object.values(act).some((value) => !Number.isSafeInteger(value))
  ) {
    throw new Error(`not an act: ${JSON.stringify(line)}`);
  }
  return { ...act, taskId, kind };
}

/**
 * The acting side of the observer's pipe. Never blocks: an act that finds the pipe full does not happen, and
 * leaves a gap in the sequence.
 */
export class ActWriter {
  readonly #pipe: number;
  #sequence = 0;

  /** @throws Error when there is no observer */
  constructor(path: string) {
    this.#pipe = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  }

  /** Acts; false when the observer is gone. */
  act(act: Omit<Act, 'sequence'>): boolean {
    const line = formatAct({ ...act, sequence: this.#sequence });
    this.#sequence += 1;
    try {
      writeSync(this.#pipe, line);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EAGAIN';
    }
  }

  close(): void {
    closeSync(this.#pipe);
  }
}
