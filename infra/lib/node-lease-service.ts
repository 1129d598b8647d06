import { Duration, Names } from 'aws-cdk-lib';
import type { ISecurityGroup, SubnetSelection } from 'aws-cdk-lib/aws-ec2';
import {
  AvailabilityZoneRebalancing,
  type ContainerDefinition,
  type ContainerImage,
  CpuArchitecture,
  FargatePlatformVersion,
  FargateService,
  FargateTaskDefinition,
  type FargateTaskDefinitionProps,
  type ICluster,
  OperatingSystemFamily,
} from 'aws-cdk-lib/aws-ecs';
import { type ILogGroup, LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { IBucket } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { type DeploymentWindow, deploymentWindow } from './deployment-window.js';
import { checkedPrefix, DEFAULT_PREFIX } from './key-prefix.js';
import { grantLeases, grantProtection } from './lease-policy.js';
import { addLeaseContainers, LISTEN_ADDRESS } from './lease-task.js';
import type { LeaseWork } from './lease-work.js';
import { SettingError } from './setting-error.js';
import { checkStopTiming } from './stop-timing.js';

/** Settings of a {@link NodeLeaseService}. */
export interface NodeLeaseServiceProps {
  readonly cluster: ICluster;
  /** Where the leases are kept, and below which prefix: a {@link LeaseBucket} has both. */
  readonly store: { readonly bucket: IBucket; readonly prefix?: string };
  /**
   * An image with `nodelease` in its PATH, and with the work's command where that runs under `nodelease run`.
   */
  readonly image: ContainerImage;
  readonly work: LeaseWork;
  /**
   * How many node ids there are. Once the cluster of leases exists, `nodelease scale` changes it and this has
   * to follow.
   */
  readonly nodes: number;
  /**
   * How many tasks run, at most `nodes`. Spare ids make deployments faster, and take the place of a dead
   * task's at once.
   */
  readonly desiredCount: number;
  /**
   * `existing` after the first deployment: a wrong bucket or prefix is an error then, and makes no second cluster.
   * @default 'any'
   */
  readonly leaseCluster?: 'any' | 'existing';
  /**
   * Scales the tasks from `desiredCount` to `nodes`, for this use of the CPU in percent. Deployments stop old tasks
   * first, then. @default the count is fixed
   */
  readonly autoscaleCpu?: number;
  /**
   * How long a lease lasts without renewal, 1 second or more. On a throttled CPU, a task may stand still for
   * seconds. @default 30 seconds
   */
  readonly leaseDuration?: Duration;
  /** How much longer others wait before they take an expired lease. @default 1 second */
  readonly grace?: Duration;
  /** How long the work takes to end after SIGTERM, at the most. @default 20 seconds */
  readonly drainTimeout?: Duration;
  /** From SIGTERM to SIGKILL; see {@link checkStopTiming}. @default 40 seconds */
  readonly stopTimeout?: Duration;
  /** Further environment variables of nodelease and of what it runs. @default none */
  readonly environment?: Readonly<Record<string, string>>;
  /** The user in the container of nodelease, as `name`, `uid` or `uid:gid`; never root. @default 1000 */
  readonly user?: string;
  /** In units of 1/1024 of a CPU. @default 256 */
  readonly cpu?: number;
  /** @default 512 */
  readonly memoryLimitMiB?: number;
  /** @default CpuArchitecture.X86_64 */
  readonly cpuArchitecture?: CpuArchitecture;
  /** @default one of its own, kept for a month and when the stack goes */
  readonly logGroup?: ILogGroup;
  /** @default the private subnets with a way out */
  readonly vpcSubnets?: SubnetSelection;
  /** @default one of its own that lets nothing in */
  readonly securityGroups?: readonly ISecurityGroup[];
}

const SECOND_MS = 1_000;
/**
 * How long the other nodes may take to know of a take-over, and nodelease and the image to start, in
 * milliseconds.
 */
const SETTLING_MS = 60_000;
/** The longest start period that ECS knows, in milliseconds. */
const LONGEST_START_PERIOD_MS = 300_000;
/** Long enough for the durations that suit most services. */
const LEAST_START_PERIOD_MS = 180_000;

/**
 * A service of ECS on Fargate, each of whose tasks holds a node id.
 *
 * A task that loses its lease ends with 76 and is replaced; one whose health check fails for half a minute is
 * replaced as well; a deployment whose tasks get no node id is rolled back. The task's role can do what
 * {@link grantLeases} says and nothing else.
 */
export class NodeLeaseService extends Construct {
  readonly service: FargateService;
  readonly taskDefinition: FargateTaskDefinition;
  readonly taskSize: Pick<FargateTaskDefinitionProps, 'cpu' | 'memoryLimitMiB' | 'runtimePlatform'>;
  /** The variables of nodelease. */
  readonly environment: Readonly<Record<string, string>>;
  /** The container that holds the lease. */
  readonly leaseContainer: ContainerDefinition;
  readonly logGroup: ILogGroup;
  readonly deployment: DeploymentWindow;
  readonly desiredCount: number;
  readonly vpcSubnets: SubnetSelection | undefined;

  /** @throws {@link SettingError} when settings cannot be used, or not together */
  constructor(scope: Construct, id: string, props: NodeLeaseServiceProps) {
    super(scope, id);
    const { cluster, store, nodes, desiredCount, stopTimeout = Duration.seconds(40), autoscaleCpu } = props;
    const {
      leaseDuration = Duration.seconds(30),
      grace = Duration.seconds(1),
      drainTimeout = Duration.seconds(20),
    } = props;
    const prefix = checkedPrefix(store.prefix ?? DEFAULT_PREFIX);
    if (leaseDuration.toMilliseconds() < SECOND_MS) {
      throw new SettingError(
        'leaseDuration',
        leaseDuration.toHumanString(),
        'at least 1 second (a shorter lease leaves no time to renew it)',
      );
    }
    checkStopTiming({ stopTimeout, leaseDuration, drainTimeout });
    const withoutAutoscaling = deploymentWindow(desiredCount, nodes);
    if (autoscaleCpu && desiredCount < 2) {
      throw new SettingError(
        'desiredCount',
        desiredCount,
        'at least 2 with autoscaling (a deployment of one task has to stop all tasks, however many there are)',
      );
    }
    // No number of tasks leaves a spare node id, then.
    this.deployment = autoscaleCpu ? deploymentWindow(desiredCount, desiredCount) : withoutAutoscaling;
    this.desiredCount = desiredCount;
    this.vpcSubnets = props.vpcSubnets;
    this.logGroup = props.logGroup ?? new LogGroup(this, 'Log', { retention: RetentionDays.ONE_MONTH });
    this.taskSize = {
      cpu: props.cpu ?? 256,
      memoryLimitMiB: props.memoryLimitMiB ?? 512,
      runtimePlatform: {
        cpuArchitecture: props.cpuArchitecture ?? CpuArchitecture.X86_64,
        operatingSystemFamily: OperatingSystemFamily.LINUX,
      },
    };
    this.environment = {
      // Another service in the same prefix is refused.
      NODELEASE_CLUSTER_NAME: Names.uniqueResourceName(this, { maxLength: 255, separator: '-' }),
      ...props.environment,
      NODELEASE_STORE: `s3://${store.bucket.bucketName}/${prefix}`,
      NODELEASE_CLUSTER: props.leaseCluster ?? 'any',
      NODELEASE_NODES: String(nodes),
      NODELEASE_DURATION: `${leaseDuration.toMilliseconds()}ms`,
      NODELEASE_GRACE: `${grace.toMilliseconds()}ms`,
      NODELEASE_HTTP: LISTEN_ADDRESS,
      NODELEASE_LOG_FORMAT: 'json',
    };
    this.taskDefinition = new FargateTaskDefinition(this, 'Task', this.taskSize);
    this.leaseContainer = addLeaseContainers(this.taskDefinition, {
      image: props.image,
      work: props.work,
      user: props.user ?? '1000',
      stopTimeout,
      logGroup: this.logGroup,
      startPeriod: startPeriodOf(stopTimeout, leaseDuration, grace),
      environment: this.environment,
    });
    grantLeases(this.taskDefinition.taskRole, { bucket: store.bucket, prefix, rights: 'hold' });
    grantProtection(this.taskDefinition.taskRole, cluster);
    this.service = new FargateService(this, 'Service', {
      cluster,
      taskDefinition: this.taskDefinition,
      // An update leaves the count of autoscaling as it is.
      ...(!autoscaleCpu && { desiredCount }),
      minHealthyPercent: this.deployment.minHealthyPercent,
      maxHealthyPercent: this.deployment.maxHealthyPercent,
      circuitBreaker: { enable: true, rollback: true },
      // Rebalancing starts a task before it stops another one, for which there has to be an id.
      availabilityZoneRebalancing:
        this.deployment.surge > 0
          ? AvailabilityZoneRebalancing.ENABLED
          : AvailabilityZoneRebalancing.DISABLED,
      platformVersion: FargatePlatformVersion.VERSION1_4,
      assignPublicIp: false,
      enableExecuteCommand: false,
      ...(props.vpcSubnets && { vpcSubnets: props.vpcSubnets }),
      ...(props.securityGroups && { securityGroups: [...props.securityGroups] }),
    });
    if (autoscaleCpu)
      this.service
        .autoScaleTaskCount({ minCapacity: desiredCount, maxCapacity: nodes })
        .scaleOnCpuUtilization('Cpu', { targetUtilizationPercent: autoscaleCpu });
  }
}

/**
 * A task of the former deployment may keep its id until it is killed, and a dead one until its lease has run
 * out.
 */
function startPeriodOf(stopTimeout: Duration, leaseDuration: Duration, grace: Duration): Duration {
  const leaseMs = leaseDuration.toMilliseconds();
  const periodMs = Math.max(stopTimeout.toMilliseconds(), leaseMs + grace.toMilliseconds()) + SETTLING_MS;
  if (periodMs > LONGEST_START_PERIOD_MS) {
    throw new SettingError(
      'grace',
      grace.toHumanString(),
      `at most ${Duration.millis(LONGEST_START_PERIOD_MS - SETTLING_MS - leaseMs).toHumanString()} with a lease of ${leaseDuration.toHumanString()}: ` +
        "a task may have to wait for a dead one's id for both of them and a minute, and ECS grants 5 minutes before health checks count",
    );
  }
  return Duration.millis(Math.max(LEAST_START_PERIOD_MS, periodMs));
}
