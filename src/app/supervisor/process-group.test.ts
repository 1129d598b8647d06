import { afterEach, expect, it, vi } from 'vitest';
import { systemProcessGroup } from './process-group.js';

const acts = vi.hoisted((): string[] => []);
const STATS = {
  '/proc/7/stat': '7 (a) S 1 7 7 0',
  '/proc/8/stat': '8 (b) b) S 7 8 7 0',
  '/proc/9/stat': '9 (c) S 1 9 9 0',
};

vi.mock('node:fs', async (importOriginal) => ({
  ...(await importOriginal<typeof import('node:fs')>()),
  readdirSync: () => {
    acts.push('look');
    return ['7', '8', '9', 'self'];
  },
  readFileSync: (path: keyof typeof STATS) => STATS[path],
}));

afterEach(() => vi.restoreAllMocks());

it('the group that is known is killed before the others are looked for: with many processes that takes a while', () => {
  vi.spyOn(process, 'kill').mockImplementation((pid, signal) => {
    acts.push(`${signal} ${pid}`);
    return true;
  });
  systemProcessGroup(7).signal('SIGKILL');
  expect(acts).toEqual(['SIGKILL -7', 'look', 'SIGKILL -8']);
});
