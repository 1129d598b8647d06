import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { etcdChaosStore } from '../../../chaos/chaos-store.js';
import { runChaos } from '../../../chaos/run-chaos.js';
import { failuresOf, summary } from '../../../chaos/summary.js';
import { killAll } from '../../../support/processes.js';
import { nonlinear } from '../../../support/programs/porcupine.js';
import { type EtcdCluster, startEtcdCluster } from '../../../support/servers/etcd-cluster.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';

// `npm run chaos -- --store etcd` in a test: the faults of chaos.deep.test.ts, and members that are killed,
// paused and cut off.

let cluster: EtcdCluster;
beforeAll(async () => {
  cluster = await startEtcdCluster();
});
afterAll(async () => {
  await killAll();
  removeFolders();
  await cluster.stop();
});

it('a chaos run on etcd finds no id used by two tasks at a time, and no version twice, while members fail', {
  timeout: 600_000,
}, async () => {
  const seed = Date.now() % 2 ** 32;
  const history = join(newFolder(), 'acts');
  const result = await runChaos({
    store: etcdChaosStore(cluster),
    lengthMs: 180_000,
    patienceMs: 300_000,
    seed,
    history,
  });
  process.stderr.write(`chaos on etcd, seed ${seed}\n${summary(result)}\n`);
  expect(failuresOf(result)).toEqual([]);
  expect(await nonlinear(history)).toEqual([]);
  const kinds = new Set(result.faults.map(({ name }) => name));
  for (const fault of ['kill', 'pause', 'isolate'])
    expect([...kinds].join()).toContain(`${fault} of a member`);
});
