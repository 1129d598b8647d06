import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { StoreSession } from '../../../../src/core/lease/session/store-session.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { killAll, runProcess, type TestProcess } from '../../../support/processes.js';

/** Processes that hold leases on a store in a folder. */
export class WorkerScene {
  /** Another one for each test. */
  folder = '';

  get store(): string {
    return `file:${this.folder}/store`;
  }

  /** Runs a program of `test/fixtures/programs`. */
  program(name: string, ...args: readonly string[]): TestProcess {
    const file = fileURLToPath(new URL(`../../../fixtures/programs/${name}.mjs`, import.meta.url));
    return runProcess(process.execPath, [file, ...args]);
  }

  /** The store as an operator opens it next to the holders. */
  async openForOperator() {
    const store = await openStore(this.store, {
      clock: systemClock,
      random: systemRandom,
      requestTimeoutMs: 5_000,
    });
    return { session: new StoreSession(store, systemClock, 5_000), close: () => store.close() };
  }
}

/** A scene for the tests of a file. */
export function workerScene(): WorkerScene {
  const scene = new WorkerScene();
  beforeEach(async () => {
    scene.folder = await mkdtemp(join(tmpdir(), 'nodelease-worker-'));
  });
  afterEach(async () => {
    await killAll();
    await rm(scene.folder, { recursive: true });
  });
  return scene;
}
