import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { acquireLock } from '../../../node/locks/store-lock.js';
import { acquire } from '../../../node/runtime/acquire.js';
import { runCommandLine } from './command-line.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-tune-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function nodelease(...args: string[]) {
  const io = capturedIo();
  const code = await runCommandLine(
    [...args, '--store', `file:${folder}`],
    { ...io, env: { NODELEASE_DURATION: '7s' } },
    '1.2.3',
  );
  return { code, answer: io.answer(), complaints: io.complaints() };
}

describe('nodelease tune', () => {
  it('gives the cluster another duration, whatever the variables of tasks say, and names who has not followed', async () => {
    await nodelease('init', '--nodes', '2', '--duration', '15s');
    await using lease = await acquire({ store: `file:${folder}`, taskId: 'web' });
    expect(await nodelease('tune', '--duration', '60s', '--grace', '2s')).toEqual({
      code: 0,
      answer:
        `file:${folder} has duration 60s, grace 2s now, and had duration 15s, grace 1s\n` +
        '1 holder with another duration still: 0 (web, 15.0s)\n',
      complaints: '',
    });
    expect((await nodelease('status')).answer).toContain(
      '1 holder with another duration still: 0 (web, 15.0s)',
    );
    const again = await nodelease('tune', '--duration', '60s', '--json');
    const times = { durationMs: 60_000, graceMs: 2_000 };
    expect(JSON.parse(again.answer)).toEqual({
      store: `file:${folder}`,
      from: times,
      to: times,
      late: [{ id: 0, taskId: 'web', durationMs: 15_000 }],
    });
    await lease.release();
    expect((await nodelease('tune', '--duration', '60s')).answer).toBe(
      `file:${folder} has duration 60s, grace 2s already\nevery holder has followed\n`,
    );
    const { answer } = await nodelease('history', '--json');
    const from = { durationMs: 15_000, graceMs: 1_000 };
    expect(JSON.parse(answer).tuned).toEqual([{ at: expect.any(Number), from, to: times }]);
    expect((await nodelease('history')).answer).toMatch(
      /TUNED .*\n20\S+Z +duration 15s, grace 1s +duration 60s/,
    );
  });

  it('gives a lock another duration, and leaves the cluster as it is', async () => {
    await nodelease('init', '--duration', '15s');
    await using _ = await acquireLock('nightly', { store: `file:${folder}`, durationMs: 20_000 });
    const { answer } = await nodelease('tune', '--lock', 'nightly', '--duration', '30s', '--json');
    expect(JSON.parse(answer)).toMatchObject({ from: { durationMs: 20_000 }, to: { durationMs: 30_000 } });
    expect((await nodelease('status')).answer).toContain('duration 15s');
  });

  it('names its option where the store does not keep up with the renewals', async () => {
    const io = capturedIo();
    const store = ['--store', 'gs://bucket/p', '--endpoint', 'http://127.0.0.1:9'];
    expect(await runCommandLine(['tune', '--duration', '2s', ...store], { ...io, env: {} }, '1.2.3')).toBe(
      64,
    );
    expect(io.complaints()).toMatch(
      /^nodelease: --duration: expected at least 3000 ms: the store .*, got "2s"/,
    );
  });

  it.each([
    ['no duration', [], 64, 'no duration given: expected --duration 60s'],
    ['a duration that no lease has', ['--duration', '999ms'], 64, '--duration: expected at least 1s'],
    ['a name that no lock has', ['--duration', '5s', '--lock', 'a/b'], 64, 'name of the lock: expected'],
    [
      'a lock that no task has used',
      ['--duration', '5s', '--lock', 'none'],
      69,
      'No task has used lock none yet',
    ],
    [
      'a grace that clocks outrun',
      ['--duration', '60s', '--grace', '9ms'],
      64,
      '--grace: expected at least 60ms',
    ],
    ['no cluster', ['--duration', '5s'], 69, 'There is no cluster at'],
  ])('answers %s with its reason', async (_, args, expected, complaint) => {
    const { code, complaints } = await nodelease('tune', ...args);
    expect([code, complaints]).toEqual([expected, expect.stringContaining(`nodelease: ${complaint}`)]);
  });
});
