import { describe, expect, it } from 'vitest';
import { DYNAMODB } from '../../../core/store/dynamodb/dynamodb-kind.js';
import { costFinding, costReport, versionsFinding } from './diagnosis.js';

const LIST = 'S3 Standard, us-east-1';
const cluster = { size: 20, durationMs: 60_000 };

describe('the cost that doctor shows', () => {
  it('is that of the cluster that there is, whatever the settings say of a new one', () => {
    const settings = { nodes: 5, durationMs: 15_000 };
    expect(costReport(cluster, settings)).toMatchObject({
      nodes: 20,
      durationMs: 60_000,
      putsPerMonth: 2_592_000,
      dollarsPerMonth: 13.9968,
    });
    expect(costReport(undefined, settings)).toMatchObject({
      nodes: 5,
      durationMs: 15_000,
      putsPerMonth: 2_592_000,
      dollarsPerMonth: 13.9968,
    });
    expect(costReport(undefined)).toMatchObject({ nodes: 16, durationMs: 15_000 });
  });

  it('is less where the cluster’s settings are read less often, and says so', () => {
    const report = costReport(cluster, { settingsIntervalMs: 600_000 });
    expect(report).toMatchObject({
      putsPerMonth: 2_592_000,
      getsPerMonth: 86_400,
      dollarsPerMonth: 12.99456,
    });
    expect(costFinding(report, LIST).detail).toBe(
      '20 node ids, when all are held, with a duration of 60s, the settings read every 10m: ' +
        '2,592,000 writes (PUT) and 86,400 reads (GET) a month to renew them, $12.99, $0.65 for each of them, ' +
        'at $0.005 per 1,000 PUT and $0.0004 per 1,000 GET (S3 Standard, us-east-1)',
    );
  });

  it('is less than a cent for one node id that is hardly ever renewed', () => {
    const report = costReport({ size: 1, durationMs: 86_400_000 });
    expect(costFinding(report, LIST).detail).toBe(
      '1 node id, when it is held, with a duration of 24h: 90 writes (PUT) and 90 reads (GET) a month to renew them, less than a cent, ' +
        'at $0.005 per 1,000 PUT and $0.0004 per 1,000 GET (S3 Standard, us-east-1)',
    );
  });

  it('is that of the store’s own prices, where it has some', () => {
    const { cloudPrices, prices } = DYNAMODB;
    const report = costReport({ size: 1, durationMs: 15_000 }, {}, prices);
    expect(report).toMatchObject({ putsPerMonth: 518_400, dollarsPerMonth: 0.3888 });
    expect(costFinding(report, cloudPrices, true).detail).toContain(', on DynamoDB on demand $0.39, at');
    expect(costFinding(report, cloudPrices).detail).toContain(
      '$0.39, at $0.000625 per 1,000 PUT and $0.000125 per 1,000 GET (DynamoDB on demand, us-east-1, for items of up to 1 KB: a write of more is two)',
    );
  });

  it('has a line for the versions that the store keeps: how many, and what they add', () => {
    expect(versionsFinding(costReport(cluster), Number.POSITIVE_INFINITY)).toMatchObject({
      ...{ id: 'versions', status: 'warning' },
      detail:
        '2,592,000 versions more each month, 2.6 GB at 1 KB each: $0.06 a month more with each month, at $0.023 per GB (S3 Standard, us-east-1)',
    });
    expect(versionsFinding(costReport(cluster), 1)).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(
        /^86,400 versions at a time, 0\.086 GB at 1 KB each: less than a cent a month,/,
      ),
    });
  });
});
