import type { Clock } from '../clock.js';
import { DISCOVERY_PATH, ENDPOINTS_PATH, NODES_PATH, SERVICES_PATH } from '../discovery/tree-paths.js';
import { NodeLeaseError } from '../errors.js';
import { parsePath } from '../monitor/discovery-path.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault } from '../zookeeper/zookeeper-error.js';
import { tryAllocation } from './allocation-rights.js';
import type { Io } from './io.js';
import { ZnodeTrials } from './znode-trials.js';

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
/** How long the tidying up may take, in milliseconds. */
const TIDY_LIMIT_MS = 2_000;

/**
 * Tries what a node does in the tree: makes the chroot and the tree's root where they are absent, makes, reads, changes and removes an
 * ephemeral scratch znode `probe-…` below the root, reads every folder, and makes and removes a znode in each, in one transaction, so that
 * nobody ever sees it. What it made is gone afterwards, also when it is interrupted.
 *
 * Where node ids come from ZooKeeper alone, it also tries to change what outlasts their holders, in transactions that are bound to fail
 * afterwards, so that nothing is changed: of the stamps of a group, up to the first one that may not be.
 *
 * @param zookeeper without a chroot of its own
 * @throws `signal.reason` when it aborts
 */
export async function checkRights(
  zookeeper: ZooKeeper,
  { chroot, allocates }: RightsQuestion,
  io: Pick<Io, 'clock' | 'random'>,
  signal?: AbortSignal,
): Promise<RightsReport> {
  const name = `probe-${io.random.hex(8)}`;
  const trials = new ZnodeTrials(zookeeper, chroot, name, signal);
  const check = new RightsCheck(zookeeper, chroot, name, trials, io.clock, signal);
  try {
    const folders = await check.run();
    if (folders !== undefined && allocates) await tryAllocation(trials, chroot, folders);
  } finally {
    await check.tidyUp();
  }
  signal?.throwIfAborted();
  return check.report;
}

class RightsCheck {
  readonly #made: string[] = [];
  readonly #left: string[] = [];
  #chrootState: RightsReport['chroot'];
  #latencyMs: RightsReport['latencyMs'];

  constructor(
    private readonly zookeeper: ZooKeeper,
    private readonly chroot: string,
    private readonly name: string,
    private readonly trials: ZnodeTrials,
    private readonly clock: Clock,
    private readonly signal: AbortSignal | undefined,
  ) {}

  get report(): RightsReport {
    const found = { denied: this.trials.denied, failed: this.trials.failed, left: this.#left };
    return { chroot: this.#chrootState, ...found, latencyMs: this.#latencyMs };
  }

  /** The folders of the tree; undefined where there is no place for one. */
  async run(): Promise<readonly string[] | undefined> {
    const root = `${this.chroot}${DISCOVERY_PATH}`;
    if (this.chroot !== '' && !(await this.#makeChroot())) return undefined;
    if (!(await this.trials.attempt(root, 'be made', () => this.#ensure(root)))) return undefined;
    await this.#tryScratch(root);
    const branches = [NODES_PATH, SERVICES_PATH, ENDPOINTS_PATH];
    const folders = await this.trials.folders(branches, (path) => parsePath(path).kind === 'folder');
    await this.trials.useFolders(folders);
    return folders;
  }

  /** Removes what was made, the scratch znode first, and nothing that somebody uses by now. */
  async tidyUp(): Promise<void> {
    const until = this.clock.monotonic() + TIDY_LIMIT_MS;
    for (const path of this.#made.reverse()) {
      try {
        await this.zookeeper.remove(path, undefined, { timeoutMs: Math.max(1, until - this.clock.monotonic()) });
      } catch (error) {
        if (!(error instanceof NodeLeaseError)) throw error;
        if (!isFault(error, 'not-empty')) this.#left.push(path);
      }
    }
  }

  async #makeChroot(): Promise<boolean> {
    const names = this.chroot.split('/').slice(1);
    const prefixes = names.map((_, index) => `/${names.slice(0, index + 1).join('/')}`);
    let made = false;
    for (const path of prefixes) {
      const passed = await this.trials.attempt(path, 'be made', async () => {
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
      // It is there, at least, and not for us to read.
      if (isFault(error, 'no-auth')) return false;
      throw error;
    }
    try {
      // Before it is known to be: a lost answer may be that of a success.
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
    const { zookeeper, signal } = this;
    const path = `${root}/${this.name}`;
    const reads: number[] = [];
    const writes: number[] = [];
    const call = { signal };
    const made = await this.trials.attempt(path, 'be made', () => {
      this.#made.push(path);
      return this.#timed(writes, () => zookeeper.create(path, '0', 'ephemeral', call));
    });
    if (!made) return;
    const used = await this.trials.attempt(path, 'be read and changed', async () => {
      for (let round = 1; round <= ROUNDS; round += 1) {
        await this.#timed(reads, () => zookeeper.read(path, call));
        await this.#timed(writes, () => zookeeper.setData(path, String(round), undefined, call));
      }
    });
    const removed = await this.trials.attempt(path, 'be removed', () => this.#timed(writes, () => zookeeper.remove(path, undefined, call)));
    if (used && removed) this.#latencyMs = { read: median(reads), write: median(writes) };
  }

  async #timed<T>(times: number[], work: () => Promise<T>): Promise<T> {
    const begun = this.clock.monotonic();
    const result = await work();
    times.push(this.clock.monotonic() - begun);
    return result;
  }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
