import { describe, expect, it } from 'vitest';
import { UnreadableReports } from './instance/instance-codec.js';

function reports(): { reports: UnreadableReports; reported: string[] } {
  const reported: string[] = [];
  return { reports: new UnreadableReports((path, problem) => reported.push(`${path} ${problem}`)), reported };
}

describe('reports of unreadable znodes', () => {
  it('name each znode once while its problem is the same', () => {
    const { reports: all, reported } = reports();
    for (const problem of ['is empty', 'is empty', 'is not JSON', 'is not JSON', 'is empty'])
      all.report('/a', problem);
    expect(reported).toEqual(['/a is empty', '/a is not JSON', '/a is empty']);
  });

  it('name it again when it was readable in between, or away', () => {
    const { reports: all, reported } = reports();
    all.report('/a', 'is empty');
    all.clear('/a');
    all.report('/a', 'is empty');
    expect(reported).toHaveLength(2);
  });

  it('come once for all users that share them, and again when one of them could read it in between', () => {
    const { reports: all, reported } = reports();
    const [cache, query] = [UnreadableReports.of(all), UnreadableReports.of(all)];
    for (const each of [cache, query]) each.report('/a', 'is empty');
    expect(reported).toHaveLength(1);
    query.clear('/a');
    for (const each of [cache, query]) each.report('/a', 'is empty');
    expect(reported).toHaveLength(2);
  });

  it('cover 1,000 znodes at most, until some of them are gone', () => {
    const { reports: all, reported } = reports();
    for (let i = 0; i < 5_000; i += 1) all.report(`/${i}`, 'is empty');
    expect(reported).toHaveLength(1_000);
    all.report('/0', 'is not JSON');
    expect(reported).toHaveLength(1_001);
    all.clear('/0');
    all.report('/5000', 'is empty');
    expect(reported).toHaveLength(1_002);
  });
});
