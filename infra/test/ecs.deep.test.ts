import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse as parseTerraform } from '@cdktf/hcl2json';
import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { CfnInclude } from 'aws-cdk-lib/cloudformation-include';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { environmentName, readSettings } from '../../src/app/settings/settings.js';
import { SETTINGS } from '../../src/app/settings/settings-table.js';
import { CLUSTER_DEFAULTS } from '../../src/core/lease/model/cluster-config.js';
import { installed } from '../../test/support/installed.js';
import { startS3Server } from '../../test/support/servers/s3-servers.js';
import { WIND_UP_MS } from '../lib/stop-timing.js';
import { appTemplate, containersOf, plain } from './stacks.js';

// Four ways to the same service: files for the AWS CLI, a template of CloudFormation, Terraform, the CDK app.

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const TEMPLATE = join(root, 'infra/ecs/service.yaml');
const TERRAFORM = join(root, 'infra/terraform/main.tf');
const textOf = (path: string) => readFileSync(join(root, path), 'utf8');

/** A part of a document. What it contains, the tests say. */
type Document = ReturnType<Template['toJSON']>[string];
type Texts = Readonly<Record<string, string>>;

const VPC = 'vpc-0a1b2c3d';
const SUBNETS = ['subnet-0a1b2c3d', 'subnet-4e5f6a7b'];
const GIVEN = { Cluster: 'shared', Vpc: VPC, Subnets: SUBNETS, Image: 'image:1', Prefix: 'orders' };

/** A text of any of the four, with a new bucket and the prefix called the same. */
const canonical = (value: unknown): string =>
  plain(typeof value === 'number' ? String(value) : value)
    .replace(/arn:.*:s3:::/, '')
    .replace(/arn:.*:ecs:.*:task\/.*\/\*$/, 'tasks of the cluster')
    .replace(/<Leases(Bucket)?>|my-bucket|one\(aws_s3_bucket\.leases\[\*\]\.id\)/, 'bucket')
    .replace(`\${var.prefix}`, 'orders');

const canonicalList = (value: unknown) => [value].flat().map(canonical).sort();

/** A statement without its name: every value is a list, and the bucket has one name. */
const statement = ({ Effect, Principal, Action, Resource, conditions }: Document) => ({
  Effect,
  Principal,
  Action: canonicalList(Action),
  Resource: canonicalList(Resource),
  conditions: (conditions as Document[])
    .map(([test, key, values]) => `${test} ${key} ${canonicalList(values)}`)
    .sort(),
});

const statements = (all: readonly Document[]) =>
  all.map(({ Condition = {}, ...rest }) => {
    const tests = Object.entries<Document>(Condition);
    const conditions = tests.flatMap(([test, keys]) =>
      Object.entries(keys).map(([key, values]) => [test, key, values]),
    );
    return statement({ ...rest, conditions });
  });

const sids = (all: readonly Document[]) => all.map(({ Sid }) => Sid);

/** A container without what each account has differently: the image, the log's group and region, the cluster's name. */
function container({ image, entryPoint, command, environment, logConfiguration, ...rest }: Document) {
  const { 'awslogs-group': _group, 'awslogs-region': _region, ...options } = logConfiguration.options;
  return {
    ...rest,
    command: [...entryPoint, ...command],
    environment: Object.fromEntries(
      environment.map(({ name, value }: Document) => [
        name,
        name === 'NODELEASE_CLUSTER_NAME' ? 'its-service' : canonical(value),
      ]),
    ) as Texts,
    logConfiguration: {
      ...logConfiguration,
      // CDK writes it in bytes.
      options: { ...options, 'max-buffer-size': options['max-buffer-size'].replace('4194304b', '4m') },
    },
  };
}

const taskOf = ({ cpu, memory, networkMode, requiresCompatibilities, runtimePlatform }: Document) => ({
  cpu,
  memory,
  networkMode,
  requiresCompatibilities,
  runtimePlatform,
});

/** CloudFormation writes the fields of ECS with capitals. */
function decapitalized(value: Document): Document {
  if (Array.isArray(value)) return value.map(decapitalized);
  if (typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) =>
      /^(Ref|Fn::)/.test(key)
        ? [key, field]
        : [key.charAt(0).toLowerCase() + key.slice(1), decapitalized(field)],
    ),
  );
}

/** A template's resources, with its conditions decided. */
function decided({ Conditions = {}, Resources }: Document): Document[] {
  const textOfJoin = (value: Document) =>
    typeof value === 'object' ? value['Fn::Join'][1].join(value['Fn::Join'][0]) : value;
  const holds = (condition: Document): boolean => {
    const { 'Fn::Not': not, 'Fn::Or': or, 'Fn::And': and, 'Fn::Equals': equals, Condition: name } = condition;
    if (name !== undefined) return holds(Conditions[name]);
    if (not) return !holds(not[0]);
    if (or) return or.some(holds);
    return and ? and.every(holds) : new Set(equals.map(textOfJoin)).size === 1;
  };
  const isThere = (value: Document) => value?.Ref !== 'AWS::NoValue';
  const decide = (value: Document): Document => {
    if (Array.isArray(value)) return value.map(decide).filter(isThere);
    if (typeof value !== 'object') return value;
    const [name, yes, no] = value['Fn::If'] ?? [];
    if (name !== undefined) return decide(holds(Conditions[name]) ? yes : no);
    const fields = Object.entries(value).map(([key, field]) => [key, decide(field)] as const);
    return Object.fromEntries(fields.filter(([, field]) => isThere(field)));
  };
  return Object.values<Document>(Resources)
    .filter(({ Condition }) => Condition === undefined || holds(Conditions[Condition]))
    .map(decide);
}

/** What a template of CloudFormation says of the task, the service and the rights. */
function fromTemplate(template: Document) {
  const resources = decided(template);
  const of = (type: string): Document[] =>
    resources.filter(({ Type }) => Type === type).map(({ Properties }) => Properties);
  const s3 = resources.filter(({ Type }) => Type.startsWith('AWS::S3::'));
  const [task, service] = ['TaskDefinition', 'Service'].map((name) => of(`AWS::ECS::${name}`)[0]);
  const policies = [
    ...of('AWS::IAM::Policy'),
    ...of('AWS::IAM::Role').flatMap(({ Policies = [] }) => Policies),
  ];
  const { MaximumPercent, MinimumHealthyPercent, DeploymentCircuitBreaker } = service.DeploymentConfiguration;
  const role = policies
    .flatMap(({ PolicyDocument }) => PolicyDocument.Statement)
    .filter(({ Action }) =>
      [Action].flat().every((action) => /^(s3:|kms:|ecs:.*TaskProtection)/.test(action)),
    );
  return {
    sids: sids(role),
    role: statements(role),
    bucket: statements(of('AWS::S3::BucketPolicy').flatMap(({ PolicyDocument }) => PolicyDocument.Statement)),
    s3: s3.length,
    scratch: of('AWS::S3::Bucket').flatMap(({ LifecycleConfiguration: { Rules } }) =>
      (Rules as Document[]).flatMap(({ Prefix, ExpirationInDays }) =>
        Prefix === undefined ? [] : [`${canonical(Prefix)} ${ExpirationInDays}`],
      ),
    ),
    // What stays when the stack is deleted.
    kept: s3
      .filter((all) => all.DeletionPolicy === 'Retain' && all.UpdateReplacePolicy === 'Retain')
      .map(({ Type }) => Type.replace('AWS::S3::', '').toLowerCase()),
    task: taskOf(decapitalized(task)),
    container: container(decapitalized(task.ContainerDefinitions[0])),
    service: {
      counts: [service.DesiredCount, MaximumPercent, MinimumHealthyPercent],
      circuitBreaker: [DeploymentCircuitBreaker.Enable, DeploymentCircuitBreaker.Rollback],
      rebalancing: service.AvailabilityZoneRebalancing,
      launch: [service.LaunchType, service.PlatformVersion],
      publicIp: service.NetworkConfiguration.AwsvpcConfiguration.AssignPublicIp,
    },
  };
}

function included(parameters: Document): Document {
  const stack = new Stack(new App(), 'Included');
  new CfnInclude(stack, 'Template', { templateFile: TEMPLATE, parameters });
  return Template.fromStack(stack).toJSON();
}

// CDK adds another parameter.
const { BootstrapVersion: _, ...declared } = included({}).Parameters as Readonly<Record<string, Document>>;
const defaults = Object.fromEntries(
  Object.entries(declared).flatMap(([name, { Default, Type }]) =>
    Default === undefined ? [] : [[name, Type === 'CommaDelimitedList' ? Default.split(',') : Default]],
  ),
);

const terraformStatement = ({ effect = 'Allow', principals, condition = [], ...rest }: Document) =>
  statement({
    Effect: effect,
    Principal: principals && { [principals[0].type]: principals[0].identifiers.join() },
    Action: rest.actions,
    Resource: rest.resources,
    conditions: condition.map(({ test, variable, values }: Document) => [test, variable, values]),
  });

/** Terraform's module: the same, with variables at their defaults, in a new bucket or in the one given. */
async function fromTerraform(bucket = '') {
  const parsed = await parseTerraform(TERRAFORM, readFileSync(TERRAFORM, 'utf8'));
  const locals = Object.assign({}, ...parsed.locals);
  const decide = (text: string) =>
    /^\$\{var\.bucket == "" \? (.+) : (.+)\}$/.exec(text)?.[bucket === '' ? 1 : 2];
  const {
    variable,
    resource,
    data,
    container: lease,
  } = JSON.parse(
    JSON.stringify({ ...parsed, container: locals.container })
      .replaceAll(`\${local.bucket_arn}`, locals.bucket_arn)
      .replaceAll(`\${local.bucket}`, decide(locals.bucket)?.replace('var.bucket', bucket) ?? ''),
  );
  const s3 = Object.entries<Document>(resource).filter(
    ([type, { leases }]) => type.startsWith('aws_s3_') && decide(leases[0].count) === '1',
  );
  const value = (given: Document): Document => {
    if (Array.isArray(given)) return given.map(value);
    if (typeof given === 'object')
      return Object.fromEntries(Object.entries(given).map(([key, field]) => [key, value(field)]));
    if (typeof given !== 'string') return given;
    const [, local] = /^\$\{local\.(\w+_percent)\}$/.exec(given) ?? [];
    if (local !== undefined) {
      const [, autoscaled, fixed] = /\? (\d+) : var\.(\w+)\}$/.exec(locals[local]) ?? [];
      return variable.autoscale_cpu[0].default > 0 ? Number(autoscaled) : variable[fixed ?? ''][0].default;
    }
    const [, name] = /^\$\{(?:tostring\()?var\.(\w+)\)?\}$/.exec(given) ?? [];
    if (name !== undefined) return variable[name][0].default;
    return given.replace(/\$\{var\.duration\}/, variable.duration[0].default);
  };
  const policy = (name: string): Document[] => data.aws_iam_policy_document[name][0].statement;
  const [task] = resource.aws_ecs_task_definition.this;
  const service = value(resource.aws_ecs_service.this[0]);
  const [{ enable, rollback }] = service.deployment_circuit_breaker;
  return {
    scratch: s3
      .filter(([type]) => type === 'aws_s3_bucket_lifecycle_configuration')
      .flatMap(([, { leases }]) =>
        leases[0].rule.map(
          ({ filter, expiration }: Document) => `${canonical(filter[0].prefix)} ${expiration[0].days}`,
        ),
      ),
    sids: policy('task').map(({ sid }) => sid),
    role: policy('task').map(terraformStatement),
    bucket: s3.some(([type]) => type === 'aws_s3_bucket_policy')
      ? policy('bucket').map(terraformStatement)
      : [],
    s3: s3.length,
    kept: s3
      .filter(([, { leases }]) => leases[0].lifecycle?.[0].prevent_destroy)
      .map(([type]) => type.replace('aws_s3_', '').replace('_', '')),
    task: {
      cpu: task.cpu,
      memory: task.memory,
      networkMode: task.network_mode,
      requiresCompatibilities: task.requires_compatibilities,
      runtimePlatform: {
        cpuArchitecture: task.runtime_platform[0].cpu_architecture,
        operatingSystemFamily: task.runtime_platform[0].operating_system_family,
      },
    },
    container: container(value(lease)),
    service: {
      counts: [
        service.desired_count,
        service.deployment_maximum_percent,
        service.deployment_minimum_healthy_percent,
      ],
      circuitBreaker: [enable, rollback],
      rebalancing: /\? "(\w+)"/.exec(service.availability_zone_rebalancing)?.[1],
      launch: [service.launch_type, service.platform_version],
      publicIp: service.network_configuration[0].assign_public_ip ? 'ENABLED' : 'DISABLED',
    },
    scaling: [
      resource.aws_appautoscaling_target.this[0].min_capacity,
      resource.aws_appautoscaling_target.this[0].max_capacity,
    ],
    logFilter: resource.aws_cloudwatch_log_metric_filter.this[0].pattern,
    serviceLifecycle: resource.aws_ecs_service.this[0].lifecycle[0],
    scalingTarget: resource.aws_appautoscaling_target.this[0],
    locals,
    variable,
  };
}

const context = { prefix: 'orders', vpc: VPC, subnets: JSON.stringify(SUBNETS), cluster: 'shared' };
const app = fromTemplate(appTemplate(context).toJSON());
const template = fromTemplate(included({ ...defaults, ...GIVEN }));
const terraform = await fromTerraform();
const terraformLocals = terraform.locals;
const KEPT = 'orders-kept';
const existing = [
  fromTemplate(appTemplate({ ...context, bucket: KEPT }).toJSON()),
  fromTemplate(included({ ...defaults, ...GIVEN, Bucket: KEPT })),
  await fromTerraform(KEPT),
] as const;
const policyOf = (name: string) => JSON.parse(textOf(`infra/ecs/${name}.json`)).Statement;
const definition = JSON.parse(textOf('infra/ecs/task-definition.json'));
const plainContainer = container(definition.containerDefinitions[0]);

describe.each([
  ['the CDK app', app, existing[0]],
  ['the template', template, existing[1]],
  ['Terraform', terraform, existing[2]],
])(
  '%s, compared with the files for the AWS CLI',
  (_name, { role, bucket, kept, scratch, sids: names, task, container: lease }, other) => {
    it('grants the same rights, and has the same policy for its bucket', () => {
      const rights = [...policyOf('policy-init'), ...policyOf('policy-protect')];
      expect(names).toEqual(sids(rights));
      expect(role).toEqual(statements(rights));
      expect(bucket).toEqual(statements(policyOf('bucket-policy')));
    });

    it('has the same rules for what a probe leaves behind', () => {
      const { Rules } = JSON.parse(textOf('infra/ecs/lifecycle.json'));
      expect(scratch).toEqual(
        Rules.map(({ Filter, Expiration }: Document) => `${Filter.Prefix} ${Expiration.Days}`),
      );
      expect(scratch).toHaveLength(2);
    });

    it('keeps its bucket and the policy when it is deleted', () => {
      expect(kept.sort()).toEqual(['bucket', 'bucketpolicy']);
    });

    it('takes an existing bucket: no other one is made, no policy replaced, and the rights are there', () => {
      expect({ s3: other.s3, bucket: other.bucket }).toEqual({ s3: 0, bucket: [] });
      expect(other.role).toEqual(JSON.parse(JSON.stringify(role).replaceAll(/"bucket/g, `"${KEPT}`)));
      expect(other.container.environment).toEqual({
        ...lease.environment,
        NODELEASE_STORE: `s3://${KEPT}/orders`,
      });
    });

    it('has the same task, whose first start may create the cluster', () => {
      expect(task).toEqual(taskOf(definition));
      const { NODELEASE_NODES, NODELEASE_DURATION, NODELEASE_GRACE, ...others } = lease.environment;
      expect(NODELEASE_NODES).toBe('4');
      // Named by the app only, which has a setting for it.
      const { graceMs } = CLUSTER_DEFAULTS;
      expect(NODELEASE_GRACE ?? `${graceMs}ms`).toBe(`${graceMs}ms`);
      expect(others.NODELEASE_CLUSTER).toBe('any');
      expect(readSettings({ flags: {}, env: { NODELEASE_DURATION }, hostname: 'host' }).durationMs).toBe(
        30_000,
      );
      const environment = { ...others, NODELEASE_CLUSTER: 'existing', NODELEASE_DURATION: '30s' };
      expect({ ...lease, environment }).toEqual(plainContainer);
    });
  },
);

it('the policies for run and doctor are parts of that for init', () => {
  const [list, read, write, remove] = policyOf('policy-init');
  expect(policyOf('policy-run')).toEqual([list, read, write]);
  const scratch = { ...write, Sid: 'WriteScratchObjects', Resource: remove.Resource };
  expect(policyOf('policy-doctor')).toEqual([list, read, scratch, remove]);
});

it('the template and Terraform deploy the service of the CDK app', () => {
  expect(template.service).toEqual(app.service);
  expect(terraform.service).toEqual(app.service);
});

it('the template and Terraform have the same settings with the same defaults', () => {
  const { name: _name, ...variables } = terraform.variable;
  const own = ({ default: given }: Document) =>
    typeof given === 'boolean' ? 'DISABLED' : Array.isArray(given) && given.length === 0 ? [''] : given;
  expect(
    Object.fromEntries(
      Object.entries<Document>(variables).map(([name, [declaration]]) => [
        name.replace(/(^|_)(\w)/g, (_all, _start, letter) => letter.toUpperCase()),
        own(declaration),
      ]),
    ),
  ).toEqual(Object.fromEntries(Object.keys(declared).map((name) => [name, defaults[name]])));
});

it('the environment of the task is what nodelease reads', () => {
  for (const { environment } of [plainContainer, template.container, terraform.container]) {
    const known = SETTINGS.map(({ name }) => environmentName(name));
    expect(Object.keys(environment).filter((name) => !known.includes(name))).toEqual([]);
    expect(readSettings({ flags: {}, env: environment, hostname: 'host' }).store).toMatch(/^s3:/);
  }
});

it('the cluster that the page creates with the AWS CLI has the duration of its tasks', () => {
  const [, duration] = /^nodelease init .*--duration (\S+)/m.exec(textOf('infra/README.md')) ?? [];
  expect(duration).toBe(plainContainer.environment.NODELEASE_DURATION);
});

it('Terraform’s module refers to nothing that it does not declare', () => {
  const text = readFileSync(TERRAFORM, 'utf8').replace(/#.*/g, '');
  const declarations = new Set(
    [...text.matchAll(/^(variable|resource|data) ((?:"\w+" ?)+)\{/gm)].map(([, kind, names = '']) =>
      [kind === 'variable' ? 'var' : kind === 'data' ? 'data' : '', ...(names.match(/\w+/g) ?? [])]
        .filter((part) => part !== '')
        .join('.'),
    ),
  );
  const references: readonly string[] =
    text.match(/\b(?:var\.\w+|data\.aws_\w+\.\w+|(?<!data\.)aws_\w+\.\w+)/g) ?? [];
  expect(references.length).toBeGreaterThan(40);
  expect(references.filter((reference) => !declarations.has(reference))).toEqual([]);
  expect([...declarations].filter((name) => name.startsWith('var.') && !references.includes(name))).toEqual(
    [],
  );
});

it('Terraform’s module refuses more tasks than node ids, deployments included', () => {
  const [{ condition }] = terraform.serviceLifecycle.precondition;
  const [, formula = ''] = /^\$\{floor\((.+)\) <= var\.nodes\}$/.exec(condition) ?? [];
  expect(formula).toBe('var.desired_count * local.maximum_percent / 100');
});

/** Whether ECS can replace a task: by another one before it, for which there is a node id, or after its end. */
const canDeploy = (tasks: number, most: number, least: number) =>
  Math.floor((tasks * most) / 100) > tasks || Math.ceil((tasks * least) / 100) < tasks;

it('Terraform’s module refuses counts with which the next deployment would stand still', () => {
  const [, { condition }] = terraform.serviceLifecycle.precondition;
  const formula = /^\$\{(.*)\}$/.exec(condition)?.[1] ?? '';
  const refuses = new Function(
    'local',
    'var_',
    'floor',
    'ceil',
    `return !(${formula.replaceAll('var.', 'var_.')})`,
  );
  for (let tasks = 0; tasks <= 6; tasks += 1)
    for (const most of [100, 134, 150, 200])
      for (const least of [0, 50, 66, 100]) {
        const local = { maximum_percent: most, minimum_healthy_percent: least };
        const refused = refuses(local, { desired_count: tasks }, Math.floor, Math.ceil);
        expect(refused, `${tasks} ${most} ${least}`).toBe(tasks > 0 && !canDeploy(tasks, most, least));
      }
});

it('the template refuses these counts as far as its rules can tell', () => {
  const holds = ({
    'Fn::Not': not,
    'Fn::And': and,
    'Fn::Contains': contains,
    ...rest
  }: Document): boolean => {
    if (not) return !holds(not[0]);
    if (and) return and.every(holds);
    const [one, other] = contains ?? rest['Fn::Equals'];
    return [one].flat().map(String).includes(String(other));
  };
  const refused = (DesiredCount: number, given: Document = {}): string[] => {
    const { Rules } = included({ ...defaults, ...GIVEN, DesiredCount, ...given });
    return (
      Object.values<Document>(Rules)
        // CDK adds one without a condition.
        .filter(({ RuleCondition }) => RuleCondition && holds(RuleCondition))
        .flatMap(({ Assertions }) => Assertions as Document[])
        .filter(({ Assert }) => !holds(Assert))
        .map(({ AssertDescription }) => AssertDescription.split(':')[0])
    );
  };
  for (const tasks of [1, 2]) {
    expect(canDeploy(tasks, 134, 100)).toBe(false);
    expect(refused(tasks)).toEqual(['MaximumPercent']);
  }
  expect(refused(4)).toEqual(['MinimumHealthyPercent']);
  expect(refused(3, { MaximumPercent: 100 })).toEqual(['MinimumHealthyPercent']);
  for (const most of [100, 134]) {
    expect(canDeploy(1, most, 50)).toBe(false);
    expect(refused(1, { MaximumPercent: most, MinimumHealthyPercent: 50 })).toEqual([
      'MinimumHealthyPercent',
    ]);
  }
  for (const [tasks, given] of [
    [3, {}],
    [2, { MaximumPercent: 150 }],
    [1, { MaximumPercent: 200 }],
    [1, { MaximumPercent: 100, MinimumHealthyPercent: 0 }],
    [4, { MaximumPercent: 100, MinimumHealthyPercent: 75 }],
    [4, { AutoscaleCpu: 60 }],
    [0, {}],
  ] as const)
    expect(refused(tasks, given)).toEqual([]);
});

it('Terraform’s module refuses a stop time-out that ends before the lease does, as the app', () => {
  const [, , { condition }] = terraform.serviceLifecycle.precondition;
  expect(condition).toBe(`\${var.stop_timeout >= var.duration + ${WIND_UP_MS / 1_000}}`);
});

it('Terraform’s module refuses a name that AWS would refuse after a part of the resources', () => {
  const [{ condition }] = terraform.variable.name[0].validation;
  const pattern = new RegExp(/regex\("(.+)", var\.name\)/.exec(condition)?.[1] ?? '');
  const names = ['orders', 'a'.repeat(27), '', 'Orders', 'orders_1', '1-orders', 'a'.repeat(28)];
  expect(names.filter((name) => pattern.test(name))).toEqual(names.slice(0, 2));
});

describe('the tools of AWS', () => {
  let env: NodeJS.ProcessEnv;
  let bin: string;
  const place = mkdtempSync(join(tmpdir(), 'nodelease-ecs-'));
  beforeAll(async () => {
    const folder = await installed('install-python.sh', ['aws'], 'install Python 3 with pip');
    bin = join(folder, 'bin');
    const access = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' };
    const path = { PATH: `${bin}:${process.env.PATH}`, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' };
    env = { ...access, ...path, HOME: place, AWS_DEFAULT_REGION: 'eu-central-1', AWS_PAGER: '' };
  }, 600_000);
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  it('cfn-lint finds nothing in the template, not even by the way, and does find a misspelt field', async () => {
    const lint = (file: string) => run('cfn-lint', ['--include-checks', 'I', '--', file], { env });
    expect((await lint(TEMPLATE)).stdout).toBe('');
    const misspelt = join(place, 'misspelt.yaml');
    const text = readFileSync(TEMPLATE, 'utf8').replace('ReadonlyRootFilesystem', 'ReadOnlyRootFilesystem');
    writeFileSync(misspelt, text);
    await expect(lint(misspelt)).rejects.toMatchObject({ stdout: expect.stringContaining('E3002') });
  });

  it('the AWS CLI does what the page says, with these files, on moto', async () => {
    const moto = await startS3Server('moto');
    try {
      const surroundings = { env: { ...env, AWS_ENDPOINT_URL: moto.endpoint }, cwd: root };
      const aws = async (...args: string[]) =>
        (await run('aws', [...args, '--output', 'text'], surroundings)).stdout.trim();
      await aws('ecs', 'create-cluster', '--cluster-name', 'my-cluster');
      const vpc = await aws('ec2', 'describe-vpcs', '--query', 'Vpcs[0].VpcId');
      const subnets = await aws('ec2', 'describe-subnets', '--query', 'Subnets[0:2].SubnetId');
      const group = await aws('ec2', 'describe-security-groups', '--query', 'SecurityGroups[0].GroupId');
      const blocks = [...textOf('infra/README.md').matchAll(/^```sh\n(.*?)^```/gms)]
        .map(([, block = '']) => block)
        .filter((block) => block.includes('infra/ecs/'));
      expect(blocks).toHaveLength(2);
      for (const block of blocks) {
        const typed = block
          .replace(VPC, vpc)
          .replace(SUBNETS.join(), subnets.split('\t').join())
          .replace('sg-0a1b2c3d', group)
          // Tried on its own, on a server that keeps conditions: ecs-policies.deep.test.ts.
          .replace(/^nodelease .*$/gm, '');
        await run('bash', ['-euc', typed], surroundings);
      }
      const services = await aws('ecs', 'list-services', '--cluster', 'my-cluster', '--query', 'serviceArns');
      expect(services.split('\t')).toHaveLength(2);
    } finally {
      await moto.stop();
    }
  }, 600_000);
});

/** The alarms of the template, where a topic is given. */
const alarmsOf = (document: Document) => {
  const resources = decided(document);
  const filters = resources.filter(({ Type }) => Type === 'AWS::Logs::MetricFilter');
  const alarms = resources.filter(({ Type }) => Type === 'AWS::CloudWatch::Alarm');
  return {
    filters: filters
      .map(({ Properties }) => [Properties.MetricTransformations[0].MetricName, Properties.FilterPattern])
      .sort(),
    alarms: alarms
      .filter(({ Properties }) => Properties.MetricName && Properties.MetricName !== 'RunningTaskCount')
      .map(({ Properties: { MetricName, Statistic, Period, EvaluationPeriods, Threshold, ...rest } }) => [
        ...[MetricName, Statistic, Period, EvaluationPeriods, Number(Threshold)],
        ...[rest.ComparisonOperator, rest.TreatMissingData],
      ])
      .sort(),
    counts: alarms.length,
    texts: alarms.map(({ Properties }) => Properties.AlarmDescription).sort(),
  };
};

const TOPIC = 'arn:aws:sns:eu-central-1:111122223333:alerts';
const KEY = 'arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d';
const templateWith = (given: Document) => included({ ...defaults, ...GIVEN, ...given });
const ofType = (document: Document, type: string): Document[] =>
  decided(document).flatMap(({ Type, Properties }) => (Type === `AWS::${type}` ? [Properties] : []));

describe('what the parameters of the template ask for', () => {
  it('are the alarms of the CDK app, and without a topic none', () => {
    const fromApp = alarmsOf(appTemplate(context).toJSON());
    const fromTopic = alarmsOf(templateWith({ AlarmTopic: TOPIC }));
    expect(fromTopic).toEqual(fromApp);
    expect(fromTopic.counts).toBe(7);
    expect(alarmsOf(templateWith({})).counts).toBe(0);
    // Of another bucket, the alarms on its request metrics are left out.
    expect(alarmsOf(templateWith({ AlarmTopic: TOPIC, Bucket: KEPT })).counts).toBe(5);
    for (const text of fromTopic.texts) expect(textOf('infra/terraform/main.tf')).toContain(`"${text}"`);
    const { log_alarms: logAlarms, s3_alarms: s3Alarms } = terraformLocals;
    expect(
      [
        ...Object.entries<Document>(logAlarms).map(([name, all]) => [name, 'Sum', all.period, all]),
        ...Object.values<Document>(s3Alarms).map((all) => [all.metric, all.statistic, 300, all]),
      ]
        .map(([name, statistic, period, all]) => [name, statistic, period, all.periods, all.threshold])
        .sort(),
    ).toEqual(fromTopic.alarms.map((alarm) => alarm.slice(0, 5)));
    expect(
      Object.entries<Document>(logAlarms)
        .map(([name, { events }]) => [
          name,
          terraform.logFilter
            .replace(
              /\$\{join\(.*?\]\)\}/,
              events.map((event: string) => `($.event = "${event}")`).join(' || '),
            )
            .replace(
              /%\{if each\.key == "(\w+)"\}(.*)%\{endif\}/,
              (_all: string, only: string, rest: string) => (only === name ? rest : ''),
            ),
        ])
        .map(([name, pattern = '']) => [name, pattern.replace(/\(\((\$\.event = "\w+")\)\) \}/, '($1) }')])
        .sort(),
    ).toEqual(fromTopic.filters);
  });

  it('is a key of KMS for the bucket, with the rights to it, also of an existing bucket', () => {
    for (const given of [{}, { Bucket: KEPT }]) {
      const document = templateWith({ KmsKey: KEY, ...given });
      const rights = fromTemplate(document).role.filter(({ Resource }) => Resource.includes(KEY));
      expect(rights.map(({ Action }) => Action)).toEqual([['kms:Decrypt', 'kms:GenerateDataKey']]);
    }
    const [{ BucketEncryption }] = ofType(templateWith({ KmsKey: KEY }), 'S3::Bucket') as [Document];
    expect(BucketEncryption.ServerSideEncryptionConfiguration).toEqual([
      {
        BucketKeyEnabled: true,
        ServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms', KMSMasterKeyID: KEY },
      },
    ]);
    const [unencrypted] = ofType(templateWith({}), 'S3::Bucket') as [Document];
    expect(unencrypted.BucketEncryption).toBeUndefined();
    const fromApp = appTemplate({ ...context, kmsKey: KEY, bucket: KEPT }).toJSON();
    expect(JSON.stringify(ofType(fromApp, 'IAM::Policy'))).toContain('kms:GenerateDataKey');
  });

  it('is autoscaling that never makes more tasks than node ids, deployments included', () => {
    for (const document of [
      templateWith({ AutoscaleCpu: 60, Nodes: 7 }),
      appTemplate({ ...context, autoscaleCpu: 60, nodes: 7 }).toJSON(),
    ]) {
      expect(ofType(document, 'ApplicationAutoScaling::ScalableTarget')).toMatchObject([
        { MinCapacity: 3, MaxCapacity: 7 },
      ]);
      expect(ofType(document, 'ApplicationAutoScaling::ScalingPolicy')).toMatchObject([
        {
          TargetTrackingScalingPolicyConfiguration: {
            TargetValue: 60,
            PredefinedMetricSpecification: { PredefinedMetricType: 'ECSServiceAverageCPUUtilization' },
          },
        },
      ]);
      const [service] = ofType(document, 'ECS::Service') as [Document];
      expect(service.DesiredCount).toBeUndefined();
      expect(service.AvailabilityZoneRebalancing).toBe('DISABLED');
      const { MaximumPercent: most, MinimumHealthyPercent: least } = service.DeploymentConfiguration;
      for (let tasks = 3; tasks <= 7; tasks += 1) {
        expect(Math.floor((tasks * most) / 100)).toBeLessThanOrEqual(7);
        // One of them may stop: otherwise a deployment would wait forever.
        expect(Math.ceil((tasks * least) / 100)).toBeLessThan(tasks);
      }
    }
    expect(ofType(templateWith({}), 'ApplicationAutoScaling::ScalableTarget')).toEqual([]);
    expect(terraform.scaling).toEqual([`\${var.desired_count}`, `\${var.nodes}`]);
  });

  it('is no autoscaling from a single task: half of one is no task that a deployment may stop', () => {
    for (const one of ['0', '1']) {
      const { Rules } = templateWith({ AutoscaleCpu: '60', DesiredCount: one });
      const [{ RuleCondition, Assertions }] = Object.values<Document>(Rules) as [Document];
      expect(RuleCondition).toEqual({ 'Fn::Not': [{ 'Fn::Equals': ['60', 0] }] });
      const [[refused, count]] = Assertions.map(
        ({ Assert }: Document) => Assert['Fn::Not'][0]['Fn::Contains'],
      );
      expect(refused).toContain(count);
    }
    expect(() => appTemplate({ ...context, autoscaleCpu: 60, desiredCount: 1 })).toThrow(
      /^desiredCount: expected at least 2 with autoscaling/,
    );
    const [{ condition }] = terraform.scalingTarget.lifecycle[0].precondition;
    expect(condition).toBe(`\${var.desired_count > 1}`);
  });

  it('is a job that a schedule starts, and nodelease once runs once a period, with the rights of the service', () => {
    const command = ['node', 'report.js'];
    for (const document of [
      templateWith({ JobCommand: command }),
      appTemplate({ ...context, jobCommand: command }).toJSON(),
    ]) {
      const [service, job] = ofType(document, 'ECS::TaskDefinition').sort(
        (a, b) => b.ContainerDefinitions[0].Command.length - a.ContainerDefinitions[0].Command.length,
      ) as [Document, Document];
      const isJob = ({ ContainerDefinitions: [{ EntryPoint, Command }] }: Document) =>
        [...EntryPoint, ...Command].join(' ') === 'nodelease once job --every 1d -- node report.js';
      const [definition, other] = isJob(service) ? [service, job] : [job, service];
      expect(isJob(definition)).toBe(true);
      expect([definition.TaskRoleArn, definition.ExecutionRoleArn]).toEqual([
        other.TaskRoleArn,
        other.ExecutionRoleArn,
      ]);
      const environment = (task: Document): Texts =>
        Object.fromEntries(
          task.ContainerDefinitions[0].Environment.map(({ Name, Value }: Document) => [
            Name,
            canonical(Value),
          ]),
        );
      const { NODELEASE_STORE, NODELEASE_DURATION, NODELEASE_LOG_FORMAT } = environment(other);
      expect(environment(definition)).toEqual({ NODELEASE_STORE, NODELEASE_DURATION, NODELEASE_LOG_FORMAT });
      expect(definition.ContainerDefinitions[0].HealthCheck).toBeUndefined();
      const [{ ScheduleExpression, Target }] = ofType(document, 'Scheduler::Schedule') as [Document];
      expect(ScheduleExpression).toBe('rate(1 hour)');
      const { TaskDefinitionArn, NetworkConfiguration } = Target.EcsParameters;
      const name = Object.entries<Document>(document.Resources).find(
        ([, { Properties }]) =>
          Properties?.ContainerDefinitions &&
          isJob(decided({ ...document, Resources: { job: { Type: '', Properties } } })[0].Properties),
      )?.[0];
      expect(TaskDefinitionArn).toEqual({ Ref: name });
      expect(NetworkConfiguration.AwsvpcConfiguration.AssignPublicIp).toBe('DISABLED');
    }
    expect(ofType(templateWith({}), 'Scheduler::Schedule')).toEqual([]);
    expect(terraformLocals.job).toContain(
      'entryPoint = ["nodelease", "once", "job", "--every", var.job_every, "--"]',
    );
  });

  it('is the name of a cluster of leases that another stack has created, and else the own one', () => {
    const named = (document: Document): Document =>
      ofType(document, 'ECS::TaskDefinition')[0].ContainerDefinitions[0].Environment.find(
        ({ Name }: Document) => Name === 'NODELEASE_CLUSTER_NAME',
      ).Value;
    expect(named(templateWith({ Bucket: KEPT, LeaseClusterName: 'first' }))).toBe('first');
    expect(named(templateWith({}))).toEqual({ Ref: 'AWS::StackName' });
    expect(named(appTemplate({ ...context, bucket: KEPT, leaseClusterName: 'first' }).toJSON())).toBe(
      'first',
    );
    expect(terraformLocals.container.environment).toContainEqual({
      name: 'NODELEASE_CLUSTER_NAME',
      value: `\${coalesce(var.lease_cluster_name, var.name)}`,
    });
  });

  it('is a cluster of leases that exists after the first deployment', () => {
    const environment = fromTemplate(templateWith({ LeaseCluster: 'existing' })).container.environment;
    expect(environment.NODELEASE_CLUSTER).toBe('existing');
    const [lease] = containersOf(appTemplate({ leaseCluster: 'existing' }));
    expect(lease?.Environment).toContainEqual({ Name: 'NODELEASE_CLUSTER', Value: 'existing' });
  });
});
