import { checked } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { type ReconcileEvent, ReconcileLoop, type ReconcileState } from '../client/reconcile-loop.js';
import { CALL_TIMEOUT_MS } from '../client/zookeeper.js';
import type { Element } from './collision-chain.js';
import { Contribution, type OwnElement, type SeenElements } from './contribution.js';
import type { DataCall, DataContext, Datum } from './datum.js';
import type { Entry } from './entry.js';
import { checkRequest } from './limits.js';
import type { SharedDataError } from './shared-data-error.js';

/** How long the end of it may take, in milliseconds. */
const WITHDRAW_MS = 3_000;

/**
 * The ephemeral elements of one client: they are there in each session of it, unless the node that they go
 * with is not announced there.
 */
export class Contributions {
  readonly #items = new Map<string, Contribution>();
  readonly #loop: ReconcileLoop;
  /** Why nothing may be contributed in a session; undefined where it may. */
  refuses: (sessionId: string) => string | undefined = () => undefined;

  constructor(context: DataContext, onEvent?: (event: ReconcileEvent) => void) {
    this.#loop = new ReconcileLoop({ ...context, name: 'shared data', onEvent });
  }

  /** Whether ZooKeeper has everything contributed. */
  get state(): ReconcileState {
    return this.#loop.state;
  }

  /** Resolves to whether ZooKeeper has everything that is wanted, and nothing else, within that time. */
  async synced(call: DataCall = {}): Promise<boolean> {
    const { timeoutMs = CALL_TIMEOUT_MS, signal } = checked(call);
    return this.#loop.until(() => this.#loop.state.status === 'synced', timeoutMs, signal);
  }

  /** Writes all of it again, where it is not as wanted: whether it may be contributed has changed. */
  renew(): void {
    for (const item of this.#items.values()) this.#loop.reconcile(item);
  }

  /**
   * A replica has seen changes: own elements may be gone, have a gap before them, or be free to be
   * contributed.
   */
  onSeen(datum: Datum, replica: SeenElements): void {
    const item = this.#items.get(keyOf(datum));
    if (item?.differs(replica)) this.#loop.reconcile(item);
  }

  /**
   * Contributes an element, and resolves when ZooKeeper has it. Where that takes too long, or the node has
   * not joined in time, it is contributed later all the same.
   *
   * @param id undefined for a list's
   * @throws {SharedDataError} `owned-by-other`, `too-large`, `kind-clash`: then it is not contributed;
   * `not-joined`
   * @throws {ZooKeeperError} `timeout`
   */
  async put(
    datum: Datum,
    { id, hash, document }: Omit<Element, 'id'> & { readonly id?: string },
    call: DataCall,
  ): Promise<void> {
    checked(call);
    checkRequest(datum.path, [
      { type: 'create', path: datum.pathAt(hash, 0), data: document, mode: 'ephemeral' },
    ]);
    const item =
      this.#items.get(keyOf(datum)) ?? new Contribution(datum, (sessionId) => this.refuses(sessionId));
    this.#items.set(keyOf(datum), item);
    const element = item.put(id, hash, document);
    const refusal = await this.#done(item, element, 'the entry is not written', call);
    if (refusal === undefined) return;
    item.elements.delete(element.key);
    throw refusal;
  }

  /**
   * Removes what this node contributes. Resolves to false where there is none.
   *
   * @param entry as the replica has it @throws {SharedDataError} `owned-by-other`
   */
  async remove(
    datum: Datum,
    id: string,
    entry: Pick<Entry, 'owner'> | undefined,
    call: DataCall,
  ): Promise<boolean> {
    checked(call);
    const item = this.#items.get(keyOf(datum));
    const isMeant = ({ at }: OwnElement) => at !== undefined && datum.nameAt('', at) === id;
    const element =
      datum.record.kind === 'list'
        ? [...(item?.elements.values() ?? [])].find(isMeant)
        : item?.elements.get(id);
    if (item === undefined || element === undefined) {
      if (entry === undefined) return false;
      throw datum.ownedByOther(entry.owner);
    }
    item.remove(element);
    await this.#done(item, element, 'the entry is not removed', call);
    return true;
  }

  /**
   * Removes all of it. Resolves when it is gone, or within 3 s: then it goes with the next connection, or with
   * its session. Never rejects.
   */
  async withdraw(): Promise<void> {
    for (const item of this.#items.values()) {
      for (const element of item.elements.values()) item.remove(element);
      this.#loop.reconcile(item);
    }
    await this.#loop.until(() => this.#isRemoved, WITHDRAW_MS);
  }

  /** The same, for good. */
  async close(): Promise<void> {
    this.refuses = () => 'the shared data is closed';
    await this.withdraw();
    const closed = this.#loop
      .until(() => this.#isRemoved, Number.POSITIVE_INFINITY)
      .then(() => this.#loop.close());
    if (this.#isRemoved) await closed;
  }

  /** Whether all that is to be removed is gone. */
  get #isRemoved(): boolean {
    const elements = [...this.#items.values()].flatMap((item) => [...item.elements.values()]);
    return !elements.some(({ isRemoval }) => isRemoval);
  }

  /** Resolves when ZooKeeper has an element as it is wanted, or to why it refuses that. */
  async #done(
    item: Contribution,
    element: OwnElement,
    what: string,
    { timeoutMs = CALL_TIMEOUT_MS, signal }: DataCall,
  ): Promise<SharedDataError | undefined> {
    this.#loop.reconcile(item);
    // As of the last check: the element's own may be cleared again, by its next step.
    let refusal: SharedDataError | undefined;
    const isDone = () => {
      refusal = element.refusal;
      // A node may be about to join.
      return element.wasApplied || (refusal !== undefined && refusal.fault !== 'not-joined');
    };
    if (await this.#loop.until(isDone, timeoutMs, signal)) return refusal;
    if (refusal) throw refusal;
    throw this.#loop.late(`${item.datum.title}: ${what}`, timeoutMs, item);
  }
}

const keyOf = ({ path, record }: Datum) => `${record.kind} ${path}`;

/** @throws {ConfigError} where a condition is given for an ephemeral entry, which its node alone writes */
export function checkNoCondition(ifVersion: string | undefined): void {
  if (ifVersion !== undefined)
    throw new ConfigError('ifVersion', ifVersion, 'none for ephemeral data, which only its own node writes');
}
