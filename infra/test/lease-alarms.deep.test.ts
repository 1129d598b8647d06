import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { leaseLog, lockLog } from '../../src/app/kit/log/lease-log.js';
import { type LeaseEvent, LeaseLostError } from '../../src/core/lease/model/lease.js';
import { matches } from './filter-pattern.js';
import { appTemplate, plain, type Statement } from './stacks.js';

const template = appTemplate();
const filters = Object.values(template.findResources('AWS::Logs::MetricFilter')).map(({ Properties }) => ({
  pattern: Properties.FilterPattern as string,
  metric: Properties.MetricTransformations[0].MetricName as string,
  namespace: Properties.MetricTransformations[0].MetricNamespace as string,
}));
const alarms = Object.values(template.findResources('AWS::CloudWatch::Alarm')).map(
  ({ Properties }) => Properties,
);

const error = new Error('no route');
/** One of every kind. */
const EVENTS: readonly LeaseEvent[] = [
  { type: 'setting-overruled', setting: 'durationMs', own: 5_000, stored: 15_000 },
  { type: 'damaged', key: '3.json', problem: 'not JSON' },
  { type: 'waiting', sleepMs: 12 },
  { type: 'store-failed', error, sleepMs: 100 },
  { type: 'acquired', id: 3, version: 8, from: 'released', tookMs: 20, requests: 5, deadline: 1 },
  { type: 'bootstrapped' },
  { type: 'renewed', deadline: 1, tookMs: 3 },
  { type: 'renewal-failed', error, attempt: 1 },
  { type: 'lost', error: new LeaseLostError(3, 8, 'taken', 1, 'task b holds it') },
  { type: 'released' },
  { type: 'release-failed', error },
];

/** The lines that nodelease writes of these events at its usual level, by a logger of its make. */
function linesOf(events: readonly LeaseEvent[], level = 'info', log: typeof leaseLog = leaseLog): string[] {
  const lines: string[] = [];
  const listener = log(pino({ name: 'nodelease', level }, { write: (line) => void lines.push(line) }));
  for (const event of events) listener(event);
  return lines;
}

describe('the alarms on the log', () => {
  it.each([
    ['LeaseLost', ['lost']],
    ['StoreFailures', ['store-failed', 'renewal-failed']],
    ['NoFreeNodeId', ['waiting']],
    ['LeaseDamaged', ['damaged']],
  ])('%s counts the lines that nodelease writes of %j, and no others', (metric, events) => {
    const pattern = filters.find((filter) => filter.metric === metric)?.pattern ?? '';
    const counted = EVENTS.filter((event) =>
      linesOf([event], 'debug').some((line) => matches(pattern, line)),
    ).map(({ type }) => type);
    expect(counted).toEqual(events);
  });

  it('count what is logged at the usual level', () => {
    for (const { pattern, metric } of filters)
      expect(
        linesOf(EVENTS).some((line) => matches(pattern, line)),
        metric,
      ).toBe(true);
  });

  it('do not count the lines of the work in the same stream', () => {
    const work = [
      JSON.stringify({ name: 'orders', event: 'lost' }),
      JSON.stringify({ event: 'damaged', msg: 'parcel' }),
      'lost: nodelease',
      '"lost"',
      'null',
    ];
    for (const { pattern } of filters)
      for (const line of work) expect(matches(pattern, line), line).toBe(false);
  });

  it('do not take the wait for a lock, of a job or a standby, for one for a node id, and count all other lines of locks', () => {
    const lines = linesOf(EVENTS, 'info', (log) => lockLog(log, 'job'));
    const counted = filters.filter(({ pattern }) => lines.some((line) => matches(pattern, line)));
    expect(counted.map(({ metric }) => metric).sort()).toEqual([
      'LeaseDamaged',
      'LeaseLost',
      'StoreFailures',
    ]);
  });

  it('read the very metrics that are counted', () => {
    const read = alarms
      .filter(({ Namespace }) => Namespace.startsWith('nodelease/'))
      .map(({ Namespace, MetricName }) => `${Namespace} ${MetricName}`);
    expect(read.sort()).toEqual(filters.map(({ namespace, metric }) => `${namespace} ${metric}`).sort());
  });

  it('see a shortage of node ids in each of the five minutes for which it lasts', () => {
    const pattern = filters.find((filter) => filter.metric === 'NoFreeNodeId')?.pattern ?? '';
    const sleepMs = 1_500;
    const listened: number[] = [];
    let at = 0;
    const listener = leaseLog(
      pino(
        { name: 'nodelease', level: 'info' },
        { write: (line) => void (matches(pattern, line) && listened.push(at)) },
      ),
    );
    for (; at < 900_000; at += sleepMs) listener({ type: 'waiting', sleepMs });
    for (const period of [0, 1, 2])
      expect(listened.some((time) => Math.floor(time / 300_000) === period)).toBe(true);
    expect(listened.length).toBeLessThan(10);
  });

  it('go off at the first loss or damage, at three failures of the store within five minutes, and at waits for a quarter of an hour', () => {
    const of = (name: string) => alarms.find(({ MetricName }) => MetricName === name);
    for (const name of ['LeaseLost', 'LeaseDamaged'])
      expect(of(name)).toMatchObject({ Threshold: 1, EvaluationPeriods: 1, Statistic: 'Sum' });
    expect(of('NoFreeNodeId')).toMatchObject({
      Threshold: 1,
      EvaluationPeriods: 3,
      Period: 300,
      Statistic: 'Sum',
    });
    expect(of('LeaseLost')).toMatchObject({
      Period: 60,
      ComparisonOperator: 'GreaterThanOrEqualToThreshold',
    });
    expect(of('StoreFailures')).toMatchObject({
      Threshold: 3,
      EvaluationPeriods: 1,
      Period: 300,
      Statistic: 'Sum',
    });
  });
});

describe('the alarms of AWS itself', () => {
  it('read the request metrics that the bucket has', () => {
    const [bucket] = Object.values(template.findResources('AWS::S3::Bucket'));
    const [metrics] = bucket?.Properties.MetricsConfigurations ?? [];
    expect(metrics).toEqual({ Id: 'leases', Prefix: 'leases/' });
    const dimensions = alarms
      .filter(({ Namespace }) => Namespace === 'AWS/S3')
      .map(({ MetricName, Statistic, Dimensions }) => ({
        MetricName,
        Statistic,
        ...Object.fromEntries(
          (Dimensions as { Name: string; Value: unknown }[]).map(({ Name, Value }) => [Name, plain(Value)]),
        ),
      }));
    expect(dimensions).toEqual([
      { MetricName: '5xxErrors', Statistic: 'Sum', BucketName: '<LeasesBucket>', FilterId: metrics.Id },
      // Refusals are judged by their share: lost races are refused, too.
      { MetricName: '4xxErrors', Statistic: 'Average', BucketName: '<LeasesBucket>', FilterId: metrics.Id },
    ]);
  });

  it('go off when more than a fifth of all requests are refused for a quarter of an hour, and at five server errors', () => {
    const of = (name: string) => alarms.find(({ MetricName }) => MetricName === name);
    expect(of('4xxErrors')).toMatchObject({ Threshold: 0.2, EvaluationPeriods: 3, Period: 300 });
    expect(of('5xxErrors')).toMatchObject({ Threshold: 5, EvaluationPeriods: 1, Period: 300 });
  });

  it('miss tasks only below what a deployment leaves, and take silence for their absence', () => {
    const running = (context: Record<string, string>) =>
      Object.values(appTemplate(context).findResources('AWS::CloudWatch::Alarm')).find(
        ({ Properties }) => Properties.MetricName === 'RunningTaskCount',
      )?.Properties;
    const usual = {
      ComparisonOperator: 'LessThanThreshold',
      TreatMissingData: 'breaching',
      EvaluationPeriods: 5,
      Period: 60,
    };
    expect(running({})).toMatchObject({ ...usual, Threshold: 3 });
    expect(running({ nodes: '3' })).toMatchObject({ ...usual, Threshold: 2 });
    // Of a single task nothing is left while it is replaced; its absence for five minutes is no deployment
    // any more.
    expect(running({ nodes: '1', desiredCount: '1' })).toMatchObject({ ...usual, Threshold: 1 });
    template.hasResourceProperties('AWS::ECS::Cluster', {
      ClusterSettings: [{ Name: 'containerInsights', Value: 'enabled' }],
    });
  });

  it('all notify the same topic, when they go off and when they end, and say what they mean', () => {
    expect(alarms).toHaveLength(7);
    for (const { AlarmActions, OKActions, AlarmDescription } of alarms) {
      expect(AlarmActions.map(plain)).toEqual(['<Alerts>']);
      expect(OKActions).toEqual(AlarmActions);
      expect(AlarmDescription.length).toBeGreaterThan(20);
    }
  });

  it('reach the topic: its policy lets in the alarms of this account, and no sender without TLS', () => {
    const [policy] = Object.values(template.findResources('AWS::SNS::TopicPolicy'));
    const statements: Statement[] = policy?.Properties.PolicyDocument.Statement;
    expect(policy?.Properties.Topics.map(plain)).toEqual(['<Alerts>']);
    expect(
      statements.map(({ Effect, Action, Principal, Resource, Condition }) => ({
        Effect,
        Action,
        Principal,
        Resource,
        Condition,
      })),
    ).toEqual([
      {
        Effect: 'Deny',
        Action: 'sns:Publish',
        Principal: '*',
        Resource: { Ref: expect.stringMatching(/^Alerts/) },
        Condition: { Bool: { 'aws:SecureTransport': 'false' } },
      },
      {
        Effect: 'Allow',
        Action: 'sns:Publish',
        Principal: { Service: 'cloudwatch.amazonaws.com' },
        Resource: { Ref: expect.stringMatching(/^Alerts/) },
        Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
      },
    ]);
  });
});
