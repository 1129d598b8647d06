import { Duration, Size } from 'aws-cdk-lib';
import {
  AwsLogDriverMode,
  Capability,
  type ContainerDefinition,
  ContainerDependencyCondition,
  type ContainerImage,
  type FargateTaskDefinition,
  type HealthCheck,
  LinuxParameters,
  LogDrivers,
} from 'aws-cdk-lib/aws-ecs';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { LeaseWork, SidecarWork } from './lease-work.js';
import { SettingError } from './setting-error.js';

/** What a container of nodelease is made from. */
interface ContainerProps {
  /** Has `nodelease` in its PATH. */
  readonly image: ContainerImage;
  /** The settings of nodelease, as environment variables. */
  readonly environment: Readonly<Record<string, string>>;
  readonly stopTimeout: Duration;
  readonly user: string;
  readonly logGroup: ILogGroup;
}

/** What the containers of a task are made from. */
export interface LeaseTaskProps extends ContainerProps {
  readonly work: LeaseWork;
  /** How long a task that has no node id yet is not counted as unhealthy. */
  readonly startPeriod: Duration;
}

/** What the container of a job is made from. */
export interface JobTaskProps extends ContainerProps {
  /** That of its ticks. */
  readonly name: string;
  /** The period in which the command runs at most once, such as `1d`. */
  readonly every: string;
  readonly command: readonly string[];
}

/**
 * Where nodelease listens: only for the other containers of its task, so that it needs no token.
 */
export const LISTEN_ADDRESS = '127.0.0.1:7070';

/** The name of the container that holds the lease. */
export const LEASE_CONTAINER = 'nodelease';

/**
 * Adds the containers: one with nodelease and the work under it, or two next to each other.
 *
 * The container of nodelease gets no init process (`initProcessEnabled`): the `nodelease` command is made to
 * be process 1. It hands signals on, collects orphans, and ends with the exit code of the work. In the
 * sidecar variant the work's container does get one, since few programs are.
 *
 * @throws {@link SettingError} when the work would run as root
 */
export function addLeaseContainers(task: FargateTaskDefinition, props: LeaseTaskProps): ContainerDefinition {
  const { work } = props;
  const lease = task.addContainer(LEASE_CONTAINER, {
    ...nodelease(task, props),
    command: work.kind === 'run' ? ['run', '--', ...work.command] : ['serve'],
    healthCheck: healthCheck(props.startPeriod),
    readonlyRootFilesystem: work.kind === 'sidecar' || (work.readonlyRootFilesystem ?? true),
    ...(work.kind === 'run' && work.portMappings && { portMappings: [...work.portMappings] }),
  });
  if (work.kind === 'sidecar') addWork(task, work, lease, props);
  return lease;
}

/** Adds a container that runs the command at most once a period, over all tasks. */
export function addJobContainer(
  task: FargateTaskDefinition,
  { name, every, command, ...props }: JobTaskProps,
): ContainerDefinition {
  return task.addContainer(LEASE_CONTAINER, {
    ...nodelease(task, props),
    command: ['once', name, '--every', every, '--', ...command],
    readonlyRootFilesystem: true,
  });
}

/** What every container of nodelease has. */
function nodelease(task: FargateTaskDefinition, props: ContainerProps) {
  const { image, environment, stopTimeout, user, logGroup } = props;
  return {
    image,
    entryPoint: ['nodelease'],
    environment: { ...environment },
    essential: true,
    stopTimeout,
    user: notRoot(user, 'user'),
    linuxParameters: lessPower(task, 'LeaseParameters', false),
    logging: logging(logGroup),
  };
}

function addWork(
  task: FargateTaskDefinition,
  work: SidecarWork,
  lease: ContainerDefinition,
  props: LeaseTaskProps,
): void {
  const container = task.addContainer('work', {
    image: work.image,
    ...(work.command && { command: [...work.command] }),
    environment: { ...work.environment, NODELEASE_URL: `http://${LISTEN_ADDRESS}` },
    essential: true,
    stopTimeout: work.stopTimeout ?? props.stopTimeout,
    ...(work.healthCheck && { healthCheck: work.healthCheck }),
    user: notRoot(work.user ?? '1000', 'work.user'),
    readonlyRootFilesystem: work.readonlyRootFilesystem ?? true,
    linuxParameters: lessPower(task, 'WorkParameters', true),
    logging: logging(props.logGroup),
    ...(work.portMappings && { portMappings: [...work.portMappings] }),
  });
  // Both ways: the work starts once there is a node id, and when the task ends ECS stops the work before it
  // stops nodelease.
  container.addContainerDependencies({ container: lease, condition: ContainerDependencyCondition.HEALTHY });
}

/**
 * `nodelease health` asks for readiness: a container without a valid lease is not healthy. Needs neither a
 * shell nor curl in the image.
 */
function healthCheck(startPeriod: Duration): HealthCheck {
  return {
    command: ['CMD', 'nodelease', 'health'],
    interval: Duration.seconds(10),
    timeout: Duration.seconds(5),
    retries: 3,
    startPeriod,
  };
}

function lessPower(task: FargateTaskDefinition, id: string, initProcessEnabled: boolean): LinuxParameters {
  const parameters = new LinuxParameters(task, id, { initProcessEnabled });
  parameters.dropCapabilities(Capability.ALL);
  return parameters;
}

/**
 * Non-blocking: with the default of older accounts a program that logs stands still while CloudWatch cannot
 * be reached. Lines that do not fit are dropped instead.
 */
function logging(logGroup: ILogGroup) {
  return LogDrivers.awsLogs({
    logGroup,
    streamPrefix: 'task',
    mode: AwsLogDriverMode.NON_BLOCKING,
    maxBufferSize: Size.mebibytes(4),
  });
}

function notRoot(user: string, setting: string): string {
  const [name = ''] = user.split(':');
  if (name === '' || name === 'root' || /^0+$/.test(name))
    throw new SettingError(setting, user, 'a user other than root');
  return user;
}
