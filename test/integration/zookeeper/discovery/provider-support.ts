import { inject } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { Lease } from '../../../../src/core/lease/model/lease.js';
import { acquireFromZooKeeper } from '../../../../src/zookeeper/discovery/allocation/acquire-from-zookeeper.js';
import { runCli, type TestProcess } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { isAlive, newFolder } from '../../app/cli/run-support.js';
import { client } from './discovery-support.js';

/** Where a node id is given out. */
export const idPath = (nodeId: number) =>
  `/discovery/nodes/00/${(nodeId + 8).toString(16).toUpperCase().padStart(2, '0')}`;

/** Tasks and commands of one test, whose node ids are from one chroot of ZooKeeper. */
export class ProviderScene {
  readonly connect = `${inject('zookeeper').connect}${uniqueChroot('provider')}`;
  readonly tree = client(this.connect);
  /** Where all of them work: a store that is opened for want of another would leave its traces there. */
  readonly folder = newFolder();
  readonly provider = ['--provider', 'zookeeper', '--zookeeper', this.connect];
  /** What {@link end} does, the last one first. */
  readonly ends: (() => Promise<unknown>)[] = [];

  start(args: readonly string[], env: Record<string, string> = {}): TestProcess {
    return runCli(args, { cwd: this.folder, env });
  }

  /** A task whose command is at work when this resolves. */
  async hold(taskId: string, ...options: string[]): Promise<TestProcess & { readonly work: number }> {
    const script = 'echo "working with $NODE_ID as $$"; exec sleep 300';
    const task = this.start([
      'run',
      ...this.provider,
      '--task-id',
      taskId,
      ...options,
      '--',
      'sh',
      '-c',
      script,
    ]);
    const [, pid] = await task.waitForOutput(/working with \d+ as (\d+)\n/);
    return { ...task, work: Number(pid) };
  }

  async takeAllBut(nodeId: number): Promise<void> {
    const others = Array.from({ length: 248 }, (_, id) => id).filter((id) => id !== nodeId);
    await this.tree.ensurePath('/discovery/nodes/00');
    await Promise.all(others.map((id) => this.tree.create(idPath(id), '{"taskId":"other"}', 'ephemeral')));
  }

  /**
   * Waits for node id 0, all others of the only group being taken; the lease, and whether the process of the
   * one before was at work when it came.
   */
  async nextHolder(work: number): Promise<{ readonly lease: Lease; readonly busy: boolean }> {
    const common = { zookeeper: client(this.connect), clock: systemClock, random: systemRandom };
    const lease = await acquireFromZooKeeper({ ...common, taskId: 'next', maxGroups: 1 });
    const busy = isAlive(work);
    this.ends.push(() => lease.release());
    return { lease, busy };
  }

  /** For `afterEach`, before the clients are closed. */
  async end(): Promise<void> {
    for (const end of this.ends.splice(0).reverse()) await end();
  }
}
