import { describe, expect, it } from 'vitest';
import type { DataEntry, DatumHead } from '../../zookeeper/shared-data/data-report.js';
import { type DataItem, dataChange, dataChangeText } from './data-watch.js';

const head: DatumHead = {
  path: '/m/data/a',
  name: 'limits',
  scope: 'eu',
  kind: 'map',
  lifespan: 'persistent',
  problem: null,
};
const text = (value: string) => ({ type: 'String', value });
const entry: DataEntry = {
  ...{ path: '/m/data/a/b', key: text('k'), scalar: { type: 'Integer', value: '1' }, place: 0 },
  ...{ owner: null, node: null, version: '5.0', bytes: 9, problem: null },
};
const item = (facts: Partial<DataEntry> = {}, of: Partial<DatumHead> = {}): DataItem => ({
  head: { ...head, ...of },
  entry: { ...entry, ...facts },
});

describe('a change of shared data', () => {
  it('is none where the same was written again', () => {
    expect(dataChange(item(), item({ version: '5.1' }))).toBeUndefined();
    expect(dataChange(undefined, undefined)).toBeUndefined();
  });

  it('is reported with the value before and after', () => {
    const textOf = (before: DataItem | undefined, after: DataItem | undefined) => {
      const change = dataChange(before, after);
      return change && dataChangeText(change);
    };
    const named = 'map "limits" of scope "eu" entry "k"';
    expect(textOf(undefined, item())).toBe(`${named} added: Integer 1`);
    expect(textOf(item(), item({ scalar: text('one') }))).toBe(`${named} changed: Integer 1 → String one`);
    expect(textOf(item(), undefined)).toBe(`${named} removed: Integer 1`);
    expect(textOf(item(), item({ place: 2, owner: '0a' }))).toBe(
      `${named} changed: Integer 1, place 2 of its collision chain, session 0a`,
    );
    expect(textOf(undefined, { head, entry: null })).toBe('map "limits" of scope "eu" added');
    expect(textOf(undefined, item({ key: null }, { kind: 'scalar', scope: '' }))).toBe(
      'scalar "limits" added: Integer 1',
    );
  });

  it('is reported by the path for znodes without data', () => {
    const foreign = { ...head, name: null, scope: null, kind: null, problem: 'no shared data: x' };
    const change = dataChange(undefined, { head: foreign, entry: null });
    expect(change && dataChangeText(change)).toBe('/m/data/a added: no shared data: x');
    const damaged = dataChange(item(), item({ key: null, scalar: null, problem: 'no element of a map: x' }));
    expect(damaged && dataChangeText(damaged)).toBe(
      'map "limits" of scope "eu" /m/data/a/b changed: Integer 1 → no element, no element of a map: x',
    );
  });
});
