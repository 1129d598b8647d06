import { App, Duration, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Vpc } from 'aws-cdk-lib/aws-ec2';
import { Cluster, ContainerImage } from 'aws-cdk-lib/aws-ecs';
import { Bucket } from 'aws-cdk-lib/aws-s3';
import { readAppSettings } from '../lib/app-settings.js';
import { NodeLeaseService, type NodeLeaseServiceProps } from '../lib/node-lease-service.js';
import { NodeLeaseStack } from '../lib/node-lease-stack.js';

/** A statement of a policy, as it stands in a template. */
export interface Statement {
  readonly Sid?: string;
  readonly Effect: 'Allow' | 'Deny';
  readonly Principal?: unknown;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: unknown;
}

/** A container, as it stands in a template. */
export interface Container {
  readonly Name: string;
  readonly EntryPoint?: readonly string[];
  readonly Command?: readonly string[];
  readonly Environment: readonly { readonly Name: string; readonly Value: unknown }[];
  readonly HealthCheck?: Readonly<Record<string, unknown>>;
  readonly DependsOn?: readonly unknown[];
  readonly StopTimeout?: number;
  readonly Essential: boolean;
  readonly User?: string;
  readonly ReadonlyRootFilesystem?: boolean;
  readonly Privileged?: boolean;
  readonly LinuxParameters?: { readonly Capabilities?: unknown; readonly InitProcessEnabled?: boolean };
  readonly LogConfiguration?: {
    readonly LogDriver: string;
    readonly Options: Readonly<Record<string, unknown>>;
  };
}

/** The stack of the app with this context, as CloudFormation gets it. */
export function appTemplate(context: Readonly<Record<string, unknown>> = {}): Template {
  const app = new App({ context });
  return Template.fromStack(new NodeLeaseStack(app, 'Test', { settings: readAppSettings(app.node) }));
}

/** A service in somebody else's stack, with what matters set and the rest by default. */
export function service(props: Partial<NodeLeaseServiceProps> = {}): {
  readonly service: NodeLeaseService;
  readonly template: () => Template;
} {
  const stack = new Stack(new App(), 'Theirs');
  const made = new NodeLeaseService(stack, 'Nodes', {
    cluster: new Cluster(stack, 'Cluster', {
      vpc: new Vpc(stack, 'Vpc', { restrictDefaultSecurityGroup: false }),
    }),
    store: { bucket: Bucket.fromBucketName(stack, 'Bucket', 'their-bucket') },
    image: ContainerImage.fromRegistry('registry.example/nodelease:1'),
    work: { kind: 'run', command: ['node', 'service.js'] },
    nodes: 4,
    desiredCount: 3,
    ...props,
  });
  return { service: made, template: () => Template.fromStack(stack) };
}

/** The containers of the only task definition. */
export function containersOf(template: Template): readonly Container[] {
  const [task] = Object.values(template.findResources('AWS::ECS::TaskDefinition'));
  return task?.Properties.ContainerDefinitions;
}

/** All statements of the policies of this type. */
export function statementsOf(
  template: Template,
  type: 'AWS::IAM::Policy' | 'AWS::S3::BucketPolicy',
): readonly Statement[] {
  return Object.values(template.findResources(type)).flatMap(
    (policy) => policy.Properties.PolicyDocument.Statement,
  );
}

/** The resources of a statement, as {@link plain} texts. */
export function resourcesOf(statement: Statement | undefined): readonly string[] {
  if (statement === undefined) throw new Error('there is no such statement');
  return [statement.Resource].flat().map(plain);
}

/** A value of a template as text, with the names of what it refers to in angle brackets. */
export function plain(value: unknown): string {
  if (typeof value === 'string') return value;
  const [[intrinsic, argument] = []] = Object.entries(value as Readonly<Record<string, unknown>>);
  if (intrinsic === 'Fn::Join')
    return (argument as [string, unknown[]])[1].map(plain).join((argument as [string])[0]);
  if (intrinsic === 'Fn::GetAtt') {
    // As a list, or as a text: Resource.Attribute.
    const [name = ''] = [argument as string | string[]].flat().join('.').split('.');
    return `<${name.replace(/[0-9A-F]{8}$/, '')}>`;
  }
  if (intrinsic === 'Fn::Sub') {
    // As a text, or as a list: the text, and values for some of its names.
    const [text, values = {}] = [argument].flat() as [string, Readonly<Record<string, unknown>>?];
    return text.replace(/\$\{(\w+)(\.Arn)?\}/g, (_all, name: string) => plain(values[name] ?? `<${name}>`));
  }
  if (intrinsic === 'Ref') return `<${String(argument).replace(/[0-9A-F]{8}$/, '')}>`;
  throw new Error(`no plain text for ${JSON.stringify(value)}`);
}

export const seconds = (count: number) => Duration.seconds(count);
