import { expect, it } from 'vitest';
import { drainingText } from './draining.js';

const holder = (id: number) => ({ id, version: 1, taskId: `task-${id}` });

it('who holds ids that the cluster has given up is named, and counted where there are many', () => {
  expect(drainingText({ draining: [] })).toBeUndefined();
  expect(drainingText({ draining: [holder(8), { ...holder(9), taskId: null }] })).toBe('draining: 8 by task-8, 9 by a task without a name');
  expect(drainingText({ draining: Array.from({ length: 100 }, (_, index) => holder(8 + index)) })).toBe(
    'draining: 8 by task-8, 9 by task-9, 10 by task-10 and 97 more',
  );
});

it('a server that does not know of them says nothing of them', () => {
  expect(drainingText({})).toBeUndefined();
});
