import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { isFault, type ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import { openZooKeeper } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { encodeAssignment } from '../../../../src/zookeeper/discovery/assignment.js';
import { NodeWatcher } from '../../../../src/zookeeper/discovery/node-watcher.js';
import { entryPath, groupPath } from '../../../../src/zookeeper/discovery/tree-paths.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { seededRandom } from '../../../support/virtual-clock.js';
import { uniqueChroot } from '../../../support/zookeeper.js';

const NODES = 2_000;
/**
 * What a fresh watcher may take to see them all, in milliseconds; on a busy machine, as many times what
 * reading them takes there.
 */
const SIGHT_MS = 3_000;
const SIGHT_READS = 3;
/** The load: changes a second, and for how long in seconds. */
const RATE = 50;
const SECONDS = 20;

let connect: string;
const opened: (() => unknown)[] = [];

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('scale')}`;
});
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

function client(): ZooKeeper {
  const zookeeper = openZooKeeper({ connect, clock: systemClock, random: systemRandom });
  opened.push(() => zookeeper.close());
  return zookeeper;
}

function watch(): NodeWatcher {
  const watcher = new NodeWatcher({ zookeeper: client(), clock: systemClock });
  opened.push(() => watcher.close());
  return watcher;
}

const pathOf = (nodeId: number) => entryPath({ kind: 'node' }, nodeId);
const dataOf = (nodeId: number, version: number) =>
  encodeAssignment({ taskId: `task-${nodeId}-${version}`, nodeId, version });

/** Registers node ids 0 … n-1 at version 1. */
async function register(zookeeper: ZooKeeper, n: number): Promise<void> {
  for (let group = 0; group <= (n + 7) >> 8; group += 1) await zookeeper.ensurePath(groupPath(group));
  for (let first = 0; first < n; first += 200) {
    const ids = Array.from({ length: Math.min(200, n - first) }, (_, i) => first + i);
    await Promise.all(ids.map((id) => zookeeper.create(pathOf(id), dataOf(id, 1), 'ephemeral')));
  }
}

/** The nodes that really stand in the tree. */
async function tree(): Promise<Record<string, unknown>> {
  const reader = new TreeReader(connect);
  const found = await reader.all('/discovery/nodes').finally(() => reader.close());
  return Object.fromEntries([...found].map(([path, assignment]) => [path, assignment]));
}

const seenBy = (watcher: NodeWatcher) =>
  Object.fromEntries(
    [...watcher.nodes.values()].map((assignment) => [pathOf(assignment.nodeId), assignment] as const).sort(),
  );

describe(`a tree of ${NODES} nodes`, () => {
  it(`is seen whole by a fresh watcher within ${SIGHT_MS} ms, its connection included`, async () => {
    await register(client(), NODES);
    const asked = performance.now();
    expect(Object.keys(await tree())).toHaveLength(NODES);
    const begun = performance.now();
    const readMs = begun - asked;
    const watcher = watch();
    await watcher.ready;
    const tookMs = performance.now() - begun;
    expect(Object.keys(watcher.knownVersions())).toHaveLength(NODES);
    expect(tookMs).toBeLessThan(Math.max(SIGHT_MS, SIGHT_READS * readMs));
    process.stdout.write(`${NODES} nodes were seen after ${Math.round(tookMs)} ms\n`);
  });

  it(`is what its watchers see after ${RATE} changes a second for ${SECONDS} s`, async () => {
    const writer = client();
    await register(writer, NODES);
    const watchers = [watch(), watch()];
    await Promise.all(watchers.map(({ ready }) => ready));
    const reported = watchers.map(() => 0);
    watchers.forEach((watcher, i) => {
      watcher.onChange((ids) => {
        reported[i] = (reported[i] ?? 0) + ids.size;
      });
    });

    // Changes of every kind, drawn from a seed; a group is emptied and removed now and then, and comes again.
    const random = seededRandom(4);
    const pick = (n: number) => Math.floor(random.next() * n);
    const versions = new Map(Array.from({ length: NODES }, (_, id) => [id, 1]));
    const present = new Set(versions.keys());
    const begun = performance.now();
    let changes = 0;
    /** How long this waited for the server, in milliseconds. */
    let askedMs = 0;
    const change = async (id: number) => {
      changes += 1;
      const version = (versions.get(id) ?? 0) + 1;
      versions.set(id, version);
      if (!present.has(id)) {
        present.add(id);
        return writer.createWithParents(pathOf(id), dataOf(id, version), 'ephemeral');
      }
      const kind = pick(3);
      if (kind === 0) return writer.setData(pathOf(id), dataOf(id, version));
      if (kind === 1) {
        present.delete(id);
        return writer.remove(pathOf(id));
      }
      return writer.multi([
        { type: 'remove', path: pathOf(id) },
        { type: 'create', path: pathOf(id), data: dataOf(id, version), mode: 'ephemeral' },
      ]);
    };
    const removeGroup = async (group: number) => {
      const ids = [...present].filter((id) => (id + 8) >> 8 === group);
      for (const id of ids) present.delete(id);
      await Promise.all(ids.map((id) => writer.remove(pathOf(id))));
      try {
        await writer.remove(groupPath(group));
      } catch (error) {
        if (!isFault(error, 'not-empty')) throw error;
      }
    };
    for (let tick = 0; tick < RATE * SECONDS; tick += 1) {
      const asked = performance.now();
      await change(pick(NODES));
      if (tick % (5 * RATE) === 4 * RATE) await removeGroup(pick((NODES + 7) >> 8));
      askedMs += performance.now() - asked;
      const dueAt = begun + ((tick + 1) * 1_000) / RATE;
      await systemClock.sleep(dueAt - performance.now());
    }
    const tookS = (performance.now() - begun) / 1_000;
    // As many a second as there should be, or as many as a busy machine can make.
    expect(Math.max(changes / tookS / RATE, askedMs / 1_000 / tookS)).toBeGreaterThan(0.9);

    const truth = await tree();
    expect(Object.keys(truth)).toHaveLength(present.size);
    for (const watcher of watchers) await expect.poll(() => seenBy(watcher)).toEqual(truth);
    for (const heard of reported) expect(heard).toBeGreaterThan(changes / 2);
  });
});
