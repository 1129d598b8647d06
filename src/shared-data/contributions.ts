import { ConfigError } from '../base/errors.js';
import { ReconcileLoop, type ReconcileState } from '../zookeeper/reconcile-loop.js';
import type { SessionState } from '../zookeeper/session-state.js';
import { ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { Contribution } from './contribution.js';
import { CALL_TIMEOUT_MS, caughtUp, checkTimeout, type DataCall, type DataContext, type Datum } from './datum.js';
import type { Entry } from './entry.js';
import { checkRequest } from './limits.js';
import type { Replica } from './replica.js';
import { SharedDataError } from './shared-data-error.js';

/** What of the ephemeral data does not stand there as it should, and that it does again. For logs. */
export type ContributionEvent = { readonly type: 'synced' } | { readonly type: 'degraded'; readonly problem: string };

/** How long the end of it may take, in milliseconds. */
const WITHDRAW_MS = 3_000;

/** The ephemeral elements of one client: they stand in each session of it, unless the node that they go with is not announced there. */
export class Contributions {
  readonly #items = new Map<string, Contribution>();
  readonly #replicas = new Map<string, Set<Replica<Entry>>>();
  readonly #loop: ReconcileLoop<Contribution>;
  readonly #claims = new Map<string, Contribution>();
  #appended = 0;
  #last: Promise<void> = Promise.resolve();
  /** For which connection the server has caught up. */
  #fresh: { readonly state: SessionState; readonly done: Promise<void> } | undefined;
  /** Why nothing may be contributed in a session; undefined where it may. */
  refuses: (sessionId: string) => string | undefined = () => undefined;

  constructor(
    private readonly context: DataContext,
    onEvent?: (event: ContributionEvent) => void,
  ) {
    this.#loop = new ReconcileLoop<Contribution>({
      ...context,
      name: 'shared data',
      items: () => this.#items.values(),
      // The elements of a list one after the other, in their order.
      settle: (item, call) => (item.id === undefined ? this.#inOrder(() => item.settle(call)) : item.settle(call)),
      onEvent,
    });
  }

  /** Whether everything contributed stands there. */
  get state(): ReconcileState {
    return this.#loop.state;
  }

  /** Resolves to whether everything that is wanted stands there, and nothing else, within that time. */
  synced({ timeoutMs, signal }: DataCall = {}): Promise<boolean> {
    return this.#loop.until(() => this.#loop.state.status === 'synced', checkTimeout(timeoutMs), signal);
  }

  /** Writes all of it anew, where it is not as wanted: whether it may be contributed has changed. */
  renew(): void {
    for (const item of this.#items.values()) this.#loop.touched(item);
  }

  /** Has a replica tell where others' elements give way. The returned function ends that. */
  follow(datum: Datum, replica: Replica<Entry>): () => void {
    const all = this.#replicas.get(datum.path) ?? new Set();
    this.#replicas.set(datum.path, all.add(replica));
    const forget = replica.onChange((changes) => {
      const removed = new Set(changes.flatMap(({ type, entry }) => (type === 'removed' ? entry.id : [])));
      this.#touch((item) => item.datum.path === datum.path && item.id !== undefined && removed.has(item.id));
    });
    return () => {
      forget();
      all.delete(replica);
    };
  }

  /** The children of a datum: own ones may be gone, or have a gap before them. */
  onListed(datum: Datum, has: (name: string) => boolean): void {
    this.#touch((item) => item.datum.path === datum.path && !item.isUnbroken(has));
  }

  /** A znode has the same element as another one. */
  onTwice(datum: Datum, name: string): void {
    this.#touch((item) => item.datum.path === datum.path && item.isAt(name));
  }

  /**
   * Contributes an element, and resolves when ZooKeeper has it. Where that takes too long, or the node has not joined in time, it is contributed later
   * all the same.
   *
   * @param id undefined for a list's
   * @throws {SharedDataError} `owned-by-other`, `too-large`, `kind-clash`: then it is not contributed; `not-joined`
   * @throws {ZooKeeperError} `timeout`
   */
  async put(datum: Datum, id: string | undefined, hash: string, document: string, call: DataCall): Promise<void> {
    checkRequest(datum.path, [{ type: 'create', path: `${datum.path}/${hash}`, data: document, mode: 'ephemeral' }]);
    const key = id === undefined ? `${datum.path} ${this.#appended++}` : `${datum.path}/${id}`;
    let item = this.#items.get(key);
    if (item === undefined) {
      item = new Contribution(datum, id, hash, {
        claims: this.#claims,
        refuses: (sessionId) => this.refuses(sessionId),
        ownerOf: () => (id === undefined ? undefined : this.#entry(datum, id)?.owner),
        caughtUp: (...args) => this.#caughtUp(...args),
        onGone: (gone) => this.#items.get(key) === gone && this.#items.delete(key),
      });
      this.#items.set(key, item);
    }
    item.want(document);
    await this.#settled(item, 'the entry does not stand there', call);
    if (item.refusal === undefined) return;
    this.#items.delete(key);
    throw item.refusal;
  }

  /** Takes back what this node contributes. Resolves to false where there is none. @throws {SharedDataError} `owned-by-other` */
  async remove(datum: Datum, id: string, call: DataCall): Promise<boolean> {
    const entry = this.#entry(datum, id);
    const item = this.#items.get(`${datum.path}/${id}`) ?? (entry && this.#claims.get(`${datum.path}/${entry.name}`));
    if (item === undefined && entry !== undefined) {
      const text = `${datum.title}: another node contributes this entry, in session ${entry.owner ?? 'none'}`;
      throw new SharedDataError(text, 'owned-by-other', datum.path);
    }
    if (item === undefined) return false;
    item.want(undefined);
    await this.#settled(item, 'the entry is not removed', call);
    return true;
  }

  /** Takes all of it back. Resolves when it is gone, or within 3 s: then it goes with its session. Never rejects. */
  async withdraw(): Promise<void> {
    for (const item of this.#items.values()) {
      item.want(undefined);
      this.#loop.touched(item);
    }
    await this.#loop.until(() => this.#items.size === 0, WITHDRAW_MS);
  }

  /** The same, for good. */
  async close(): Promise<void> {
    await this.withdraw();
    await this.#loop.close();
  }

  async #settled(item: Contribution, what: string, { timeoutMs, signal }: DataCall): Promise<void> {
    this.#loop.touched(item);
    // A node may be about to join.
    const isDone = () => item.settled || (item.refusal !== undefined && item.refusal.fault !== 'not-joined');
    if (await this.#loop.until(isDone, checkTimeout(timeoutMs), signal)) return;
    if (item.refusal) throw item.refusal;
    const { state } = this.#loop;
    const problem = state.status === 'degraded' ? `: ${state.problem}` : '';
    const [fault, late] =
      state.status === 'closed' ? (['closed', ' any more'] as const) : (['timeout', ` within ${timeoutMs ?? CALL_TIMEOUT_MS} ms`] as const);
    throw new ZooKeeperError(`${item.datum.title}: ${what}${late}${problem}`, { fault, outcome: 'unknown', path: item.path });
  }

  async #inOrder(settle: () => Promise<void>): Promise<void> {
    const before = this.#last;
    const done = before.then(settle);
    this.#last = done.catch(() => undefined);
    await done;
  }

  #caughtUp(...args: Parameters<typeof caughtUp>): Promise<void> {
    const { state } = this.context.zookeeper;
    if (this.#fresh?.state !== state) {
      const done = caughtUp(...args);
      this.#fresh = { state, done };
      done.catch(() => {
        this.#fresh = undefined;
      });
    }
    return this.#fresh.done;
  }

  #entry(datum: Datum, id: string): Entry | undefined {
    for (const replica of this.#replicas.get(datum.path) ?? []) return replica.get(id);
    return undefined;
  }

  #touch(isMeant: (item: Contribution) => boolean): void {
    for (const item of this.#items.values()) if (isMeant(item)) this.#loop.touched(item);
  }
}

/** @throws {ConfigError} where a condition is given for an ephemeral entry, which its node alone writes */
export function checkNoCondition(ifVersion: string | undefined): void {
  if (ifVersion !== undefined) throw new ConfigError('ifVersion', ifVersion, 'none for ephemeral data, which only its own node writes');
}
