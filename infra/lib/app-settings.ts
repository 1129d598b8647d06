import { Duration } from 'aws-cdk-lib';
import type { Node } from 'constructs';
import { SettingError } from './setting-error.js';

/** The settings of the app, from the context of CDK: `-c nodes=4`, or the `context` of `cdk.json`. */
export interface AppSettings {
  readonly variant: 'run' | 'sidecar';
  readonly nodes: number;
  readonly desiredCount: number;
  readonly leaseDuration: Duration;
  readonly drainTimeout: Duration;
  readonly stopTimeout: Duration;
  readonly prefix: string;
  /** The name of an existing bucket; empty for a new one. */
  readonly bucket: string;
  /** The ARN of the key of KMS of the bucket; empty for the keys of S3. */
  readonly kmsKey: string;
  readonly leaseCluster: 'any' | 'existing';
  /** The name of the cluster of leases; empty for that of the service. */
  readonly leaseClusterName: string;
  /** In percent; 0 for none. */
  readonly autoscaleCpu: number;
  /** Empty for no job. */
  readonly jobCommand: readonly string[];
  readonly jobEvery: string;
  readonly jobSchedule: string;
  /** The id of an existing VPC, with the subnets of the tasks; empty for a new one. */
  readonly vpc: string;
  readonly subnets: readonly string[];
  /** The name of an existing ECS cluster; empty for a new one. */
  readonly cluster: string;
  /** The repository in ECR, and the tag, of the image with nodelease. */
  readonly repository: string;
  readonly tag: string;
  /** The work of the variant `run`. */
  readonly command: readonly [file: string, ...args: string[]];
  /** The repository and tag of the image with the work of the variant `sidecar`. */
  readonly workRepository: string;
  readonly workTag: string;
}

const DEFAULTS: Readonly<Record<keyof AppSettings, string>> = {
  variant: 'run',
  nodes: '4',
  desiredCount: '3',
  leaseDuration: '30s',
  drainTimeout: '20s',
  stopTimeout: '40s',
  prefix: 'leases',
  bucket: '',
  kmsKey: '',
  leaseCluster: 'any',
  leaseClusterName: '',
  autoscaleCpu: '0',
  jobCommand: '[]',
  jobEvery: '1d',
  jobSchedule: 'rate(1 hour)',
  vpc: '',
  subnets: '[]',
  cluster: '',
  repository: 'nodelease',
  tag: '0.1.0',
  command: '["node","service.js"]',
  workRepository: 'service',
  workTag: '0.1.0',
};

/** Whose context is not ours: that of CDK itself, its plug-ins and its command line. */
const FOREIGN = /^@|[:/]|^cli-/;

/**
 * Reads and checks the settings. How they relate to each other is for the constructs to check.
 *
 * @throws {@link SettingError} for a value that cannot be used, and for an unknown name
 */
export function readAppSettings(node: Node): AppSettings {
  const given: Readonly<Record<string, unknown>> = node.getAllContext();
  for (const name of Object.keys(given)) {
    if (FOREIGN.test(name) || Object.hasOwn(DEFAULTS, name)) continue;
    throw new SettingError(
      `context ${name}`,
      given[name],
      `one of the settings ${Object.keys(DEFAULTS).join(', ')}`,
    );
  }
  const text = (name: keyof AppSettings): string => {
    const value = given[name] ?? DEFAULTS[name];
    return typeof value === 'string' ? value : JSON.stringify(value);
  };
  const count = (name: keyof AppSettings): number => {
    if (!/^[1-9]\d{0,4}$/.test(text(name))) throw new SettingError(name, text(name), 'a whole number from 1');
    return Number(text(name));
  };
  const time = (name: keyof AppSettings): Duration => {
    const [, digits, unit] = /^(\d{1,6})(s|m)$/.exec(text(name)) ?? [];
    if (digits === undefined) throw new SettingError(name, text(name), 'a time such as 15s or 2m');
    return unit === 'm' ? Duration.minutes(Number(digits)) : Duration.seconds(Number(digits));
  };
  const named = (name: keyof AppSettings, form: RegExp, expected: string): string => {
    if (!form.test(text(name))) throw new SettingError(name, text(name), expected);
    return text(name);
  };
  const repository = (name: keyof AppSettings) =>
    named(name, /^[a-z0-9]+([._/-][a-z0-9]+)*$/, 'the name of a repository in ECR of this account');
  const tag = (name: keyof AppSettings) =>
    named(
      name,
      /^(?!latest$)[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/,
      'a tag other than latest (tasks that start later would run another image)',
    );
  const vpc = named('vpc', /^(vpc-[0-9a-f]{8,17})?$/, 'the id of a VPC, such as vpc-0a1b2c3d');
  const subnets = listOf('subnets', text('subnets'), '["subnet-0a1b2c3d"]');
  if ((vpc === '') !== (subnets.length === 0))
    throw new SettingError('subnets', text('subnets'), 'subnets of vpc, and none without it');
  return {
    variant: named('variant', /^(run|sidecar)$/, 'run or sidecar') as AppSettings['variant'],
    nodes: count('nodes'),
    desiredCount: count('desiredCount'),
    leaseDuration: time('leaseDuration'),
    drainTimeout: time('drainTimeout'),
    stopTimeout: time('stopTimeout'),
    prefix: text('prefix'),
    bucket: named('bucket', /^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$/, 'the name of a bucket'),
    kmsKey: named('kmsKey', /^(arn:.+:key\/.+)?$/, 'the ARN of a key of KMS'),
    leaseCluster: named('leaseCluster', /^(any|existing)$/, 'any or existing') as AppSettings['leaseCluster'],
    leaseClusterName: text('leaseClusterName'),
    autoscaleCpu: Number(named('autoscaleCpu', /^(100|\d{1,2})$/, 'a percentage, or 0 for a fixed count')),
    jobCommand: listOf('jobCommand', text('jobCommand'), '["node","report.js"]'),
    jobEvery: named('jobEvery', /^\d+[smhd]$/, 'a period such as 1d or 6h'),
    jobSchedule: named('jobSchedule', /^(rate|cron|at)\(.+\)$/, 'a schedule such as rate(1 hour)'),
    vpc,
    subnets,
    cluster: named('cluster', /^[A-Za-z0-9_-]{0,255}$/, 'the name of an ECS cluster of this account'),
    repository: repository('repository'),
    tag: tag('tag'),
    command: commandOf(text('command')),
    workRepository: repository('workRepository'),
    workTag: tag('workTag'),
  };
}

function commandOf(text: string): readonly [string, ...string[]] {
  const example = '["node","service.js"]';
  const [file, ...rest] = listOf('command', text, example);
  if (file === undefined || file === '') throw listError('command', text, example);
  return [file, ...rest];
}

function listOf(name: keyof AppSettings, text: string, example: string): readonly string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw listError(name, text, example);
  }
  if (!Array.isArray(value) || !value.every((part): part is string => typeof part === 'string'))
    throw listError(name, text, example);
  return value;
}

const listError = (name: keyof AppSettings, text: string, example: string) =>
  new SettingError(name, text, `a JSON array of texts, such as ${example}`);
