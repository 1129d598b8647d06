import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { formatAct } from '../../../chaos/act.js';
import { etcdChaosStore, s3ChaosStore } from '../../../chaos/chaos-store.js';
import { runChaos } from '../../../chaos/run-chaos.js';
import { failuresOf, summary } from '../../../chaos/summary.js';
import { killAll } from '../../../support/processes.js';
import { nonlinear } from '../../../support/programs/porcupine.js';
import { type EtcdCluster, startEtcdCluster } from '../../../support/servers/etcd-cluster.js';

// `npm run chaos -- --shards 64 --tasks 8 --ids 10 --linear` in a test, for less long.

let folder: string;
let cluster: EtcdCluster;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-history-'));
  cluster = await startEtcdCluster();
});
afterEach(killAll);
afterAll(async () => {
  await cluster.stop();
  rmSync(folder, { recursive: true });
});

describe('64 shards, ten node ids and two locks of eight tasks', () => {
  it.each([
    ['S3', () => s3ChaosStore(inject('s3'))],
    ['etcd', async () => etcdChaosStore(cluster)],
  ])(
    'have one owner at a time and no token twice under faults, says the observer, and so does Porcupine: on %s',
    { timeout: 400_000 },
    async (name, store) => {
      const history = join(folder, name);
      const seed = Date.now() % 2 ** 32;
      const result = await runChaos({
        ...{ store: await store(), lengthMs: 40_000, patienceMs: 240_000, seed, history },
        ...{ shards: 64, tasks: 8, ids: 10 },
      });
      process.stderr.write(`chaos with shards on ${name}, seed ${seed}\n${summary(result)}\n`);
      expect(failuresOf(result)).toEqual([]);
      expect(await nonlinear(history)).toEqual([]);
    },
  );
});

describe('Porcupine', () => {
  const act = (version: number, taskId: string, at: number) =>
    formatAct({ nodeId: 7, version, taskId, kind: 'library', sequence: 0, before: at, after: at + 5 });
  const tenures = [act(1, 'one', 10), act(1, 'one', 20), act(2, 'two', 30), act(2, 'two', 40)];

  it.each([
    ['accepts tenures one after the other', tenures, []],
    [
      'accepts an act that was paused after its check',
      [...tenures.slice(1), '7 1 one library 9 12 90\n'],
      [],
    ],
    ['refuses an act after its tenure', [...tenures, act(1, 'one', 50)], ['node id 7: 5 acts are Illegal']],
    ['refuses a second owner', [...tenures, act(2, 'three', 50)], ['node id 7: 5 acts are Illegal']],
  ])('%s', async (_, acts, problems) => {
    const file = join(folder, 'planted');
    writeFileSync(file, acts.join(''));
    expect(await nonlinear(file)).toEqual(problems.map((problem) => `${problem}, says Porcupine`));
  });
});
