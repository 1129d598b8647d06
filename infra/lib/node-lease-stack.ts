import { CfnOutput, Stack, type StackProps } from 'aws-cdk-lib';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { GatewayVpcEndpointAwsService, type IVpc, Vpc } from 'aws-cdk-lib/aws-ec2';
import { Repository } from 'aws-cdk-lib/aws-ecr';
import { Cluster, ContainerImage, ContainerInsights } from 'aws-cdk-lib/aws-ecs';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Bucket, type IBucket } from 'aws-cdk-lib/aws-s3';
import { Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import type { AppSettings } from './app-settings.js';
import { LeaseAlarms } from './lease-alarms.js';
import { LeaseBucket } from './lease-bucket.js';
import { LeaseJob } from './lease-job.js';
import type { LeaseWork } from './lease-work.js';
import { NodeLeaseService } from './node-lease-service.js';

/** Settings of a {@link NodeLeaseStack}. */
export interface NodeLeaseStackProps extends StackProps {
  readonly settings: AppSettings;
}

/**
 * Everything for one service with node ids: network, cluster and bucket unless they exist, service, alarms.
 *
 * Made without asking AWS anything. The images have to be in ECR before it is deployed.
 */
export class NodeLeaseStack extends Stack {
  readonly leases: { readonly bucket: IBucket; readonly prefix: string };
  readonly service: NodeLeaseService;
  readonly alarms: LeaseAlarms;

  /** @throws {@link SettingError} when the settings cannot be used together */
  constructor(scope: Construct, id: string, { settings, ...props }: NodeLeaseStackProps) {
    super(scope, id, props);
    const vpc = this.#vpc(settings);
    const cluster =
      settings.cluster === ''
        ? new Cluster(this, 'Cluster', { vpc, containerInsightsV2: ContainerInsights.ENABLED })
        : Cluster.fromClusterAttributes(this, 'Cluster', { clusterName: settings.cluster, vpc });
    const key = settings.kmsKey !== '' && { encryptionKey: Key.fromKeyArn(this, 'Key', settings.kmsKey) };
    this.leases =
      settings.bucket === ''
        ? new LeaseBucket(this, 'Leases', { prefix: settings.prefix, ...key })
        : {
            bucket: Bucket.fromBucketAttributes(this, 'Leases', { bucketName: settings.bucket, ...key }),
            prefix: settings.prefix,
          };
    const image = this.#image('Image', settings.repository, settings.tag);
    this.service = new NodeLeaseService(this, 'Nodes', {
      cluster,
      store: this.leases,
      image,
      work: this.#work(settings),
      nodes: settings.nodes,
      desiredCount: settings.desiredCount,
      leaseCluster: settings.leaseCluster,
      ...(settings.leaseClusterName !== '' && {
        environment: { NODELEASE_CLUSTER_NAME: settings.leaseClusterName },
      }),
      autoscaleCpu: settings.autoscaleCpu,
      leaseDuration: settings.leaseDuration,
      drainTimeout: settings.drainTimeout,
      stopTimeout: settings.stopTimeout,
    });
    const { jobCommand, jobEvery: every, jobSchedule: schedule, stopTimeout } = settings;
    const [file, ...args] = jobCommand;
    if (file !== undefined)
      new LeaseJob(this, 'Job', {
        ...{ service: this.service, image, every, schedule, stopTimeout },
        ...{ name: 'job', command: [file, ...args] },
      });
    const topic = this.#alertTopic();
    this.alarms = new LeaseAlarms(this, 'Alarms', {
      service: this.service,
      bucket: this.leases.bucket,
      actions: [new SnsAction(topic)],
    });
    new CfnOutput(this, 'Store', {
      value: `s3://${this.leases.bucket.bucketName}/${this.leases.prefix}`,
      description: 'the value of --store',
    });
    new CfnOutput(this, 'AlertTopic', {
      value: topic.topicArn,
      description: 'subscribe here to hear of alarms',
    });
  }

  #vpc({ vpc, subnets }: AppSettings): IVpc {
    if (vpc !== '') {
      // CDK wants as many zones as subnets; no template names them.
      const availabilityZones = subnets.map(() => 'unknown');
      const privateSubnetIds = [...subnets];
      return Vpc.fromVpcAttributes(this, 'Vpc', { vpcId: vpc, availabilityZones, privateSubnetIds });
    }
    return new Vpc(this, 'Vpc', {
      maxAzs: 2,
      natGateways: 1,
      restrictDefaultSecurityGroup: false,
      // The leases' requests stay inside of AWS' network, and off the NAT gateway, which is paid for by the
      // byte and one more thing to fail.
      gatewayEndpoints: { S3: { service: GatewayVpcEndpointAwsService.S3 } },
    });
  }

  #alertTopic(): Topic {
    const topic = new Topic(this, 'Alerts', { enforceSSL: true });
    // A policy of one's own takes the place of the one that every topic has, which lets the account's alarms
    // in.
    topic.addToResourcePolicy(
      new PolicyStatement({
        sid: 'AlarmsOfThisAccount',
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': this.account } },
      }),
    );
    return topic;
  }

  #work({ variant, command, workRepository, workTag }: AppSettings): LeaseWork {
    return variant === 'run'
      ? { kind: 'run', command }
      : { kind: 'sidecar', image: this.#image('WorkImage', workRepository, workTag) };
  }

  #image(id: string, repository: string, tag: string): ContainerImage {
    return ContainerImage.fromEcrRepository(Repository.fromRepositoryName(this, id, repository), tag);
  }
}
