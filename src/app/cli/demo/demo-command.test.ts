import { afterEach, expect, it, vi } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { nodeApp } from '../../http/node-app.js';
import { runCommandLine } from '../commands/command-line.js';
import { actsPart } from './demo-command.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

it('says which folder it needs where temporary files cannot be written', async () => {
  vi.stubEnv('TMPDIR', '/nonexistent');
  const io = capturedIo();
  expect(await runCommandLine(['demo'], io, '1.2.3')).toBe(64);
  expect(io.complaints()).toMatch(
    /^nodelease: TMPDIR: expected a folder that this user may write to \(ENOENT.*\), got "\/nonexistent" \[CONFIG_INVALID\]\n$/,
  );
});

it('lets pages of its own origin, and programs, act on the tasks, and nothing else', async () => {
  const asked: unknown[] = [];
  const part = actsPart((act, id) => {
    asked.push([act, id]);
    return id !== 2;
  });
  const app = nodeApp({ clock: new VirtualClock(), parts: [part] });
  const statusOf = async (path: string, init: RequestInit = { method: 'POST' }) =>
    (await app.request(`http://127.0.0.1:7070${path}`, init)).status;
  const from = (origin: string) => ({ method: 'POST', headers: { origin } });
  expect(await statusOf('/api/acts/kill/0')).toBe(204);
  expect(await statusOf('/api/acts/freeze/1', from('http://127.0.0.1:7070'))).toBe(204);
  expect(await statusOf('/api/acts/stop/2')).toBe(409);
  expect(asked).toEqual([
    ['kill', 0],
    ['freeze', 1],
    ['stop', 2],
  ]);
  expect(await statusOf('/api/acts/kill/0', from('http://example.com'))).toBe(403);
  expect(await statusOf('/api/acts/kill/3')).toBe(400);
  expect(await statusOf('/api/acts/drop/0')).toBe(404);
  expect(await statusOf('/api/acts/kill/0', { method: 'GET' })).toBe(405);
  expect(asked).toHaveLength(3);
});
