import { describe, expect, it } from 'vitest';
import { between, decodeRevision, type KeyChange, NO_REVISION } from './history.js';

const revision = (number: number, ...changes: KeyChange[]) => ({
  ...NO_REVISION,
  revision: number,
  base: number - 1,
  id: 'x',
  changes,
});

describe('changes of several revisions', () => {
  const history = [
    revision(2, { key: 'a', old: '1', new: '2' }, { key: 'b', old: '2', new: '1' }),
    revision(1, { key: 'a', old: null, new: '1' }, { key: 'b', old: '1', new: '2' }),
  ];

  it('are one change of each key, and none where it is as before', () => {
    expect(between(history, 0)).toEqual([{ key: 'a', old: null, new: '2' }]);
    expect(between(history, 2, 0)).toEqual([{ key: 'a', old: '2', new: null }]);
    expect(between(history, 1, 1)).toEqual([]);
  });

  it('are refused where a revision is missing', () => {
    expect(() => between(history, 3)).toThrow('there is no revision 3: the history goes from 0 to 2');
    expect(() => between([revision(3), revision(1)], 0)).toThrow(
      'revisions between 0 and 3 are missing from the history',
    );
  });
});

describe('the data of a revision', () => {
  it('is refused where it is something else', () => {
    const record = revision(1, { key: 'a', old: null, new: '1' });
    const data = (value: unknown) => Buffer.from(JSON.stringify(value));
    expect(decodeRevision('/r', data({ ...record, more: 1 }))).toEqual(record);
    for (const wrong of [
      null,
      1,
      [],
      {},
      { ...record, revision: '1' },
      { ...record, author: 1 },
      { ...record, id: undefined },
    ])
      expect(() => decodeRevision('/r', data(wrong))).toThrow(
        '/r is damaged: expected the JSON of a revision',
      );
    for (const changes of [undefined, 1, [null], [{ key: 'a' }], [{ key: 'a', old: 1, new: null }]])
      expect(() => decodeRevision('/r', data({ ...record, changes }))).toThrow('/r is damaged');
    expect(() => decodeRevision('/r', Buffer.from('{'))).toThrow('/r is damaged');
  });
});
