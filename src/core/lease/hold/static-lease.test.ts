import { expect, it } from 'vitest';
import { ordinalOf, staticLease } from './static-lease.js';

it('a static id has the same handle, and is valid until it is released', async () => {
  const lease = staticLease({ id: 3, taskId: 'web-3' });
  expect([
    lease.id,
    lease.version,
    lease.taskId,
    lease.deadline,
    lease.isValid(),
    lease.signal.aborted,
  ]).toEqual([3, 1, 'web-3', Number.POSITIVE_INFINITY, true, false]);
  await lease[Symbol.asyncDispose]();
  expect(lease.isValid()).toBe(false);
});

it('says what is wrong where it gets nothing, or a misspelt option', () => {
  expect(() => staticLease(undefined as never)).toThrow('options: expected an object, got undefined');
  expect(() => staticLease({ ids: 3, taskId: 'a' } as never)).toThrow(
    'options: expected one of id, taskId, version (the nearest is id), got "ids"',
  );
});

it.each([-1, 1.5, 65_528, Number.NaN])('refuses %d as a node id', (id) => {
  expect(() => staticLease({ id, taskId: 'a' })).toThrow(
    'node id: expected a whole number from 0 to 65527, got',
  );
  expect(staticLease({ id: 0, taskId: 'a' }).id).toBe(0);
});

it.each([0, 1.5, 2 ** 53])('refuses %d as a version', (version) => {
  expect(() => staticLease({ id: 1, taskId: 'a', version })).toThrow(
    'version: expected a whole number of at least 1, got',
  );
});

it('refuses a task id that is no name', () => {
  expect(() => staticLease({ id: 1, taskId: '' })).toThrow('taskId: ');
});

it.each([
  ['web-0', 0],
  ['my-db-12', 12],
  ['web-3.web.default.svc', 3],
])('takes the ordinal of the host name %s', (name, ordinal) => {
  expect(ordinalOf(name)).toBe(ordinal);
});

it.each(['web', 'web-', 'web-01', 'ip-10-0-0-x', 'web.default-3'])(
  'refuses the host name %s, which has none',
  (name) => {
    expect(() => ordinalOf(name)).toThrow('host name: expected a name that ends in an ordinal');
  },
);
