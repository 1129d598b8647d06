import { concurrently, REQUESTS_AT_ONCE } from '../../../core/base/concurrently.js';
import { explain } from '../../../core/base/errors.js';
import { median } from '../../../core/store/probe/probe.js';
import { parsePath } from '../../../node/monitor/discovery/discovery-snapshot.js';
import { isFault, type MultiOperation, type ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { barrierGroupOf } from '../../../zookeeper/discovery/allocation/width-barrier.js';
import {
  DISCOVERY_PATH,
  ENDPOINTS_PATH,
  NODES_PATH,
  parseHexPair,
  SERVICES_PATH,
  STAMPS_PATH,
} from '../../../zookeeper/discovery/tree-paths.js';
import { failureOf } from '../../kit/finding.js';
import type { Io } from '../../kit/terminal/io.js';

/** What is examined. */
interface RightsOptions extends Pick<Io, 'clock' | 'random'> {
  /** Without a chroot. */
  readonly zookeeper: ZooKeeper;
  /** The path of the tree; empty for the root. */
  readonly chroot: string;
  /** Whether node ids come from ZooKeeper alone. */
  readonly allocates: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** How often the scratch znode is read and written. */
const ROUNDS = 5;
/** How long the clean-up may take, in milliseconds. */
const CLEAN_UP_TIMEOUT_MS = 2_000;

/**
 * Tries what a node does in the tree: makes the chroot and the tree's root where they are absent; makes,
 * reads, changes and removes an ephemeral scratch znode `probe-…` below the root; lists every folder, and
 * makes and removes a znode in each, in one transaction, which no other client sees. What it made is gone
 * afterwards, also when it is interrupted.
 *
 * Where node ids come from ZooKeeper alone, it also tries to change what outlasts their holders, and may
 * belong to another user. Those transactions are bound to fail, so that nothing is changed.
 *
 * @throws `signal.reason` when it aborts
 */
export async function checkRights(options: RightsOptions): Promise<RightsCheck> {
  const check = new RightsCheck(options);
  try {
    await check.run();
  } finally {
    await check.cleanUp();
  }
  options.signal?.throwIfAborted();
  return check;
}

/** What {@link checkRights} finds out. Paths are whole ones, the chroot included. */
export class RightsCheck {
  /** Undefined for a connect string without a chroot, and where that could not be found out. */
  chroot: 'present' | 'absent' | undefined;
  /** What is not allowed, each with its path. */
  readonly denied: string[] = [];
  /** What else went wrong, each with its path. */
  readonly failed: string[] = [];
  /** What could not be removed afterwards. */
  readonly left: string[] = [];
  /**
   * The median times of requests that read, and that write, in milliseconds; undefined unless all of them got
   * through.
   */
  latencyMs: { readonly read: number; readonly write: number } | undefined;
  readonly #made: string[] = [];
  /** Of a znode that no other client has. */
  readonly #name: string;

  constructor(private readonly options: RightsOptions) {
    this.#name = `probe-${options.random.hex(8)}`;
  }

  async run(): Promise<void> {
    const { chroot, allocates } = this.options;
    if (!(await this.#makeRoot())) return;
    await this.#tryScratch(`${chroot}${DISCOVERY_PATH}/${this.#name}`);
    const groups = await this.#useBranch(NODES_PATH);
    for (const branch of [SERVICES_PATH, ENDPOINTS_PATH]) await this.#useBranch(branch);
    if (allocates) await this.#tryAllocation(groups);
  }

  /** Removes what was made, the scratch znode first, and nothing that another client uses by now. */
  async cleanUp(): Promise<void> {
    const { zookeeper, clock } = this.options;
    const until = clock.monotonic() + CLEAN_UP_TIMEOUT_MS;
    for (const path of this.#made.reverse()) {
      try {
        await zookeeper.remove(path, undefined, { timeoutMs: Math.max(1, until - clock.monotonic()) });
      } catch (error) {
        if (!isFault(failureOf(error), 'not-empty')) this.left.push(path);
      }
    }
  }

  /**
   * Does some work. True when it was done; keeps why not, otherwise: `<path> may not <what>`.
   * @throws `signal.reason` when it aborts
   */
  async #attempt(path: string, what: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      const failure = failureOf(error, this.options.signal);
      if (isFault(failure, 'no-auth')) this.denied.push(`${path} may not ${what}: no-auth`);
      else this.failed.push(`${path} cannot ${what}: ${explain(failure)}`);
      return false;
    }
  }

  /** Makes what is absent of the way to the tree's root. False where that is not possible. */
  async #makeRoot(): Promise<boolean> {
    const { chroot } = this.options;
    let path = '';
    for (const name of `${chroot}${DISCOVERY_PATH}`.split('/').slice(1)) {
      if (path !== '' && path === chroot) this.chroot = this.#made.length > 0 ? 'absent' : 'present';
      path += `/${name}`;
      if (!(await this.#attempt(path, 'be made', () => this.#ensure(path)))) return false;
    }
    return true;
  }

  /** Makes a znode unless it is there. */
  async #ensure(path: string): Promise<void> {
    const { zookeeper, signal } = this.options;
    try {
      if ((await zookeeper.read(path, { signal })) !== undefined) return;
    } catch (error) {
      // It is there, at least, and not for this user to read.
      if (isFault(error, 'no-auth')) return;
      throw error;
    }
    // Before it is known to be made: a lost answer may be that of a success.
    this.#made.push(path);
    try {
      await zookeeper.create(path, '', 'shared', { signal });
    } catch (error) {
      if (isFault(error, 'node-exists', 'no-auth')) this.#made.pop();
      if (!isFault(error, 'node-exists')) throw error;
    }
  }

  async #tryScratch(path: string): Promise<void> {
    const { zookeeper, signal } = this.options;
    const reads: number[] = [];
    const writes: number[] = [];
    this.#made.push(path);
    const made = await this.#attempt(path, 'be made', () =>
      this.#timed(writes, () => zookeeper.create(path, '0', 'ephemeral', { signal })),
    );
    if (!made) return;
    const used = await this.#attempt(path, 'be read and changed', async () => {
      for (let round = 1; round <= ROUNDS; round += 1) {
        await this.#timed(reads, () => zookeeper.read(path, { signal }));
        await this.#timed(writes, () => zookeeper.setData(path, String(round), undefined, { signal }));
      }
    });
    const removed = await this.#attempt(path, 'be removed', () =>
      this.#timed(writes, () => zookeeper.remove(path, undefined, { signal })),
    );
    if (used && removed) this.latencyMs = { read: median(reads), write: median(writes) };
  }

  async #timed(times: number[], work: () => Promise<unknown>): Promise<void> {
    const { clock } = this.options;
    const begun = clock.monotonic();
    await work();
    times.push(clock.monotonic() - begun);
  }

  /** Tries a branch of the tree and the folders in it. Resolves to the names of those. */
  async #useBranch(branch: string): Promise<readonly string[]> {
    const path = `${this.options.chroot}${branch}`;
    const folders = (await this.#useFolder(path)).filter(
      (name) => parsePath(`${branch}/${name}`).kind === 'folder',
    );
    await concurrently(folders, REQUESTS_AT_ONCE, (name) => this.#useFolder(`${path}/${name}`));
    return folders;
  }

  /**
   * Lists a folder, and makes and removes a znode in it. Resolves to the names in it; none where it is
   * absent, or may not be listed.
   */
  async #useFolder(folder: string): Promise<readonly string[]> {
    const { zookeeper, signal } = this.options;
    const path = `${folder}/${this.#name}`;
    let names: readonly string[] | undefined = [];
    await this.#attempt(folder, 'be listed', async () => {
      names = await zookeeper.children(folder, { signal });
    });
    const ephemeral = { type: 'create', path, data: '', mode: 'ephemeral' } as const;
    await this.#attempt(path, 'be made and removed', () => this.#multi(ephemeral, { type: 'remove', path }));
    return names ?? [];
  }

  /**
   * Tries to change what node ids from ZooKeeper alone leave behind: the record of the widest ids, the marks
   * of width barriers on groups, and the id time windows of each group, up to the first one that may not be
   * changed.
   */
  async #tryAllocation(groups: readonly string[]): Promise<void> {
    const { chroot } = this.options;
    const stamps = `${chroot}${STAMPS_PATH}`;
    const marks = groups.filter((name) => {
      const group = parseHexPair(name) ?? 0;
      return group > 0 && barrierGroupOf(group) === group;
    });
    const isHex = (name: string) => parseHexPair(name) !== undefined;
    const windows = await concurrently(
      (await this.#useFolder(stamps)).filter(isHex),
      REQUESTS_AT_ONCE,
      async (group) => {
        const names = await this.#useFolder(`${stamps}/${group}`);
        return names.filter(isHex).map((name) => `${stamps}/${group}/${name}`);
      },
    );
    const lists = [[stamps], ...marks.map((name) => [`${chroot}${NODES_PATH}/${name}`]), ...windows];
    await concurrently(lists, REQUESTS_AT_ONCE, async (paths) => {
      for (const path of paths)
        if (!(await this.#attempt(path, 'be changed', () => this.#feignChange(path)))) return;
    });
  }

  /**
   * In a transaction that is bound to fail afterwards: a server says what is wrong first. An absent znode may
   * be changed.
   */
  #feignChange(path: string): Promise<void> {
    const nowhere = `${this.options.chroot}${DISCOVERY_PATH}/${this.#name}/nowhere`;
    return this.#multi({ type: 'set', path, data: '' }, { type: 'check', path: nowhere });
  }

  /** Carries out a transaction; one that names an absent znode, as of a folder that has gone, is none. */
  async #multi(...operations: MultiOperation[]): Promise<void> {
    const { zookeeper, signal } = this.options;
    try {
      await zookeeper.multi(operations, { signal });
    } catch (error) {
      if (!isFault(error, 'no-node')) throw error;
    }
  }
}
