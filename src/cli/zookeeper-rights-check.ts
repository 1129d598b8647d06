import { DISCOVERY_PATH, ENDPOINTS_PATH, NODES_PATH, SERVICES_PATH } from '../discovery/tree-paths.js';
import { explain, NodeLeaseError } from '../errors.js';
import { concurrently } from '../lease/concurrently.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault } from '../zookeeper/zookeeper-error.js';
import { placeOf } from './discovery-place.js';
import type { Io } from './io.js';

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

/** How often the scratch znode is read and written. */
const ROUNDS = 5;
/** Folders that are tried at once. */
const FOLDERS = 16;
/** How long the tidying up may take, in milliseconds. */
const TIDY_LIMIT_MS = 2_000;

/**
 * Tries what a node does in the tree: makes the chroot and the tree's root where they are absent, makes, reads, changes and removes an
 * ephemeral scratch znode `probe-…` below the root, reads every folder, and makes and removes a znode in each, in one transaction, so that
 * nobody ever sees it. What it made is gone afterwards, also when it is interrupted.
 *
 * @param zookeeper without a chroot of its own
 * @throws `signal.reason` when it aborts
 */
export async function checkRights(
  zookeeper: ZooKeeper,
  chroot: string,
  io: Pick<Io, 'clock' | 'random'>,
  signal?: AbortSignal,
): Promise<RightsReport> {
  const check = new RightsCheck(zookeeper, chroot, io, signal);
  try {
    await check.run();
  } finally {
    await check.tidyUp();
  }
  signal?.throwIfAborted();
  return check.report;
}

class RightsCheck {
  readonly #made: string[] = [];
  readonly #denied: string[] = [];
  readonly #failed: string[] = [];
  readonly #left: string[] = [];
  readonly #name: string;
  #chrootState: RightsReport['chroot'];
  #latencyMs: RightsReport['latencyMs'];

  constructor(
    private readonly zookeeper: ZooKeeper,
    private readonly chroot: string,
    private readonly io: Pick<Io, 'clock' | 'random'>,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.#name = `probe-${io.random.hex(8)}`;
  }

  get report(): RightsReport {
    const found = { denied: this.#denied, failed: this.#failed, left: this.#left };
    return { chroot: this.#chrootState, ...found, latencyMs: this.#latencyMs };
  }

  async run(): Promise<void> {
    const root = `${this.chroot}${DISCOVERY_PATH}`;
    if (this.chroot !== '' && !(await this.#makeChroot())) return;
    if (!(await this.#try(root, 'be made', () => this.#ensure(root)))) return;
    await this.#tryScratch(root);
    await concurrently(await this.#folders(), FOLDERS, (folder) => this.#tryFolder(folder));
  }

  /** Removes what was made, the scratch znode first, and nothing that somebody uses by now. */
  async tidyUp(): Promise<void> {
    const { clock } = this.io;
    const until = clock.monotonic() + TIDY_LIMIT_MS;
    for (const path of this.#made.reverse()) {
      try {
        await this.zookeeper.remove(path, undefined, { timeoutMs: Math.max(1, until - clock.monotonic()) });
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
      const passed = await this.#try(path, 'be made', async () => {
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
      await zookeeper.create(path, '', 'persistent', { signal });
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
    const path = `${root}/${this.#name}`;
    const reads: number[] = [];
    const writes: number[] = [];
    const call = { signal };
    const made = await this.#try(path, 'be made', () => {
      this.#made.push(path);
      return this.#timed(writes, () => zookeeper.create(path, '0', 'ephemeral', call));
    });
    if (!made) return;
    const used = await this.#try(path, 'be read and changed', async () => {
      for (let round = 1; round <= ROUNDS; round += 1) {
        await this.#timed(reads, () => zookeeper.read(path, call));
        await this.#timed(writes, () => zookeeper.setData(path, String(round), undefined, call));
      }
    });
    const removed = await this.#try(path, 'be removed', () => this.#timed(writes, () => zookeeper.remove(path, undefined, call)));
    if (used && removed) this.#latencyMs = { read: median(reads), write: median(writes) };
  }

  /** The folders that there are: the branches, and what stands in them. */
  async #folders(): Promise<string[]> {
    const { zookeeper, chroot, signal } = this;
    const found: string[] = [];
    for (const branch of [NODES_PATH, SERVICES_PATH, ENDPOINTS_PATH]) {
      const path = `${chroot}${branch}`;
      await this.#try(path, 'be listed', async () => {
        const names = await zookeeper.children(path, { signal });
        if (names === undefined) return;
        found.push(path, ...names.filter((name) => placeOf(`${branch}/${name}`).kind === 'folder').map((name) => `${path}/${name}`));
      });
    }
    return found;
  }

  async #tryFolder(folder: string): Promise<void> {
    const { zookeeper, signal } = this;
    const path = `${folder}/${this.#name}`;
    await this.#try(folder, 'be listed', () => zookeeper.children(folder, { signal }));
    await this.#try(path, 'be made and removed', async () => {
      try {
        await zookeeper.multi(
          [
            { type: 'create', path, data: '', mode: 'ephemeral' },
            { type: 'remove', path },
          ],
          { signal },
        );
      } catch (error) {
        // The folder has gone meanwhile, as empty ones may.
        if (!isFault(error, 'no-node')) throw error;
      }
    });
  }

  async #timed<T>(times: number[], work: () => Promise<T>): Promise<T> {
    const begun = this.io.clock.monotonic();
    const result = await work();
    times.push(this.io.clock.monotonic() - begun);
    return result;
  }

  /** True when the work was done; notes down why not, otherwise. */
  async #try(path: string, what: string, work: () => Promise<unknown>): Promise<boolean> {
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
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
