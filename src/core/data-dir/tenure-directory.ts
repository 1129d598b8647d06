import type { DataDirOptions } from './data-dir-options.js';
import { markEnded } from './marker.js';
import { type PreparedDataDir, type PrepareOptions, prepareDataDir } from './prepare.js';

/** The data directory of one tenure, from its preparation to the end of the work in it. */
export class TenureDirectory {
  #prepared: PreparedDataDir | undefined;

  constructor(private readonly options: DataDirOptions) {}

  /** @throws as `prepareDataDir` does */
  async prepare(tenure: Omit<PrepareOptions, keyof DataDirOptions>): Promise<PreparedDataDir> {
    this.#prepared = await prepareDataDir({ ...this.options, ...tenure });
    return this.#prepared;
  }

  /** Records that the work has ended, as {@link markEnded} does. */
  async end(): Promise<void> {
    // With copies, other programs' work may be left: `serve` cannot know.
    if (this.#prepared && !this.options.copy) await markEnded(this.#prepared.path);
  }
}
