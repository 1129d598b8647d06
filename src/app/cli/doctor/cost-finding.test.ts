import { describe, expect, it } from 'vitest';
import { costFinding, costReport, parsePrices, versionsFinding } from './cost-finding.js';

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
    expect(costFinding(report, true).detail).toBe(
      '20 node ids, when all are held, with a duration of 60s, the settings read every 10m: ' +
        '2,592,000 writes (PUT) and 86,400 reads (GET) a month to renew them, $12.99, $0.65 for each of them, ' +
        'at $0.005 per 1,000 PUT and $0.0004 per 1,000 GET (S3 Standard, us-east-1)',
    );
  });

  it('uses the given prices, and the list price for a missing one', () => {
    const report = costReport(
      { size: 1, durationMs: 86_400_000 },
      { prices: parsePrices('0.00000004', undefined) },
    );
    expect(report).toMatchObject({ putPrice: 0.000_000_04, getPrice: 0.0004, dollarsPerMonth: 0.000036 });
    expect(costFinding(report, true).detail).toBe(
      '1 node id, when it is held, with a duration of 24h: 90 writes (PUT) and 90 reads (GET) a month to renew them, less than a cent, ' +
        'at $0.00000004 per 1,000 PUT and $0.0004 per 1,000 GET',
    );
    expect(costReport(cluster, { prices: parsePrices('0', '0') }).dollarsPerMonth).toBe(0);
    expect(parsePrices(undefined, undefined)).toBeUndefined();
    expect(parsePrices(undefined, '1000')).toEqual({ put: 0.005, get: 1_000 });
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

  it.each(['', '-1', '1e-3', '0,005', '$1', '.5', '1000.01', 'NaN', 'Infinity', '0x1'])(
    'refuses the price %j, naming the option',
    (text) => {
      expect(() => parsePrices(text, undefined)).toThrow(
        /^--put-price: expected dollars per 1,000 requests, such as 0\.005/,
      );
      expect(() => parsePrices(undefined, text)).toThrow(/^--get-price: expected dollars per 1,000 requests/);
    },
  );
});
