import { expect, it } from 'vitest';
import { workerScene } from './worker-scene.js';

const DURATION_MS = 2_000;

const scene = workerScene();

it.each([
  ['and it cannot be notified', []],
  ['and it blocks again after it was notified', ['heard']],
])(
  'a process whose main thread is blocked is killed before the deadline when the lease is lost %s',
  async (_, mode) => {
    const process = scene.program(
      'blocked-and-cut-off',
      `${scene.folder}/store`,
      String(DURATION_MS),
      ...mode,
    );
    const begun = Date.now();
    expect(await process.exit).toEqual({ code: null, signal: 'SIGKILL' });
    const last = Number(/(\d{13})\n$/.exec(process.stdout())?.[1]);
    expect(last - begun).toBeGreaterThan(DURATION_MS / 2);
    const renewedAtTheLatest = Number(/^(\d{13})$/m.exec(process.stdout())?.[1]);
    expect(last).toBeLessThan(renewedAtTheLatest + DURATION_MS);
  },
);
