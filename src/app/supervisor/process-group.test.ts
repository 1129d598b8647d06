import { afterEach, expect, it, vi } from 'vitest';
import { systemProcessGroup } from './process-group.js';

const acts = vi.hoisted((): string[] => []);
/** The number of this process as /proc has it. */
const own = vi.hoisted(() => ({ pid: `${process.pid}` }));
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
  readlinkSync: () => own.pid,
  readFileSync: (path: keyof typeof STATS) => STATS[path],
}));

afterEach(() => {
  vi.restoreAllMocks();
  acts.length = 0;
  own.pid = `${process.pid}`;
});

const mockKill = () =>
  vi.spyOn(process, 'kill').mockImplementation((pid, signal) => {
    acts.push(`${signal} ${pid}`);
    return true;
  });

it('the group that is known is killed before the others are looked for: with many processes that takes a while', () => {
  mockKill();
  systemProcessGroup(7).signal('SIGKILL');
  expect(acts).toEqual(['SIGKILL -7', 'look', 'SIGKILL -8']);
});

it('a /proc of another namespace says nothing of the group: its numbers are those of others', () => {
  mockKill();
  own.pid = '1';
  const group = systemProcessGroup(7);
  group.signal('SIGKILL');
  expect([group.isAlive(), acts]).toEqual([true, ['SIGKILL -7', '0 -7']]);
});

it('the foreground is the first group alone', () => {
  mockKill();
  systemProcessGroup(7).signal('SIGINT', true);
  expect(acts).toEqual(['SIGINT -7']);
});
