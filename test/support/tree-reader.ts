import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock, systemRandom } from '../../src/core/base/system.js';
import type { ZooKeeper } from '../../src/zookeeper/client/zookeeper.js';
import { openZooKeeper } from '../../src/zookeeper/client/zookeeper-client.js';
import { type Assignment, decodeAssignment } from '../../src/zookeeper/discovery/layout.js';

/** Reads a discovery tree from outside, with a session of its own. */
export class TreeReader {
  readonly zookeeper: ZooKeeper;

  /** @param connect servers and chroot */
  constructor(connect: string) {
    this.zookeeper = openZooKeeper({ connect, clock: systemClock, random: systemRandom });
  }

  /** All znodes below `path` that have data, by their paths. */
  async all(path = '/discovery'): Promise<Map<string, Assignment>> {
    const found = new Map<string, Assignment>();
    const visit = async (at: string): Promise<void> => {
      const names = await this.zookeeper.children(at);
      await Promise.all((names ?? []).map((name) => visit(`${at}/${name}`)));
      const znode = at === path || names?.length ? undefined : await this.zookeeper.read(at);
      const assignment = znode && decodeAssignment(znode.data);
      if (assignment !== undefined) found.set(at, assignment);
    };
    await visit(path);
    return new Map([...found].sort());
  }

  /** What stands at one path; undefined when nothing does, or something else. */
  async at(path: string): Promise<Assignment | undefined> {
    const znode = await this.zookeeper.read(path);
    return znode && decodeAssignment(znode.data);
  }

  /**
   * Resolves, with the milliseconds it took, when `check` holds for what stands at a path.
   *
   * @throws Error with what stands there after `ms` milliseconds
   */
  async until(
    path: string,
    check: (assignment: Assignment | undefined) => boolean,
    ms = 30_000,
  ): Promise<number> {
    const begun = performance.now();
    for (;;) {
      const assignment = await this.at(path);
      const took = performance.now() - begun;
      if (check(assignment)) return took;
      if (took > ms) throw new Error(`after ${ms} ms there stands at ${path}: ${JSON.stringify(assignment)}`);
      await sleep(10);
    }
  }

  close(): Promise<void> {
    return this.zookeeper.close();
  }
}
