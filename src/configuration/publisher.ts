import type { Clock, RandomSource } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import { systemClock, systemRandom } from '../base/system.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { between, readHistory } from './history.js';
import { type ConfigName, contextsOf, rootOf } from './layout.js';
import { type ContextState, type Publication, type PublishOptions, publish, readContext, stateOf, type WantedChange } from './publish.js';
import { repeated } from './read-contexts.js';
import { inverted, type KeyChange, type Revision } from './revision.js';

export interface PublisherOptions extends ConfigName {
  /** Who publishes, as the history names it. */
  readonly author: string;
  /** How many revisions the history keeps, 10 to 10000. @default 100 */
  readonly keep?: number | undefined;
  /** @default the clock of this machine */
  readonly clock?: Clock | undefined;
  /** @default the operating system's */
  readonly random?: RandomSource | undefined;
}

/**
 * Publishes into the most specific context of a configuration. What was changed without a revision is seen as it stands.
 *
 * All calls throw {@link ConfigError} for bad input, `ZooKeeperError` for no connection in time, denied access and a closed client,
 * {@link ConfigHistoryError} for damage, and `signal.reason`.
 */
export interface ConfigPublisher {
  /** The name of the context, such as `shop,prod`. */
  readonly context: string;
  /** Where another publish comes between, a part may be newer than the revision: a publish that expects that revision then conflicts. */
  read(signal?: AbortSignal): Promise<ContextState>;
  /**
   * Changes the keys together, in one transaction with the revision's record. Resolves to undefined where all of them are so already.
   *
   * @param wanted the changes, or what tells them from the present state: called again where another publish was first
   * @throws {ConfigConflictError} `expect` is not what stands @throws {AcquireTimeoutError} others were first all the time
   * @throws {ZooKeeperError} with the outcome `unknown` where the reply was lost, and it could not be found out what became of it in time
   */
  publish(
    wanted: readonly WantedChange[] | ((state: ContextState) => readonly WantedChange[]),
    options?: PublishOptions,
  ): Promise<Revision | undefined>;
  /** Publishes what undoes all revisions after this one; keys that they have not changed stay as they are. @throws as {@link publish} and {@link diff} */
  rollback(revision: number, options?: PublishOptions): Promise<Revision | undefined>;
  /** The revisions that are kept, the newest first. */
  history(signal?: AbortSignal): Promise<readonly Revision[]>;
  /** The published changes from one revision to another. @param to @default the newest @throws {ConfigHistoryError} `no-such-revision` */
  diff(from: number, to?: number, signal?: AbortSignal): Promise<readonly KeyChange[]>;
}

const DEFAULT_KEEP = 100;

/** @throws {ConfigError} */
export function configPublisher(zookeeper: ZooKeeper, options: PublisherOptions): ConfigPublisher {
  const { author, keep = DEFAULT_KEEP, clock = systemClock, random = systemRandom } = options;
  const [context] = contextsOf(options);
  const root = rootOf(options);
  if (!(Number.isInteger(keep) && keep >= 10 && keep <= 10_000))
    throw new ConfigError('keep', keep, 'a number of revisions from 10 to 10000');
  const publication: Publication = { zookeeper, clock, random, root, context, author, keep };
  const read = (signal: AbortSignal | undefined) => repeated(publication, { signal }, (call) => readHistory(publication, context, call));
  return {
    context,
    read: (signal) => repeated(publication, { signal }, async (call) => stateOf(await readContext(publication, call))),
    publish: (wanted, publishing = {}) =>
      publish(publication, async (state) => (typeof wanted === 'function' ? wanted(state) : wanted), publishing),
    rollback: (revision, publishing = {}) =>
      publish(publication, async (_, call) => inverted(between(await readHistory(publication, context, call), revision, undefined)), {
        message: `rollback to revision ${revision}`,
        ...publishing,
      }),
    history: async (signal) => (await read(signal)).map(({ id: _, ...revision }) => revision),
    diff: async (from, to, signal) => between(await read(signal), from, to),
  };
}
