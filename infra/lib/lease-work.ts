import type { Duration } from 'aws-cdk-lib';
import type { ContainerImage, HealthCheck, PortMapping } from 'aws-cdk-lib/aws-ecs';

/**
 * The work runs in the container of nodelease, as the command of `nodelease run`: it gets its node id in
 * `NODE_ID`, and is ended before another task can have that id. The stronger of the two.
 */
export interface RunWork {
  readonly kind: 'run';
  /** The command and its arguments, as the image knows them. */
  readonly command: readonly [file: string, ...args: string[]];
  /** The ports on which the work listens. @default none */
  readonly portMappings?: readonly PortMapping[];
  /** Nodelease itself writes no files. @default true */
  readonly readonlyRootFilesystem?: boolean;
}

/**
 * The work runs in a separate container, unchanged, and asks `nodelease serve` next to it for its node id:
 * GET `/lease` at `NODELEASE_URL`.
 *
 * What is NOT guaranteed: that the work ends before another task has its node id. When the lease is lost,
 * nodelease ends with 76, ECS stops the task, and the work's container may go on until its own stop time-out
 * is over. Work that must not overlap has to look at `validForMs` of `/lease` before it uses the id, or run
 * under {@link RunWork}.
 */
export interface SidecarWork {
  readonly kind: 'sidecar';
  readonly image: ContainerImage;
  /** @default the image's own */
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly portMappings?: readonly PortMapping[];
  readonly healthCheck?: HealthCheck;
  /** The user in its container, as `name`, `uid` or `uid:gid`; never root. @default 1000 */
  readonly user?: string;
  /** @default true */
  readonly readonlyRootFilesystem?: boolean;
  /**
   * From SIGTERM to SIGKILL. ECS stops this container first, and nodelease after it has ended.
   * @default the service's `stopTimeout`
   */
  readonly stopTimeout?: Duration;
}

/** What is done with the node id, and where. */
export type LeaseWork = RunWork | SidecarWork;
