import { DISCOVERY_PATH } from '../discovery/tree-paths.js';
import { explain, NodeLeaseError } from '../errors.js';
import { concurrently } from '../lease/concurrently.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault } from '../zookeeper/zookeeper-error.js';

/** Znodes that are tried at once. */
const AT_ONCE = 16;

/** Tries what may be done with znodes, and keeps what did not succeed. Nobody ever sees a change. */
export class ZnodeTrials {
  readonly #denied: string[] = [];
  readonly #failed: string[] = [];

  /**
   * @param zookeeper without a chroot of its own
   * @param name of a znode that nobody else has
   */
  constructor(
    private readonly zookeeper: ZooKeeper,
    private readonly chroot: string,
    private readonly name: string,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** What is not allowed, each with its path. */
  get denied(): readonly string[] {
    return this.#denied;
  }

  /** What else went wrong, each with its path. */
  get failed(): readonly string[] {
    return this.#failed;
  }

  /**
   * Does some work. True when it was done; keeps why not, otherwise: `<path> may not <what>`.
   *
   * @throws `signal.reason` when it aborts
   */
  async attempt(path: string, what: string, work: () => Promise<unknown>): Promise<boolean> {
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

  /**
   * The folders that there are, as whole paths: the branches, and what stands in them.
   *
   * @param branches within the chroot, as what `isFolder` is asked about
   */
  async folders(branches: readonly string[], isFolder: (path: string) => boolean): Promise<string[]> {
    const { zookeeper, chroot, signal } = this;
    const found: string[] = [];
    for (const branch of branches) {
      const path = `${chroot}${branch}`;
      await this.attempt(path, 'be listed', async () => {
        const names = await zookeeper.children(path, { signal });
        if (names === undefined) return;
        found.push(path, ...names.filter((name) => isFolder(`${branch}/${name}`)).map((name) => `${path}/${name}`));
      });
    }
    return found;
  }

  /** Lists folders, and makes and removes a znode in each, in one transaction. */
  async useFolders(folders: readonly string[]): Promise<void> {
    const { zookeeper, signal } = this;
    await concurrently(folders, AT_ONCE, async (folder) => {
      const path = `${folder}/${this.name}`;
      await this.attempt(folder, 'be listed', () => zookeeper.children(folder, { signal }));
      await this.attempt(path, 'be made and removed', async () => {
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
    });
  }

  /** Looks whether znodes may be changed, those of each list up to the first one that may not. One that is not there may. */
  async changeFirsts(lists: readonly (readonly string[])[]): Promise<void> {
    await concurrently(lists, AT_ONCE, async (paths) => {
      for (const path of paths) if (!(await this.attempt(path, 'be changed', () => this.#feignChange(path)))) return;
    });
  }

  /** In a transaction that is bound to fail afterwards: what is wrong first is what a server says. */
  async #feignChange(path: string): Promise<void> {
    const nowhere = `${this.chroot}${DISCOVERY_PATH}/${this.name}/nowhere`;
    try {
      await this.zookeeper.multi(
        [
          { type: 'set', path, data: '' },
          { type: 'check', path: nowhere },
        ],
        { signal: this.signal },
      );
    } catch (error) {
      if (!isFault(error, 'no-node')) throw error;
    }
  }

  /** The znodes below a folder, as whole paths; none where it may not be listed. */
  async below(folder: string): Promise<string[]> {
    try {
      const names = (await this.zookeeper.children(folder, { signal: this.signal })) ?? [];
      return names.map((name) => `${folder}/${name}`);
    } catch (error) {
      this.signal?.throwIfAborted();
      if (!(error instanceof NodeLeaseError)) throw error;
      return [];
    }
  }
}
