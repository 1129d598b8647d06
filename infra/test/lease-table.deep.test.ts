import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse as parseTerraform } from '@cdktf/hcl2json';
import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { CfnInclude } from 'aws-cdk-lib/cloudformation-include';
import { expect, it } from 'vitest';
import { installed } from '../../test/support/installed.js';

// A table of DynamoDB and the rights to its leases, by CloudFormation and by Terraform.

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const TEMPLATE = join(root, 'infra/dynamodb/table.yaml');
const TERRAFORM = join(root, 'infra/dynamodb/main.tf');

const DRIVER = 'src/core/store/dynamodb';
const PARTITIONS = ['prefix', 'prefix/locks'];

/** Of both: a statement's name, actions and partitions. */
type Statement = readonly [sid: string, actions: readonly string[], partitions: readonly string[]];

const EXPECTED: readonly Statement[] = [
  ['HoldLeases', ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:Query'], PARTITIONS],
  ['RemoveScratchItems', ['dynamodb:DeleteItem'], PARTITIONS],
  ['KnowTable', ['dynamodb:DescribeTable', 'dynamodb:DescribeTimeToLive'], []],
];

function template() {
  const stack = new Stack(new App(), 'Included');
  new CfnInclude(stack, 'Template', { templateFile: TEMPLATE, parameters: { Prefix: 'prefix' } });
  const { Leases, Access } = Template.fromStack(stack).toJSON().Resources;
  const statements: readonly {
    readonly Sid: string;
    readonly Action: string | readonly string[];
    readonly Effect: string;
    readonly Resource: unknown;
    readonly Condition?: Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>>;
  }[] = Access.Properties.PolicyDocument.Statement;
  return {
    table: Leases,
    statements: statements.map(({ Sid, Action, Effect, Resource, Condition = {} }) => {
      expect([Effect, Resource]).toEqual(['Allow', { 'Fn::GetAtt': 'Leases.Arn' }]);
      const keys = Condition['ForAllValues:StringEquals']?.['dynamodb:LeadingKeys'] ?? [];
      const texts = keys.map((key) => (key as { 'Fn::Sub'?: string })['Fn::Sub'] ?? key);
      return [Sid, [Action].flat(), texts.map((text) => String(text).replace(/^\$\{Prefix\}/, 'prefix'))];
    }),
  };
}

it('the template makes a table that leases need, and keeps it', () => {
  const { table } = template();
  expect(table).toMatchObject({ DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' });
  expect(table.Properties).toEqual({
    ...{ BillingMode: 'PAY_PER_REQUEST', DeletionProtectionEnabled: true },
    AttributeDefinitions: ['prefix', 'object'].map((AttributeName) => ({
      AttributeName,
      AttributeType: 'S',
    })),
    KeySchema: [
      { AttributeName: 'prefix', KeyType: 'HASH' },
      { AttributeName: 'object', KeyType: 'RANGE' },
    ],
  });
});

it('the template gives the rights that the store names, and no others', () => {
  expect(template().statements).toEqual(EXPECTED);
  const sources = ['classify-reply.ts', 'dynamodb-lease-store.ts'].map((file) =>
    readFileSync(join(root, DRIVER, file), 'utf8'),
  );
  const named = sources.join('').match(/(?<=')(?:Get|Put|Delete)Item|Query|Describe\w+(?=')/g) ?? [];
  expect([...new Set(named.map((name) => `dynamodb:${name}`))].sort()).toEqual(
    EXPECTED.flatMap(([, actions]) => actions).sort(),
  );
});

it('Terraform makes the same', async () => {
  const { resource, data } = await parseTerraform(TERRAFORM, readFileSync(TERRAFORM, 'utf8'));
  expect(resource.aws_dynamodb_table.leases).toEqual([
    {
      ...{ name: `\${var.name}`, billing_mode: 'PAY_PER_REQUEST', deletion_protection_enabled: true },
      ...{ hash_key: 'prefix', range_key: 'object' },
      attribute: ['prefix', 'object'].map((name) => ({ name, type: 'S' })),
      lifecycle: [{ prevent_destroy: true }],
    },
  ]);
  const statements: Record<string, never>[] = data.aws_iam_policy_document.access[0].statement;
  const shown = statements.map(({ sid, actions, resources, condition = [] }) => {
    expect(resources).toEqual([`\${aws_dynamodb_table.leases.arn}`]);
    const conditions = condition as readonly { test: string; variable: string; values: readonly string[] }[];
    for (const { test, variable } of conditions)
      expect([test, variable]).toEqual(['ForAllValues:StringEquals', 'dynamodb:LeadingKeys']);
    const values = conditions.flatMap((each) => each.values);
    return [sid, actions, values.map((value) => value.replace(`\${var.prefix}`, 'prefix'))];
  });
  expect(shown).toEqual(EXPECTED);
});

it('cfn-lint finds nothing in the template', { timeout: 600_000 }, async () => {
  const folder = await installed('install-python.sh', ['aws'], 'install Python 3 with pip');
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
    ...{ PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' },
  };
  const { stdout } = await run('cfn-lint', ['--include-checks', 'I', '--', TEMPLATE], { env });
  expect(stdout).toBe('');
});
