import type { Clock } from '../../base/clock.js';
import { concurrently } from '../../base/concurrently.js';
import { explain, NodeLeaseError } from '../../base/errors.js';
import { barrierGroupOf } from '../../discovery/allocation/width-barrier.js';
import { DISCOVERY_PATH, ENDPOINTS_PATH, NODES_PATH, parseHexPair, SERVICES_PATH, STAMPS_PATH } from '../../discovery/tree-paths.js';
import { parsePath } from '../../monitor/discovery-snapshot.js';
import type { MultiOperation, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault } from '../../zookeeper/zookeeper-error.js';
import type { Io } from '../terminal/io.js';

/** What {@link checkRights} found out. Paths are whole ones, the chroot included. */
export interface RightsReport {
  /** Undefined for a connect string without a chroot, and where that could not be found out. */
  readonly chroot: 'present' | 'absent' | undefined;
  /** What is not allowed, each with its path. */
  readonly denied: readonly string[];
  /** What else went wrong, each with its path. */
  readonly failed: readonly string[];
  /** What could not be removed afterwards. */
  readonly left: readonly string[];
  /** The median times of requests that read, and that write, in milliseconds; undefined unless all of them got through. */
  readonly latencyMs: { readonly read: number; readonly write: number } | undefined;
}

/** What is to be found out. */
export interface RightsQuestion {
  /** Below which the tree stands; empty for none. */
  readonly chroot: string;
  /** Whether node ids come from ZooKeeper alone. */
  readonly allocates: boolean;
}

/** How often the scratch znode is read and written. */
const ROUNDS = 5;
/** How long the clean-up may take, in milliseconds. */
const CLEAN_UP_TIMEOUT_MS = 2_000;
/** Maximum number of znodes that are tried at once. */
const CONCURRENCY = 16;

/**
 * Tries what a node does in the tree: makes the chroot and the tree's root where they are absent, makes, reads, changes and removes an
 * ephemeral scratch znode `probe-…` below the root, lists every folder, and makes and removes a znode in each, in one transaction, so that
 * no other client ever sees it. What it made is gone afterwards, also when it is interrupted.
 *
 * Where node ids come from ZooKeeper alone, it also tries to change what outlasts their holders, and may belong to another user. It does so in
 * transactions that are bound to fail afterwards, so that nothing is changed.
 *
 * @param zookeeper without a chroot of its own
 * @throws `signal.reason` when it aborts
 */
export async function checkRights(
  zookeeper: ZooKeeper,
  question: RightsQuestion,
  io: Pick<Io, 'clock' | 'random'>,
  signal?: AbortSignal,
): Promise<RightsReport> {
  const check = new RightsCheck(zookeeper, question, `probe-${io.random.hex(8)}`, io.clock, signal);
  try {
    await check.run();
  } finally {
    await check.cleanUp();
  }
  signal?.throwIfAborted();
  return check.report;
}

class RightsCheck {
  readonly #denied: string[] = [];
  readonly #failed: string[] = [];
  readonly #made: string[] = [];
  readonly #left: string[] = [];
  #chrootState: RightsReport['chroot'];
  #latencyMs: RightsReport['latencyMs'];

  /** @param name of a znode that no other client has */
  constructor(
    private readonly zookeeper: ZooKeeper,
    private readonly question: RightsQuestion,
    private readonly name: string,
    private readonly clock: Clock,
    private readonly signal: AbortSignal | undefined,
  ) {}

  get report(): RightsReport {
    return { chroot: this.#chrootState, denied: this.#denied, failed: this.#failed, left: this.#left, latencyMs: this.#latencyMs };
  }

  async run(): Promise<void> {
    const { chroot, allocates } = this.question;
    const root = `${chroot}${DISCOVERY_PATH}`;
    if (chroot !== '' && !(await this.#makeChroot())) return;
    if (!(await this.#attempt(root, 'be made', () => this.#ensure(root)))) return;
    await this.#tryScratch(root);
    const folders = await this.#foldersIn([NODES_PATH, SERVICES_PATH, ENDPOINTS_PATH], (path) => parsePath(path).kind === 'folder');
    await this.#useFolders(folders);
    if (allocates) await this.#tryAllocation(folders);
  }

  /** Removes what was made, the scratch znode first, and nothing that another client uses by now. */
  async cleanUp(): Promise<void> {
    const until = this.clock.monotonic() + CLEAN_UP_TIMEOUT_MS;
    for (const path of this.#made.reverse()) {
      try {
        await this.zookeeper.remove(path, undefined, { timeoutMs: Math.max(1, until - this.clock.monotonic()) });
      } catch (error) {
        if (!(error instanceof NodeLeaseError)) throw error;
        if (!isFault(error, 'not-empty')) this.#left.push(path);
      }
    }
  }

  /**
   * Does some work. True when it was done; keeps why not, otherwise: `<path> may not <what>`.
   *
   * @throws `signal.reason` when it aborts
   */
  async #attempt(path: string, what: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.signal?.throwIfAborted();
      if (!(error instanceof NodeLeaseError)) throw error;
      if (isFault(error, 'no-auth')) this.#denied.push(`${path} may not ${what}: no-auth`);
      else this.#failed.push(`${path} cannot ${what}: ${explain(error)}`);
      return false;
    }
  }

  async #makeChroot(): Promise<boolean> {
    const names = this.question.chroot.split('/').slice(1);
    let made = false;
    for (const [index] of names.entries()) {
      const path = `/${names.slice(0, index + 1).join('/')}`;
      const passed = await this.#attempt(path, 'be made', async () => {
        made = (await this.#ensure(path)) || made;
      });
      if (!passed) return false;
    }
    this.#chrootState = made ? 'absent' : 'present';
    return true;
  }

  /** Makes a znode unless it is there. True when it was made. */
  async #ensure(path: string): Promise<boolean> {
    const { zookeeper, signal } = this;
    try {
      if ((await zookeeper.read(path, { signal })) !== undefined) return false;
    } catch (error) {
      // It is there, at least, and not for this user to read.
      if (isFault(error, 'no-auth')) return false;
      throw error;
    }
    try {
      // Before it is known to be made: a lost answer may be that of a success.
      this.#made.push(path);
      await zookeeper.create(path, '', 'shared', { signal });
      return true;
    } catch (error) {
      if (!isFault(error, 'node-exists', 'no-auth')) throw error;
      this.#made.pop();
      if (isFault(error, 'no-auth')) throw error;
      return false;
    }
  }

  async #tryScratch(root: string): Promise<void> {
    const { zookeeper } = this;
    const path = `${root}/${this.name}`;
    const reads: number[] = [];
    const writes: number[] = [];
    const call = { signal: this.signal };
    const made = await this.#attempt(path, 'be made', () => {
      this.#made.push(path);
      return this.#timed(writes, () => zookeeper.create(path, '0', 'ephemeral', call));
    });
    if (!made) return;
    const used = await this.#attempt(path, 'be read and changed', async () => {
      for (let round = 1; round <= ROUNDS; round += 1) {
        await this.#timed(reads, () => zookeeper.read(path, call));
        await this.#timed(writes, () => zookeeper.setData(path, String(round), undefined, call));
      }
    });
    const removed = await this.#attempt(path, 'be removed', () => this.#timed(writes, () => zookeeper.remove(path, undefined, call)));
    if (used && removed) this.#latencyMs = { read: median(reads), write: median(writes) };
  }

  async #timed<T>(times: number[], work: () => Promise<T>): Promise<T> {
    const begun = this.clock.monotonic();
    const result = await work();
    times.push(this.clock.monotonic() - begun);
    return result;
  }

  /** The branches that there are, and the folders in them, as whole paths. `isFolder` is asked about paths within the chroot. */
  async #foldersIn(branches: readonly string[], isFolder: (path: string) => boolean): Promise<string[]> {
    const found: string[] = [];
    for (const branch of branches) {
      const path = `${this.question.chroot}${branch}`;
      await this.#attempt(path, 'be listed', async () => {
        const names = await this.zookeeper.children(path, { signal: this.signal });
        if (names !== undefined)
          found.push(path, ...names.filter((name) => isFolder(`${branch}/${name}`)).map((name) => `${path}/${name}`));
      });
    }
    return found;
  }

  /** Lists folders, and makes and removes a znode in each, in one transaction. */
  async #useFolders(folders: readonly string[]): Promise<void> {
    await concurrently(folders, CONCURRENCY, async (folder) => {
      const path = `${folder}/${this.name}`;
      await this.#attempt(folder, 'be listed', () => this.zookeeper.children(folder, { signal: this.signal }));
      // The folder may have gone meanwhile, as empty ones may.
      await this.#attempt(path, 'be made and removed', () =>
        this.#multi({ type: 'create', path, data: '', mode: 'ephemeral' }, { type: 'remove', path }),
      );
    });
  }

  /** Tries to change what node ids from ZooKeeper alone leave behind: records, marks of width barriers, id time windows up to the first one that may not be. */
  async #tryAllocation(folders: readonly string[]): Promise<void> {
    const { chroot } = this.question;
    const stamps = `${chroot}${STAMPS_PATH}`;
    const own = await this.#foldersIn([STAMPS_PATH], (path) => numberBelow(STAMPS_PATH, path) !== undefined);
    await this.#useFolders(own);
    const marks = folders.filter((path) => {
      const group = numberBelow(`${chroot}${NODES_PATH}`, path) ?? 0;
      return group > 0 && barrierGroupOf(group) === group;
    });
    const lists = [
      ...marks.map((path) => [path]),
      ...(await Promise.all(own.map((path) => (path === stamps ? [path] : this.#windowsIn(path))))),
    ];
    await concurrently(lists, CONCURRENCY, async (paths) => {
      for (const path of paths) if (!(await this.#attempt(path, 'be changed', () => this.#feignChange(path)))) return;
    });
  }

  /** The id time windows of a group, as whole paths; none where they may not be listed, which was found out before. */
  async #windowsIn(group: string): Promise<string[]> {
    let names: readonly string[] = [];
    try {
      names = (await this.zookeeper.children(group, { signal: this.signal })) ?? [];
    } catch (error) {
      this.signal?.throwIfAborted();
      if (!(error instanceof NodeLeaseError)) throw error;
    }
    return names.filter((name) => parseHexPair(name) !== undefined).map((name) => `${group}/${name}`);
  }

  /** In a transaction that is bound to fail afterwards: a server says what is wrong first. An absent znode may be changed. */
  #feignChange(path: string): Promise<void> {
    const nowhere = `${this.question.chroot}${DISCOVERY_PATH}/${this.name}/nowhere`;
    return this.#multi({ type: 'set', path, data: '' }, { type: 'check', path: nowhere });
  }

  /** Carries out a transaction; one that names an absent znode is none. */
  async #multi(...operations: MultiOperation[]): Promise<void> {
    try {
      await this.zookeeper.multi(operations, { signal: this.signal });
    } catch (error) {
      if (!isFault(error, 'no-node')) throw error;
    }
  }
}

/** What the two hex digits mean that stand right below a path; undefined for any other path. */
function numberBelow(above: string, path: string): number | undefined {
  return path.startsWith(`${above}/`) ? parseHexPair(path.slice(above.length + 1)) : undefined;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
