import { SubnetType } from 'aws-cdk-lib/aws-ec2';
import { ContainerImage } from 'aws-cdk-lib/aws-ecs';
import { describe, expect, it } from 'vitest';
import { environmentName, readSettings } from '../../src/app/settings/settings.js';
import { SETTINGS } from '../../src/app/settings/settings-table.js';
import { LeaseJob } from '../lib/lease-job.js';
import type { SidecarWork } from '../lib/lease-work.js';
import { type Container, containersOf, plain, seconds, service } from './stacks.js';

const sidecar: SidecarWork = {
  kind: 'sidecar',
  image: ContainerImage.fromRegistry('registry.example/app:7'),
};

const environmentOf = (container: Container | undefined) =>
  Object.fromEntries((container?.Environment ?? []).map(({ Name, Value }) => [Name, plain(Value)]));

describe('a task whose work runs under nodelease', () => {
  const [container, ...others] = containersOf(service().template());

  it('has one container, which starts the work through the nodelease command as process 1', () => {
    expect(others).toEqual([]);
    expect(container).toMatchObject({
      Name: 'nodelease',
      Essential: true,
      EntryPoint: ['nodelease'],
      Command: ['run', '--', 'node', 'service.js'],
    });
    expect(container?.LinuxParameters?.InitProcessEnabled).toBe(false);
  });

  it('is healthy while its lease is valid, asked without a shell, and given the time that an id may take to become free', () => {
    expect(container?.HealthCheck).toEqual({
      Command: ['CMD', 'nodelease', 'health'],
      Interval: 10,
      Timeout: 5,
      Retries: 3,
      StartPeriod: 180,
    });
    const [slow] = containersOf(
      service({ leaseDuration: seconds(110), grace: seconds(20), stopTimeout: seconds(120) }).template(),
    );
    expect(slow?.HealthCheck).toMatchObject({ StartPeriod: 190 });
  });

  it('is given its stop time-out', () => {
    expect(container?.StopTimeout).toBe(40);
  });

  it('runs neither as root nor with any power, on files that it cannot change', () => {
    expect(container).toMatchObject({
      User: '1000',
      ReadonlyRootFilesystem: true,
      LinuxParameters: { Capabilities: { Drop: ['ALL'] } },
    });
    expect(container?.Privileged).toBeUndefined();
  });

  it('may write files where the work has to', () => {
    const [writing] = containersOf(
      service({
        work: { kind: 'run', command: ['node', 'service.js'], readonlyRootFilesystem: false },
      }).template(),
    );
    expect(writing?.ReadonlyRootFilesystem).toBe(false);
  });

  it('never waits for CloudWatch when it logs', () => {
    expect(container?.LogConfiguration).toMatchObject({
      LogDriver: 'awslogs',
      Options: { mode: 'non-blocking' },
    });
  });

  it('has settings that nodelease knows and takes', () => {
    const env = environmentOf(container);
    expect(
      Object.keys(env).filter((name) => !SETTINGS.some((setting) => environmentName(setting.name) === name)),
    ).toEqual([]);
    expect(readSettings({ flags: {}, env, hostname: 'host' })).toMatchObject({
      store: 's3://their-bucket/leases',
      nodes: 4,
      durationMs: 30_000,
      graceMs: 1_000,
      http: { host: '127.0.0.1', port: 7070 },
      logFormat: 'json',
    });
  });

  it('keeps the surroundings of its work, but not against its own settings', () => {
    const [theirs] = containersOf(
      service({ environment: { MODE: 'live', NODELEASE_NODES: '99' } }).template(),
    );
    expect(environmentOf(theirs)).toMatchObject({ MODE: 'live', NODELEASE_NODES: '4' });
  });

  it('has a name, which another service in the same prefix has not, unless it is given one', () => {
    const nameOf = (environment?: Readonly<Record<string, string>>) => {
      const [lease] = containersOf(service({ environment }).template());
      const env = environmentOf(lease);
      return readSettings({ flags: {}, env, hostname: 'host' }).clusterName;
    };
    expect(nameOf()).toMatch(/^Theirs-Nodes-\w+$/);
    expect(nameOf({ NODELEASE_CLUSTER_NAME: 'orders' })).toBe('orders');
  });
});

describe('a task whose work runs next to nodelease', () => {
  const [lease, work] = containersOf(service({ work: sidecar }).template());

  it('ends as a whole when either of the two ends', () => {
    expect([lease, work].map((container) => container?.Essential)).toEqual([true, true]);
    expect(lease?.Command).toEqual(['serve']);
  });

  it('starts the work once there is a node id, and therefore stops it before nodelease', () => {
    expect(work?.DependsOn).toEqual([{ Condition: 'HEALTHY', ContainerName: 'nodelease' }]);
    expect(lease?.DependsOn).toBeUndefined();
  });

  it('passes to the work where to ask, on the loopback that both share', () => {
    expect(environmentOf(work)).toEqual({ NODELEASE_URL: 'http://127.0.0.1:7070' });
    expect(environmentOf(lease).NODELEASE_HTTP).toBe('127.0.0.1:7070');
  });

  it('gives the work a process 1 that collects orphans, and no more power than nodelease', () => {
    expect(work).toMatchObject({
      User: '1000',
      ReadonlyRootFilesystem: true,
      LinuxParameters: { InitProcessEnabled: true, Capabilities: { Drop: ['ALL'] } },
      LogConfiguration: { Options: { mode: 'non-blocking' } },
    });
  });

  it('has nodelease on files that it cannot change, whatever the work may do', () => {
    const [nodelease] = containersOf(
      service({ work: { ...sidecar, readonlyRootFilesystem: false } }).template(),
    );
    expect(nodelease?.ReadonlyRootFilesystem).toBe(true);
  });

  it('takes the work as it is: command, surroundings, stop time-out', () => {
    const [, own] = containersOf(
      service({
        work: {
          ...sidecar,
          command: ['./app'],
          environment: { MODE: 'live' },
          stopTimeout: seconds(9),
          readonlyRootFilesystem: false,
        },
      }).template(),
    );
    expect(own).toMatchObject({ Command: ['./app'], StopTimeout: 9, ReadonlyRootFilesystem: false });
    expect(environmentOf(own)).toMatchObject({ MODE: 'live' });
  });
});

describe('a job', () => {
  it('has its own name, or it would run in place of another one, and the network of its service', () => {
    const { service: own, template } = service({ vpcSubnets: { subnetType: SubnetType.PUBLIC } });
    const job = { service: own, image: sidecar.image, every: '1d', schedule: 'rate(1 hour)' };
    new LeaseJob(own, 'Report', { ...job, name: 'report', command: ['./report'] });
    new LeaseJob(own, 'Cleanup', { ...job, name: 'cleanup', command: ['./cleanup'] });
    const of = (type: string) =>
      Object.values(template().findResources(type)).map(({ Properties }) => Properties);
    const commands = of('AWS::ECS::TaskDefinition').map(
      ({ ContainerDefinitions: [container] }) => container.Command,
    );
    expect(commands).toContainEqual(['once', 'report', '--every', '1d', '--', './report']);
    expect(commands).toContainEqual(['once', 'cleanup', '--every', '1d', '--', './cleanup']);
    const [{ NetworkConfiguration }] = of('AWS::ECS::Service') as [Record<string, Record<string, object>>];
    for (const { Target } of of('AWS::Scheduler::Schedule'))
      expect(Target.EcsParameters.NetworkConfiguration.AwsvpcConfiguration).toEqual(
        NetworkConfiguration?.AwsvpcConfiguration,
      );
  });
});

describe('a service', () => {
  it('is rolled back when its tasks get no node id', () => {
    service()
      .template()
      .hasResourceProperties('AWS::ECS::Service', {
        DeploymentConfiguration: { DeploymentCircuitBreaker: { Enable: true, Rollback: true } },
      });
  });

  it('starts new tasks first, and rebalances, only with spare node ids', () => {
    const deployed = (nodes: number) =>
      Object.values(service({ nodes }).template().findResources('AWS::ECS::Service'))[0]?.Properties;
    expect(deployed(6)).toMatchObject({
      DesiredCount: 3,
      AvailabilityZoneRebalancing: 'ENABLED',
      DeploymentConfiguration: { MinimumHealthyPercent: 100, MaximumPercent: 200 },
    });
    expect(deployed(3)).toMatchObject({
      AvailabilityZoneRebalancing: 'DISABLED',
      DeploymentConfiguration: { MinimumHealthyPercent: 66, MaximumPercent: 100 },
    });
  });

  it('has no public address, no open port and no way in', () => {
    const template = service().template();
    template.hasResourceProperties('AWS::ECS::Service', {
      EnableExecuteCommand: false,
      NetworkConfiguration: { AwsvpcConfiguration: { AssignPublicIp: 'DISABLED' } },
    });
    for (const { Properties } of Object.values(template.findResources('AWS::EC2::SecurityGroup')))
      expect(Properties.SecurityGroupIngress).toBeUndefined();
  });

  it.each(['root', '0', '0:0', '', 'root:1000', '00'])('is refused the user "%s"', (user) => {
    expect(() => service({ user })).toThrow(/^user: expected a user other than root/);
    expect(() => service({ work: { ...sidecar, user } })).toThrow(
      /^work\.user: expected a user other than root/,
    );
  });

  it('is refused a grace for which ECS has no start period that is long enough, to the second', () => {
    expect(() => service({ grace: seconds(210) })).not.toThrow();
    expect(() => service({ grace: seconds(211) })).toThrow(
      /^grace: expected at most 3 minutes 30 seconds with a lease of 30 seconds: .*, got "3 minutes 31 seconds"$/,
    );
  });

  it('is refused a lease of less than a second, and more tasks than ids', () => {
    expect(() => service({ leaseDuration: seconds(0) })).toThrow(
      /^leaseDuration: expected at least 1 second/,
    );
    expect(() => service({ desiredCount: 5 })).toThrow(/^desiredCount: expected at most 4/);
  });
});
