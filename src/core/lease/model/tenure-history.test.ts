import { describe, expect, it } from 'vitest';
import { pastTenures, withPast } from './tenure-history.js';

const tenure = (version: number, history?: string, taskId = `task-${version}`) =>
  withPast({ version, taskId, acquiredAt: 1_000 * version, history }, 'released', 1_000 * version + 500.7);

describe('the tenures of an id', () => {
  it('are kept with who, when and how, the newest first', () => {
    const before = withPast({ version: 1, taskId: 'a/b,c;d', acquiredAt: 5 }, 'expired', 9);
    expect(before).toBe('1/5/9/x/a/b,c;d');
    expect(pastTenures(tenure(2, before))).toEqual([
      { version: 2, taskId: 'task-2', acquiredAt: 2_000, endedAt: 2_500, end: 'released' },
      { version: 1, taskId: 'a/b,c;d', acquiredAt: 5, endedAt: 9, end: 'expired' },
    ]);
  });

  it.each(['released', 'expired', 'evicted', 'retired'] as const)('may have been %s', (end) => {
    expect(pastTenures(withPast({ version: 1, taskId: 'a', acquiredAt: 1 }, end, 2))[0]?.end).toBe(end);
  });

  it('are eight at most, and take no more than 1,000 characters', () => {
    let history: string | undefined;
    for (let version = 1; version <= 20; version += 1) history = tenure(2 ** 40 + version, history);
    expect(pastTenures(history).map(({ version }) => version - 2 ** 40)).toEqual([
      20, 19, 18, 17, 16, 15, 14, 13,
    ]);
    for (let version = 1; version <= 20; version += 1) history = tenure(version, history, 'x'.repeat(128));
    expect(history?.length).toBeLessThanOrEqual(1_000);
    expect(pastTenures(history)).toHaveLength(8);
    expect(tenure(9, `${'1/1/1/r/y '.repeat(3)}1/1/1/r/${'z'.repeat(990)}`)).toMatch(
      /^9\/[^ ]+( 1\/1\/1\/r\/y){3}$/,
    );
  });

  it('take exactly 1,000 characters', () => {
    const rest = (length: number) => `1/1/1/r/y 1/1/1/r/${'z'.repeat(length)}`;
    const first = tenure(1).length;
    const most = 1_000 - first - ' '.length - rest(0).length;
    expect(tenure(1, rest(most))).toHaveLength(1_000);
    expect(tenure(1, rest(most + 1))).toHaveLength(first + ' 1/1/1/r/y'.length);
  });

  it('have long task ids shortened in the middle', () => {
    const taskId = `${'a'.repeat(60)}${'b'.repeat(60)}`;
    expect(pastTenures(tenure(1, undefined, taskId))[0]?.taskId).toBe(`${'a'.repeat(19)}..${'b'.repeat(19)}`);
    expect(pastTenures(tenure(1, undefined, 'c'.repeat(40)))[0]?.taskId).toBe('c'.repeat(40));
  });

  it('are in printable characters without blanks, whatever another program calls itself', () => {
    expect(tenure(1, undefined, 'a\nb é日\u0000')).toMatch(/\/r\/a\?b\?\?\?\?$/);
  });

  it.each([undefined, '', 'nonsense', '1/2/r/a', '1/2/3/q/a', '-1/2/3/r/a', '1/2/zzzzzzzzzzz/r/a'])(
    'leave out what is no tenure: %j',
    (text) => {
      expect(pastTenures(text)).toEqual([]);
    },
  );

  it('do not end before they began', () => {
    expect(pastTenures(withPast({ version: 1, taskId: 'a', acquiredAt: 9 }, 'evicted', 3))[0]?.endedAt).toBe(
      9,
    );
  });
});
