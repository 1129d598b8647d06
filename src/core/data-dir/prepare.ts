import { lstat, mkdir, rmdir, stat, statfs } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { aborted, orAborted } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { makeFolder, syncFolder, unless } from '../base/files.js';
import type { Lease } from '../lease/model/lease.js';
import { storeKindOf } from '../store/stores.js';
import { checkOwner, claimRoot } from './claim-root.js';
import { leftoversIn, removeVersion } from './collect.js';
import { type CopyPlan, planCopy } from './copy-plan.js';
import { type CopyMode, canClone, copyTree, type TreeCopy } from './copy-tree.js';
import { DataDirError, toDataDirError } from './data-dir-error.js';
import { type DataDirEvent, type DataDirOptions, DEFAULT_RETENTION } from './data-dir-options.js';
import { exclusionOf } from './exclude.js';
import { HeldTree } from './held-tree.js';
import { hasEnded, isMarked, markEnded, unmarkEnded, writeMarker } from './marker.js';
import { nodeDirOf, obsoleteOf, sourceFor, type VersionDir, versionsIn } from './versions.js';

// Fencing for files: each tenure has its own directory, so no other tenure sees what a stale holder still
// writes. Why this is safe:
//
// - The lease makes the order. A version belongs to one task (rule 2). When it has been acquired, all earlier
//   tenures are over (rule 4). So the directories below the own version have no living maker. Those above it
//   do not concern this tenure: they are never touched.
// - A local disk shows only its own host's tenures. So the version just before is the only source there, and
//   only where the acquiring write has replaced a lease of the same sticky key: it was made on this disk.
//   Unfinished versions in between do not count: their tenures were here, and have run nothing. Each makes
//   one before all that takes long, and leaves it where its preparation fails.
// - One store for each root. Its URL is recorded at the root: the versions of another store are not earlier
//   tenures.
// - Complete or absent. The marker comes last, when every file and every name of the directory has been
//   synced. A directory without it is never a source. A crash leaves a directory without a marker. The next
//   tenure removes it and begins again, since its maker may be paused, not dead.
// - No half source. A stale holder that wakes up during its own preparation may still remove old versions. A
//   removal begins with the marker, so the copy counts only if the source's marker is there at the end.
// - A preparation that was given up is like a stale one. The node id may be released while its last
//   operations run: they end in a version that is unfinished, or complete and never used.
// - Links only to files that no process writes. Files are shared with one version alone, and only if its own
//   tenure has recorded in it that its work has ended. That the node id was released does not show it: `serve`
//   releases while other programs may be at work. Once a version that shares the files is complete, the record
//   does not count any more. A tenure that was evicted, or has expired, may have processes left: its version
//   is copied.
// - Nothing outside. The programs that work in a version may belong to another user, and this process may be
//   root. No path leads through what that user puts there meanwhile (`HeldTree`).

export interface PrepareOptions extends DataDirOptions {
  readonly lease: Pick<Lease, 'id' | 'version' | 'previous' | 'signal' | 'isValid'>;
  /** The URL of the lease's store. */
  readonly store: string;
  readonly clock: Clock;
  /** Stops the preparation. */
  readonly signal?: AbortSignal | undefined;
}

/** File systems of one host, by the numbers of statfs(2). */
const LOCAL_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  61267: 'ext4',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  801189825: 'zfs',
  16914836: 'tmpfs',
};

/** From one report of progress to the next, in milliseconds. */
const PROGRESS_INTERVAL_MS = 10_000;

/** The data directory of a tenure. */
export interface PreparedDataDir {
  /** Absolute. */
  readonly path: string;
  /** Whether it was made from an older version; otherwise it was empty. */
  readonly restored: boolean;
  /** Records that the work in it has ended, as `markEnded` does, and that it is valid, if that record is gone. */
  end(): Promise<void>;
}

/**
 * Makes the data directory of a tenure. Resolves when it is complete, and older versions have been removed as
 * far as possible.
 *
 * It rejects at once when the lease is lost or `signal` aborts, even if the file system hangs. The current
 * operation may then still finish, as that of a stale holder does.
 *
 * @throws {DataDirError} when the content of the root does not allow it, with nothing changed but an unfinished
 * version on a local disk, or when the file system fails
 * @throws {LeaseLostError} as soon as the lease is lost
 * @throws `signal.reason`
 */
export async function prepareDataDir(options: PrepareOptions): Promise<PreparedDataDir> {
  const { lease, signal } = options;
  const preparation = new Preparation(options);
  try {
    return await orAborted(orAborted(preparation.run(), lease.signal), signal);
  } catch (error) {
    // The lease is over by the clock, and its signal is about to abort.
    if (!lease.isValid()) throw await aborted(lease.signal);
    throw toDataDirError(error, `the data directory ${preparation.path} cannot be prepared`);
  }
}

/** The source of a new version. */
interface Source {
  readonly dir: VersionDir;
  readonly plan: CopyPlan;
}

class Preparation {
  readonly #tree: HeldTree;
  /** Paths below the root. */
  readonly #nodeDir: string;
  readonly #own: string;
  readonly #begun: number;
  #nextReport: number;
  #files = 0;
  #bytes = 0;

  constructor(private readonly options: PrepareOptions) {
    const { root, lease, clock } = options;
    this.#tree = new HeldTree(resolve(root));
    this.#nodeDir = nodeDirOf(lease.id);
    this.#own = join(this.#nodeDir, `v${lease.version}`);
    this.#begun = clock.monotonic();
    this.#nextReport = this.#begun + PROGRESS_INTERVAL_MS;
  }

  get path(): string {
    return this.#full(this.#own);
  }

  async run(): Promise<PreparedDataDir> {
    const tree = this.#tree;
    const { lease, clock, retention = DEFAULT_RETENTION } = this.options;
    const { version } = lease;
    await checkOwner(this.options);
    await this.#warnOfLocalRoot();
    await this.#checkPlace(this.#nodeDir);
    const versions = await versionsIn(tree, this.#nodeDir);
    if (versions.length > 0) await this.#leaveUnfinished(this.#own);
    const source = await this.#source(versions);
    this.#check();
    await claimRoot(this.options);
    await tree.entry(this.#nodeDir, makeFolder);
    const unfinished = versions.filter((each) => each.state === 'unfinished' && each.version <= version);
    await this.#remove(
      [...(await leftoversIn(tree, this.#nodeDir)), ...unfinished.map(({ path }) => path)],
      this.#leaveUnfinished,
    );
    let mode: CopyMode = 'copy';
    this.#check();
    await unless(['ENOENT'], tree.entry(this.#own, rmdir));
    await tree.entry(this.#own, (at) => mkdir(at, source ? 0o700 : 0o777));
    const initializedFrom = source?.dir.version ?? null;
    const mark = (at: string, before?: () => Promise<void>) =>
      writeMarker(at, { initializedAt: clock.now(), version, initializedFrom }, before);
    try {
      await tree.within(this.#nodeDir, syncFolder);
      await tree.within(this.#own, async (at) => {
        if (source) mode = await this.#fill(source);
        this.#check();
        await mark(at, async () => {
          if (source && mode === 'link') await tree.within(source.dir.path, unmarkEnded);
        });
      });
    } catch (error) {
      // The rest of it would take the space that the next attempt needs.
      await this.#remove([this.#own], this.#leaveUnfinished);
      throw error;
    }
    this.#check();
    const counts = { files: this.#files, bytes: this.#bytes, tookMs: clock.monotonic() - this.#begun };
    this.#emit({ type: 'prepared', path: this.path, from: source?.dir.version ?? null, mode, ...counts });
    await this.#remove(obsoleteOf(await versionsIn(tree, this.#nodeDir), retention).map(({ path }) => path));
    this.#check();
    const end = async () => {
      // A program that fetches a backup may have removed the marker, or brought that of another version.
      const keep = async (at: string) => ((await isMarked(at, version)) ? undefined : mark(at));
      await tree.within(this.#own, keep).catch(() => undefined);
      // With copies, other programs' work may be left: `serve` cannot know.
      if (!this.options.copy) await markEnded(this.path);
    };
    return { path: this.path, restored: source !== undefined, end };
  }

  /** Where other hosts use the same store, a version here may be older than theirs. */
  async #warnOfLocalRoot(): Promise<void> {
    const { local, store } = this.options;
    const fileSystem = LOCAL_FILE_SYSTEMS[(await statfs(this.#tree.top)).type];
    if (fileSystem !== undefined && !local && storeKindOf(store)?.sharedBy === undefined)
      this.#emit({ type: 'looks-local', path: this.#tree.top, fileSystem });
  }

  /** The source version, and the files to be copied. */
  async #source(versions: readonly VersionDir[]): Promise<Source | undefined> {
    const { lease, exclude = [] } = this.options;
    const { version } = lease;
    const dir = this.#sourceFor(versions);
    for (const each of versions) {
      if (each.version >= version && each.state === 'valid') {
        const why =
          each.version === version
            ? 'has been prepared before'
            : `is newer than the version ${version} of this tenure`;
        throw new DataDirError(
          `${this.#full(each.path)} ${why}: is ${resolve(this.options.root)} that of a cluster whose leases were lost?`,
        );
      }
      // It may have the newest data. An older source would lose them silently.
      if (each.state === 'foreign' && each.version > (dir?.version ?? -1))
        throw new DataDirError(
          `${this.#full(each.path)} ${each.problem}: mend it, or move it away to go on from an older version`,
        );
    }
    if (dir === undefined) return undefined;
    await this.#checkPlace(dir.path);
    const plan = await this.#tree.within(dir.path, () =>
      planCopy(this.#tree, dir.path, exclusionOf(exclude, 'exclude'), this.#check),
    );
    return { dir, plan };
  }

  /** On a local disk older versions prove nothing: other hosts may have had the id in between. */
  #sourceFor(versions: readonly VersionDir[]): VersionDir | undefined {
    const { lease, local = false } = this.options;
    const newest = sourceFor(lease.version, versions);
    if (newest === undefined || !local) return newest;
    const since = versions.filter(
      ({ version, state }) => state === 'unfinished' && version > newest.version && version < lease.version,
    );
    const isLast = lease.previous === 'same' && newest.version + since.length === lease.version - 1;
    return isLast ? newest : undefined;
  }

  /** On a local disk it shows to later tenures that this one was here, and has run nothing. */
  readonly #leaveUnfinished = async (path: string): Promise<void> => {
    if (this.options.local)
      await unless(
        ['EEXIST'],
        this.#tree.entry(path, (at) => mkdir(at, 0o700)),
      );
  };

  async #checkPlace(path: string): Promise<void> {
    const { root } = this.options;
    const there = await unless(
      ['ENOENT'],
      this.#tree.entry(path, (at) => lstat(at)),
    );
    if (there?.isDirectory() === false) throw new DataDirError(`${this.#full(path)} is not a directory`);
    if (there && there.dev !== (await stat(root)).dev)
      throw new DataDirError(`${this.#full(path)} is on another file system than ${root}`);
  }

  async #fill({ dir, plan }: Source): Promise<CopyMode> {
    const { copy: alwaysCopies = false } = this.options;
    const call = { tree: this.#tree, from: dir.path, to: this.#own, plan };
    const links = !alwaysCopies && (await this.#tree.within(dir.path, hasEnded));
    const mode = links ? 'link' : (await canClone(call)) ? 'clone' : 'copy';
    if (mode === 'copy') await this.#checkSpace(plan);
    await this.#tree.within(dir.path, () => copyTree({ ...call, mode, step: this.#stepOf(plan) }));
    const versions = await versionsIn(this.#tree, this.#nodeDir);
    const after = versions.find(({ version }) => version === dir.version);
    if (after?.state !== 'valid')
      throw new DataDirError(`${this.#full(dir.path)} was removed while it was copied`);
    return mode;
  }

  async #checkSpace({ bytes }: CopyPlan): Promise<void> {
    const { bavail, bsize } = await this.#tree.within(this.#nodeDir, (at) => statfs(at));
    const free = bavail * bsize;
    if (bytes > free) throw new DataDirError(`${this.path} needs ${bytes} bytes, and ${free} are free`);
  }

  #full(path: string): string {
    return join(this.#tree.top, path);
  }

  /** A version that cannot be removed only costs space. */
  async #remove(paths: readonly string[], renamed?: (path: string) => Promise<void>): Promise<void> {
    for (const each of paths) {
      this.#check();
      const path = this.#full(each);
      try {
        await removeVersion(this.#tree, each, renamed);
        this.#emit({ type: 'removed', path });
      } catch (error) {
        this.#emit({ type: 'not-removed', path, error });
      }
    }
  }

  #stepOf(plan: CopyPlan): TreeCopy['step'] {
    const of = { files: plan.files.length, bytes: plan.bytes };
    return (files, bytes) => {
      this.#check();
      this.#files += files;
      this.#bytes += bytes;
      const now = this.options.clock.monotonic();
      if (now < this.#nextReport) return;
      this.#nextReport = now + PROGRESS_INTERVAL_MS;
      this.#emit({ type: 'progress', path: this.path, files: this.#files, bytes: this.#bytes, of });
    };
  }

  /** Compares clocks, too: after a pause nothing may be written before the loss is reported. */
  readonly #check = (): void => {
    const { lease, signal } = this.options;
    lease.signal.throwIfAborted();
    signal?.throwIfAborted();
    if (!lease.isValid()) throw new DataDirError(`the lease of node id ${lease.id} ran out`);
  };

  #emit(event: DataDirEvent): void {
    this.options.onEvent?.(event);
  }
}
