import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { startPostgresChaosStore } from '../../../chaos/postgres-chaos-store.js';
import { runChaos } from '../../../chaos/run-chaos.js';
import { failuresOf, summary } from '../../../chaos/summary.js';
import { killAll } from '../../../support/processes.js';
import { nonlinear } from '../../../support/programs/porcupine.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';

// `npm run chaos -- --store postgres` in a test: the faults of chaos.deep.test.ts, and those of a server with a
// synchronous standby.

let servers: Awaited<ReturnType<typeof startPostgresChaosStore>> | undefined;
afterEach(async () => {
  await killAll();
  removeFolders();
  await servers?.stop();
});

it.each([
  ['fail', false],
  ['fail, and fail-overs lose writes', true],
])(
  'a chaos run on PostgreSQL finds no id used by two tasks at a time, and no version twice, while servers %s',
  {
    timeout: 900_000,
  },
  async (_, lossy) => {
    servers = await startPostgresChaosStore(lossy);
    const seed = Date.now() % 2 ** 32;
    const history = join(newFolder(), 'acts');
    const result = await runChaos({
      ...{ store: servers.store, lengthMs: 180_000, patienceMs: 300_000, seed, history },
    });
    process.stderr.write(`chaos on PostgreSQL, seed ${seed}\n${summary(result)}\n`);
    expect(failuresOf(result)).toEqual([]);
    expect(await nonlinear(history)).toEqual([]);
    const kinds = new Set(result.faults.map(({ name }) => name));
    for (const fault of ['kill of the server', 'kill of a backend', 'fail-over'])
      expect(kinds).toContain(fault);
  },
);
