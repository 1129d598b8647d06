import { Duration } from 'aws-cdk-lib';
import {
  Alarm,
  ComparisonOperator,
  type IAlarmAction,
  type IMetric,
  Metric,
  Stats,
  TreatMissingData,
} from 'aws-cdk-lib/aws-cloudwatch';
import { MetricFilter } from 'aws-cdk-lib/aws-logs';
import type { IBucket } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { REQUEST_METRICS } from './lease-bucket.js';
import { type LogEvent, logEvents } from './log-events.js';
import type { NodeLeaseService } from './node-lease-service.js';

/** Settings of {@link LeaseAlarms}. */
export interface LeaseAlarmsProps {
  readonly service: NodeLeaseService;
  /** The bucket of the leases, with request metrics as those of a {@link LeaseBucket}. */
  readonly bucket: IBucket;
  /** What is done when any of the alarms goes off or ends. @default nothing */
  readonly actions?: readonly IAlarmAction[];
}

/** What an alarm looks at, and when it goes off. */
interface AlarmSpec {
  readonly metric: IMetric;
  readonly threshold: number;
  /** How many periods of the metric in a row. */
  readonly periods: number;
  readonly below?: true;
  readonly missing?: TreatMissingData;
  readonly description: string;
}

const MINUTE = Duration.minutes(1);
const FIVE_MINUTES = Duration.minutes(5);

/**
 * The alarms of a service: four that count lines of nodelease's log, two of the bucket, one of ECS. Silence
 * is a good sign for all but the last.
 *
 * Lines are distinguished by their fields, never by their texts.
 */
export class LeaseAlarms extends Construct {
  /** By their ids. */
  readonly alarms: Readonly<Record<string, Alarm>>;
  readonly #props: LeaseAlarmsProps;

  constructor(scope: Construct, id: string, props: LeaseAlarmsProps) {
    super(scope, id);
    this.#props = props;
    const { service, bucket } = props;
    const s3 = (metricName: string, statistic: string) =>
      new Metric({
        namespace: 'AWS/S3',
        metricName,
        statistic,
        period: FIVE_MINUTES,
        dimensionsMap: { BucketName: bucket.bucketName, FilterId: REQUEST_METRICS },
      });
    this.alarms = {
      LeaseLost: this.#alarm('LeaseLost', {
        metric: this.#lines('LeaseLost', MINUTE, 'lost'),
        threshold: 1,
        periods: 1,
        description:
          'A task lost its node id against its will and was stopped: the store was out of reach, the task was paused, or its id was taken.',
      }),
      StoreFailures: this.#alarm('StoreFailures', {
        metric: this.#lines('StoreFailures', FIVE_MINUTES, 'renewal-failed', 'store-failed'),
        threshold: 3,
        periods: 1,
        description:
          'Requests to the store fail. Renewals are tried again until the lease runs out: look into it before ids are lost.',
      }),
      NoFreeNodeId: this.#alarm('NoFreeNodeId', {
        metric: this.#lines('NoFreeNodeId', FIVE_MINUTES, 'waiting'),
        threshold: 1,
        // A single wait belongs to deployments and to dead tasks' leases. Who goes on waiting says so every
        // few minutes.
        periods: 3,
        description:
          'Tasks have had to wait for a node id for a quarter of an hour: there are too few, or tasks that were replaced do not end.',
      }),
      LeaseDamaged: this.#alarm('LeaseDamaged', {
        metric: this.#lines('LeaseDamaged', FIVE_MINUTES, 'damaged'),
        threshold: 1,
        periods: 1,
        description:
          'A lease object is missing or cannot be read: its id is not given out until `nodelease init --repair` has restored it.',
      }),
      StoreServerErrors: this.#alarm('StoreServerErrors', {
        metric: s3('5xxErrors', Stats.SUM),
        threshold: 5,
        periods: 1,
        description: 'S3 answers with server errors.',
      }),
      StoreRefusals: this.#alarm('StoreRefusals', {
        // The mean is the share of all requests: a few 404 and 412 are a part of every start and every race,
        // a denial is all there is.
        metric: s3('4xxErrors', Stats.AVERAGE),
        threshold: 0.2,
        periods: 3,
        description:
          'S3 refuses more than a fifth of all requests: the permissions have changed, or tasks keep racing for too few ids.',
      }),
      TooFewTasks: this.#alarm('TooFewTasks', {
        metric: new Metric({
          namespace: 'ECS/ContainerInsights',
          metricName: 'RunningTaskCount',
          statistic: Stats.MINIMUM,
          period: MINUTE,
          dimensionsMap: {
            ClusterName: service.service.cluster.clusterName,
            ServiceName: service.service.serviceName,
          },
        }),
        // A deployment without spare ids runs with fewer for as long as it replaces tasks.
        threshold: Math.max(
          1,
          Math.ceil((service.desiredCount * service.deployment.minHealthyPercent) / 100),
        ),
        periods: 5,
        below: true,
        missing: TreatMissingData.BREACHING,
        description:
          'Fewer tasks run than even a deployment would leave. Needs Container Insights on the cluster.',
      }),
    };
  }

  #lines(name: string, period: Duration, ...events: readonly [LogEvent, ...LogEvent[]]): Metric {
    const { service } = this.#props;
    // A namespace for each service: the dimensions of such a metric could come from the lines alone.
    const metricNamespace = `nodelease/${service.node.path}`;
    new MetricFilter(this, `${name}Lines`, {
      logGroup: service.logGroup,
      filterPattern: logEvents(...events),
      metricNamespace,
      metricName: name,
      metricValue: '1',
    });
    return new Metric({ namespace: metricNamespace, metricName: name, statistic: Stats.SUM, period });
  }

  #alarm(id: string, { metric, threshold, periods, below, missing, description }: AlarmSpec): Alarm {
    const alarm = new Alarm(this, id, {
      metric,
      threshold,
      evaluationPeriods: periods,
      alarmDescription: description,
      comparisonOperator: below
        ? ComparisonOperator.LESS_THAN_THRESHOLD
        : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: missing ?? TreatMissingData.NOT_BREACHING,
    });
    for (const action of this.#props.actions ?? []) {
      alarm.addAlarmAction(action);
      alarm.addOkAction(action);
    }
    return alarm;
  }
}
