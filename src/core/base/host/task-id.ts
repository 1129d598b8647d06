import { callWithTimeout } from '../abort.js';
import type { Clock, RandomSource } from '../clock.js';
import { ConfigError, explain } from '../errors.js';
import { fieldOf, textOf } from '../fields.js';

/** What a run is called. */
export interface TaskNames {
  readonly taskId: string;
  /** The name that its cluster must have, if any: see `ClusterConfig.name`. */
  readonly clusterName?: string | undefined;
}

/** The sources of {@link TaskNames}: those that are given, and where the others come from. */
interface TaskNameSources {
  readonly taskId?: string | undefined;
  readonly clusterName?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostname: string;
  readonly random: RandomSource;
  readonly clock: Clock;
  /** Receives one line when the metadata endpoint cannot be used. */
  readonly warn?: (message: string) => void;
  readonly signal?: AbortSignal | undefined;
}

const METADATA_TIMEOUT_MS = 2_000;
const LONGEST = 128;
const TASK_ID = /^[\x21-\x7e]{1,128}$/;

/**
 * The names of this run. The default task id is on Amazon ECS the id of the task, elsewhere the host name and
 * a random part; the default of the cluster's name is the ECS service, if the endpoint has it. If the metadata
 * endpoint of ECS does not answer, it warns and uses the host name.
 *
 * Source: the task metadata endpoint version 4, `${ECS_CONTAINER_METADATA_URI_V4}/task`, fields `TaskARN`, and
 * `ServiceName`, which agents on EC2 and ECS Anywhere give from version 1.63.1 on.
 *
 * @throws `signal.reason` when `signal` aborts first
 */
export async function taskNames(sources: TaskNameSources): Promise<TaskNames> {
  const metadata = sources.env.ECS_CONTAINER_METADATA_URI_V4;
  let { taskId, clusterName } = sources;
  if (metadata && (taskId === undefined || clusterName === undefined)) {
    try {
      const task = await taskMetadata(`${metadata}/task`, sources);
      clusterName ??= textOf(task, 'ServiceName');
      taskId ??= taskIdOfArn(fieldOf(task, 'TaskARN'));
    } catch (error) {
      sources.signal?.throwIfAborted();
      if (taskId === undefined)
        sources.warn?.(
          `the ECS task metadata at ${metadata} cannot be used, the task id is made from the host name: ${explain(error)}`,
        );
    }
  }
  if (taskId !== undefined) return { taskId, clusterName };
  const suffix = `-${sources.random.hex(8)}`;
  const host = sources.hostname.replace(/[^\x21-\x7e]/g, '').slice(0, LONGEST - suffix.length);
  return { taskId: `${host || 'host'}${suffix}`, clusterName };
}

/** @throws {ConfigError} when a task id is not 1 to 128 printable ASCII characters without spaces */
export function checkTaskId(taskId: string): void {
  if (typeof taskId !== 'string' || !TASK_ID.test(taskId))
    throw new ConfigError('taskId', taskId, '1 to 128 printable ASCII characters without spaces');
}

/** The part after the last slash: `arn:aws:ecs:<region>:<account>:task/<cluster>/<id>`. */
function taskIdOfArn(arn: unknown): string {
  if (typeof arn !== 'string') throw new Error('the answer has no TaskARN');
  const id = arn.slice(arn.lastIndexOf('/') + 1);
  if (!TASK_ID.test(id)) throw new Error(`TaskARN ${JSON.stringify(arn)} names no task`);
  return id;
}

async function taskMetadata(url: string, { clock, signal }: TaskNameSources): Promise<unknown> {
  // Loaded only here: a start must be fast.
  const { httpCall } = await import('../http-call.js');
  const { status, body } = await callWithTimeout(
    { clock, timeoutMs: METADATA_TIMEOUT_MS, signal },
    (signal) => httpCall(new URL(url), { signal, userAgent: 'nodelease', maxBytes: 1_000_000 }),
  );
  if (status !== 200) throw new Error(`HTTP status ${status}`);
  return JSON.parse(body);
}
