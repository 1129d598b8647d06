import { afterEach, expect, test } from 'vitest';
import { ProcessHandle } from './process-handle.js';
import { killAll, runProcess } from './processes.js';

afterEach(killAll);

test('a process is reported as alive, stopped and ended, and gets no signal once it has ended', async () => {
  const sleeper = runProcess('sleep', ['60']);
  const handle = new ProcessHandle(sleeper.pid);
  expect([handle.isAlive(), handle.isStopped()]).toEqual([true, false]);
  await handle.pause();
  expect(handle.isStopped()).toBe(true);
  handle.signal('SIGCONT');
  await expect.poll(() => handle.isStopped()).toBe(false);
  handle.signal('SIGKILL');
  await sleeper.exit;
  expect([handle.isAlive(), handle.signal('SIGTERM')]).toEqual([false, false]);
});
