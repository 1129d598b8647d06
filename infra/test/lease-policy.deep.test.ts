import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import { describe, expect, it } from 'vitest';
import { LeaseBucket } from '../lib/lease-bucket.js';
import { grantLeases, type LeaseRights } from '../lib/lease-policy.js';
import { appTemplate, plain, type Statement, statementsOf } from './stacks.js';

/** What a role may do in the bucket, with each of the rights. */
function granted(rights: LeaseRights, kms = false): readonly Statement[] {
  const stack = new Stack(new App(), 'Stack');
  const leases = new LeaseBucket(stack, 'Leases', {
    prefix: 'prod',
    ...(kms && { encryptionKey: new Key(stack, 'Key') }),
  });
  grantLeases(new Role(stack, 'Role', { assumedBy: new ServicePrincipal('ecs-tasks.amazonaws.com') }), {
    ...leases,
    rights,
  });
  return statementsOf(Template.fromStack(stack), 'AWS::IAM::Policy');
}

const shown = (statements: readonly Statement[]) =>
  statements.map(({ Effect, Action, Resource, Condition }) => ({
    Effect,
    Action,
    Resource: [Resource].flat().map(plain).join(),
    ...(Condition ? { Condition } : {}),
  }));

const LIST = {
  Effect: 'Allow',
  Action: 's3:ListBucket',
  Resource: '<LeasesBucket>',
  // With the pattern, S3 answers 404 to a read of what does not exist; with the bare prefix it would be 403,
  // and no cluster could ever begin.
  Condition: { StringLike: { 's3:prefix': 'prod/*' } },
};
const READ = { Effect: 'Allow', Action: 's3:GetObject', Resource: '<LeasesBucket>/prod/*' };
const WRITE = { Effect: 'Allow', Action: 's3:PutObject', Resource: '<LeasesBucket>/prod/*' };
const REMOVE = {
  Effect: 'Allow',
  Action: 's3:DeleteObject',
  Resource: '<LeasesBucket>/prod/probe-*,<LeasesBucket>/prod/locks/probe-*',
};

describe('the rights on the leases', () => {
  it('to hold them are four actions, each on the keys that it is used on, statement by statement', () => {
    expect(shown(granted('hold'))).toEqual([LIST, READ, WRITE, REMOVE]);
  });

  it('to read them do not allow writing', () => {
    expect(shown(granted('read'))).toEqual([LIST, READ]);
  });

  it('on an encrypted bucket come with those on its key, and no more of them than they need', () => {
    const key = { Effect: 'Allow', Resource: '<Key>' };
    expect(shown(granted('hold', true)).slice(4)).toEqual([
      { ...key, Action: ['kms:Decrypt', 'kms:GenerateDataKey'] },
    ]);
    expect(shown(granted('read', true)).slice(2)).toEqual([{ ...key, Action: 'kms:Decrypt' }]);
  });
});

describe('the roles of the app', () => {
  const policies = Object.values(appTemplate().findResources('AWS::IAM::Policy'));
  const of = (role: string) =>
    policies
      .filter(({ Properties }) => plain(Properties.Roles[0]).includes(role))
      .flatMap(({ Properties }) => Properties.PolicyDocument.Statement as Statement[]);

  it('let a task do what leases need and nothing else', () => {
    expect(shown(of('TaskRole')).map(({ Action }) => Action)).toEqual([
      's3:ListBucket',
      's3:GetObject',
      's3:PutObject',
      's3:DeleteObject',
      ['ecs:GetTaskProtection', 'ecs:UpdateTaskProtection'],
    ]);
  });

  it('allow nothing on every resource but the one action that knows none', () => {
    const everywhere = policies
      .flatMap(({ Properties }) => Properties.PolicyDocument.Statement as Statement[])
      .filter(({ Resource }) => Resource === '*');
    expect(everywhere.map(({ Action }) => Action)).toEqual(['ecr:GetAuthorizationToken']);
  });

  it('allow no pattern of actions', () => {
    const actions = policies
      .flatMap(({ Properties }) => Properties.PolicyDocument.Statement as Statement[])
      .flatMap(({ Action }) => Action);
    expect(actions.filter((action) => action.includes('*'))).toEqual([]);
    expect(
      Object.values(appTemplate().findResources('AWS::IAM::Role')).flatMap(
        ({ Properties }) => Properties.ManagedPolicyArns ?? [],
      ),
    ).toEqual([]);
  });
});
