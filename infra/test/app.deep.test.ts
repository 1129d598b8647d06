import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appTemplate, containersOf, plain } from './stacks.js';

const folder = fileURLToPath(new URL('..', import.meta.url));
let output: string;

beforeAll(async () => {
  output = await mkdtemp(join(tmpdir(), 'nodelease-synth-'));
});

afterAll(() => rm(output, { recursive: true, force: true }));

/**
 * Runs `npm run synth`, as somebody without an account would: nothing in the environment, and no home with
 * credentials in it.
 */
async function synth(...args: string[]): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const env = { PATH: process.env.PATH, HOME: output, AWS_EC2_METADATA_DISABLED: 'true' };
  const child = spawn('npm', ['run', '--silent', 'synth', '--', '--output', join(output, 'out'), ...args], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const chunks: Buffer[] = [];
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr: Buffer.concat(chunks).toString() };
}

describe('npm run synth', () => {
  it('makes a template without an account, credentials or a region', async () => {
    const { code, stderr } = await synth();
    expect(stderr).not.toContain('nodelease-infra');
    expect(code).toBe(0);
    const template = JSON.parse(await readFile(join(output, 'out', 'Nodelease.template.json'), 'utf8'));
    expect(
      Object.values(template.Resources as Record<string, { Type: string }>).map(({ Type }) => Type),
    ).toContain('AWS::ECS::Service');
  });

  it('says in one line what is wrong with a setting', async () => {
    const { code, stderr } = await synth('-c', 'desiredCount=9');
    expect(code).not.toBe(0);
    expect(stderr).toContain('nodelease-infra: desiredCount: expected at most 4, the number of node ids');
    expect(stderr).not.toContain('    at ');
  });
});

describe('the settings of the app', () => {
  it.each([
    ['node', '4', /^context node: expected one of the settings variant, nodes, /],
    ['nodes', 'many', /^nodes: expected a whole number from 1, got "many"/],
    ['nodes', '70000', /^nodes: expected a whole number from 1 to 65528/],
    ['variant', 'both', /^variant: expected run or sidecar/],
    ['leaseDuration', '15', /^leaseDuration: expected a time such as 15s or 2m, got "15"/],
    ['leaseDuration', '2m', /^stopTimeout: expected at least 2 minutes 10 seconds/],
    ['stopTimeout', '10s', /^stopTimeout: expected at least 30 seconds/],
    ['kmsKey', 'alias/leases', /^kmsKey: expected the ARN of a key of KMS/],
    ['leaseCluster', 'new', /^leaseCluster: expected any or existing/],
    ['autoscaleCpu', '101', /^autoscaleCpu: expected a percentage/],
    ['jobEvery', 'daily', /^jobEvery: expected a period/],
    ['jobSchedule', 'daily', /^jobSchedule: expected a schedule/],
    ['prefix', '/leases', /^prefix: expected letters/],
    ['bucket', 'My_Bucket', /^bucket: expected the name of a bucket, got "My_Bucket"/],
    ['tag', 'latest', /^tag: expected a tag other than latest/],
    ['repository', 'No Such', /^repository: expected the name of a repository/],
    ['command', 'node service.js', /^command: expected a JSON array of texts/],
    ['command', '[]', /^command: expected a JSON array of texts/],
    ['command', '["node",1]', /^command: expected a JSON array of texts/],
    ['vpc', 'my-vpc', /^vpc: expected the id of a VPC/],
    ['vpc', 'vpc-0a1b2c3d', /^subnets: expected subnets of vpc, and none without it, got "\[\]"/],
    ['subnets', '["subnet-0a1b2c3d"]', /^subnets: expected subnets of vpc/],
    ['subnets', 'subnet-0a1b2c3d', /^subnets: expected a JSON array of texts, such as \["subnet-/],
    ['cluster', 'my cluster', /^cluster: expected the name of an ECS cluster/],
  ])('%s=%s are refused with the reason', (name, value, message) => {
    expect(() => appTemplate({ [name]: value })).toThrow(message);
  });

  it('leave what belongs to CDK alone', () => {
    expect(() =>
      appTemplate({
        '@aws-cdk/core:newStyleStackSynthesis': true,
        'aws:cdk:bundling-stacks': ['**'],
        'cli-telemetry': false,
      }),
    ).not.toThrow();
  });

  it('take texts of the command line and values of cdk.json alike', () => {
    const template = appTemplate({
      nodes: 6,
      desiredCount: '2',
      command: ['java', '-jar', 'app.jar'],
      leaseDuration: '20s',
    });
    template.hasResourceProperties('AWS::ECS::Service', { DesiredCount: 2 });
    expect(containersOf(template)[0]?.Command).toEqual(['run', '--', 'java', '-jar', 'app.jar']);
  });

  it('keep the requests of the leases off the NAT gateway: S3 is reached by an endpoint of the network itself, from every private subnet', () => {
    const template = appTemplate();
    const [endpoint, ...others] = Object.values(template.findResources('AWS::EC2::VPCEndpoint'));
    expect(others).toEqual([]);
    expect(endpoint?.Properties.VpcEndpointType ?? 'Gateway').toBe('Gateway');
    expect(plain(endpoint?.Properties.ServiceName)).toBe('com.amazonaws.<AWS::Region>.s3');
    const tables = Object.keys(template.findResources('AWS::EC2::RouteTable')).filter((name) =>
      name.includes('Private'),
    );
    expect(tables).toHaveLength(2);
    expect(endpoint?.Properties.RouteTableIds).toEqual(
      expect.arrayContaining(tables.map((Ref) => ({ Ref }))),
    );
  });

  it('take an existing VPC and cluster, and then no network is made', () => {
    const template = appTemplate({
      vpc: 'vpc-0a1b2c3d',
      subnets: '["subnet-0a1b2c3d","subnet-4e5f6a7b"]',
      cluster: 'shared',
    });
    template.hasResourceProperties('AWS::ECS::Service', {
      Cluster: 'shared',
      NetworkConfiguration: { AwsvpcConfiguration: { Subnets: ['subnet-0a1b2c3d', 'subnet-4e5f6a7b'] } },
    });
    template.hasResourceProperties('AWS::EC2::SecurityGroup', { VpcId: 'vpc-0a1b2c3d' });
    for (const type of ['EC2::VPC', 'EC2::Subnet', 'EC2::NatGateway', 'EC2::VPCEndpoint', 'ECS::Cluster'])
      template.resourceCountIs(`AWS::${type}`, 0);
    template.hasResourceProperties('AWS::CloudWatch::Alarm', {
      MetricName: 'RunningTaskCount',
      Dimensions: [{ Name: 'ClusterName', Value: 'shared' }, { Name: 'ServiceName' }],
    });
  });

  it('choose the sidecar', () => {
    expect(containersOf(appTemplate({ variant: 'sidecar' })).map(({ Name }) => Name)).toEqual([
      'nodelease',
      'work',
    ]);
  });
});
