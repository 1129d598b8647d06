import { Duration } from 'aws-cdk-lib';
import { type ContainerImage, FargatePlatformVersion, FargateTaskDefinition } from 'aws-cdk-lib/aws-ecs';
import { Schedule, ScheduleExpression } from 'aws-cdk-lib/aws-scheduler';
import { EcsRunFargateTask } from 'aws-cdk-lib/aws-scheduler-targets';
import { Construct } from 'constructs';
import { addJobContainer } from './lease-task.js';
import type { NodeLeaseService } from './node-lease-service.js';

/** Settings of a {@link LeaseJob}. */
export interface LeaseJobProps {
  /** Whose store, rights, log, cluster and network the job has. */
  readonly service: NodeLeaseService;
  /** That of its ticks and their lock. Two jobs of one name in a store would run in place of each other. */
  readonly name: string;
  /** An image with `nodelease` in its PATH, and with the command. */
  readonly image: ContainerImage;
  readonly command: readonly [file: string, ...args: string[]];
  /** The period in which the job runs at most once, such as `1d`. */
  readonly every: string;
  /** When a task starts, to run the job if it is due, such as `rate(1 hour)`. */
  readonly schedule: string;
  /** @default 40 seconds */
  readonly stopTimeout?: Duration;
}

/** The variables of the service that the job has, too. */
const SHARED = ['NODELEASE_STORE', 'NODELEASE_DURATION', 'NODELEASE_LOG_FORMAT'];

/**
 * A job that runs at most once a period. EventBridge may start a task late, twice or not at all: `nodelease once`
 * runs the job if it is due, and no other task has.
 */
export class LeaseJob extends Construct {
  readonly taskDefinition: FargateTaskDefinition;

  constructor(scope: Construct, id: string, props: LeaseJobProps) {
    super(scope, id);
    const { service, name, image, command, every, schedule } = props;
    const { stopTimeout = Duration.seconds(40) } = props;
    const { taskRole } = service.taskDefinition;
    this.taskDefinition = new FargateTaskDefinition(this, 'Task', {
      ...service.taskSize,
      taskRole,
      executionRole: service.taskDefinition.obtainExecutionRole(),
    });
    addJobContainer(this.taskDefinition, {
      ...{ name, image, command, every, stopTimeout, user: '1000', logGroup: service.logGroup },
      environment: Object.fromEntries(
        Object.entries(service.environment).filter(([variable]) => SHARED.includes(variable)),
      ),
    });
    const { cluster, connections } = service.service;
    const { vpcSubnets } = service;
    new Schedule(this, 'Start', {
      schedule: ScheduleExpression.expression(schedule),
      target: new EcsRunFargateTask(cluster, {
        taskDefinition: this.taskDefinition,
        platformVersion: FargatePlatformVersion.VERSION1_4,
        assignPublicIp: false,
        ...(vpcSubnets && { vpcSubnets }),
        securityGroups: connections.securityGroups,
      }),
    });
  }
}
