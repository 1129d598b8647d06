import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import {
  type FleetStore,
  fleetStore,
  initCluster,
  startTask,
  storeOn,
  type Task,
} from '../../../support/fleet.js';
import { killAll } from '../../../support/processes.js';
import { startStoreServer } from '../../../support/stores/start-store-server.js';
import { SERVER_KINDS, type StoreServer } from '../../../support/stores/store-server.js';

// The rules of the choice are in preference.test.ts: this is that every store keeps what they need.

const KEYS = Array.from({ length: 20 }, (_, index) => `volume-${index}`);
const OPTIONS = ['--duration', '4s', '--sticky-wait', '30s'];
const SAYS_PREVIOUS = 'echo "previous $NODE_PREVIOUS"; sleep 300';

/** A task with its key, and what it was given. */
interface Keyed {
  readonly key: string;
  readonly task: Task;
  readonly id: number;
  readonly version: number;
  readonly previous: string;
}

async function start(store: FleetStore, key: string): Promise<Keyed> {
  const task = startTask(store, [...OPTIONS, '--sticky', key], SAYS_PREVIOUS);
  const [, previous = ''] = await task.waitForOutput(/^previous (\w+)$/m);
  return { key, task, ...(await task.started()), previous };
}

/** The tasks again, each as soon as the one with its key has ended by that signal, in another order. */
function restart(store: FleetStore, tasks: readonly Keyed[], signal: NodeJS.Signals): Promise<Keyed[]> {
  const shuffled = tasks
    .map((each) => [Math.random(), each] as const)
    .sort(([a], [b]) => a - b)
    .map(([, each]) => each);
  return Promise.all(
    shuffled.map(async ({ key, task }) => {
      task.kill(signal);
      await task.exit;
      return start(store, key);
    }),
  );
}

describe.each(['file', ...SERVER_KINDS] as const)('tasks with sticky keys, on %s', (kind) => {
  let server: StoreServer | undefined;
  let store: FleetStore;
  beforeAll(async () => {
    if (kind !== 'file') server = await startStoreServer(kind, inject('s3'));
    store = server === undefined ? await fleetStore('file', inject('s3')) : await storeOn(server);
  });
  afterEach(killAll);
  afterAll(async () => {
    await store.remove();
    await server?.stop();
  });

  it('get their node ids again after SIGTERM, and after SIGKILL', async () => {
    await initCluster(store, '--nodes', '40', '--duration', '4s');
    const first = await Promise.all(KEYS.map((key) => start(store, key)));
    const ids = new Map(first.map(({ key, id }) => [key, id]));
    expect(new Set(ids.values()).size).toBe(KEYS.length);
    let before = first;
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const after = await restart(store, before, signal);
      for (const { key, id, version, previous } of after) {
        const was = before.find((each) => each.key === key)?.version ?? 0;
        expect([signal, key, id, version, previous]).toEqual([signal, key, ids.get(key), was + 1, 'same']);
      }
      before = after;
    }
  });
});
