import { onAbort } from '../../../core/base/abort.js';
import { NodeHolder, type NodeHolderOptions } from '../../../core/lease/hold/node-holder.js';
import { type LeaseTiming, leaseTiming } from '../../../core/lease/model/lease-timing.js';
import { isSessionOver, type SessionState } from '../../client/session-state.js';
import { isFault, isNotApplied, type Znode, type ZooKeeper, ZooKeeperError } from '../../client/zookeeper.js';
import { claimData, type IdTenure, isOurs } from './id-znodes.js';
import { SessionTime } from './session-time.js';

/**
 * Holds one node id by its claim. A renewal is a heartbeat, which shows whether the session lives, and which
 * task has the claim. If that cannot be found out, the id is given up before its deadline:
 * docs/design/allocation.md, "One holder" and "Reads prove nothing".
 */
export class SessionLease extends NodeHolder {
  readonly tenureTime: SessionTime;
  /** It has no lease object that could show a mark. */
  readonly home = undefined;
  /** The ids that ZooKeeper gives out are not retired. */
  readonly retiring: AbortSignal = new AbortController().signal;

  constructor(
    private readonly tenure: IdTenure,
    options: NodeHolderOptions & { readonly zookeeper: ZooKeeper },
  ) {
    super(tenure.nodeId, tenure.version, tenure.claimer.taskId, options);
    const { zookeeper } = options;
    this.tenureTime = new SessionTime({
      ...{ ...options, tenure, signal: this.ending },
      call: () => this.call(),
      check: () => this.check(),
      confirm: async () => {
        this.#stillOurs(await tenure.session.read(tenure.path, this.call()));
        this.check();
      },
      onAdopted: () => this.addChore(() => this.announce()),
    });
    const watch = zookeeper.watchData(tenure.path, (znode) => void this.#stillOurs(znode));
    const forgetSession = zookeeper.onState((state) => this.#onSession(state));
    onAbort(this.ending, () => {
      watch.close();
      forgetSession();
    });
    this.#onSession(zookeeper.state);
    this.start();
  }

  get deadline(): number {
    return this.tenure.deadline.until;
  }

  /** Does nothing: there is no lease object for the versions of other nodes. */
  setKnownNodes(): void {}

  /**
   * A heartbeat every sixth of the session's time-out; the work must be ended a twelfth of it before the
   * deadline.
   */
  protected override get timing(): LeaseTiming {
    return leaseTiming(this.tenure.deadline.timeoutMs / 2);
  }

  protected override get renewAt(): number {
    return this.tenure.deadline.sentAt + this.timing.renewEveryMs;
  }

  /**
   * Has the claim say who holds the id, and how wide its ids are. Where that fails, the next heartbeat does
   * it.
   *
   * @param known the claim as it was just read
   */
  async announce(known?: Znode): Promise<void> {
    const { session, path, nodeId, version, claimer } = this.tenure;
    try {
      const claim = known ?? (await session.read(path, this.call()));
      const data = claimData(claimer, { nodeId, version, idWidth: this.tenureTime.width.adopted });
      if (!this.#stillOurs(claim) || claim.data.toString('utf8') === data) return;
      await session.setData(path, data, claim.stat.version, this.call());
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
    }
  }

  protected override async attempt(): Promise<void> {
    const { session, path, deadline } = this.tenure;
    const { clock } = this.tenureTime;
    // The client leaves a stopped server for another one while there is time. By itself it would take longer
    // than the id is valid.
    const call = () => ({ ...this.call(), reconnectOnTimeout: true });
    const sentAt = clock.monotonic();
    let claim: Znode | undefined;
    try {
      await session.multi([{ type: 'check', path }], call());
      claim = await session.read(path, call());
    } catch (error) {
      if (!isFault(error, 'no-node')) throw error;
    }
    if (!this.#stillOurs(claim)) return;
    this.check();
    deadline.answered(sentAt);
    await this.announce(claim);
  }

  /** Whether this claim is ours; if not, the id is lost. */
  #stillOurs(claim: Znode | undefined): claim is Znode {
    const { session, claimer } = this.tenure;
    if (claim === undefined) this.loseTo('its znode has been deleted');
    else if (claim.stat.owner !== session.sessionId) this.loseTo('its znode is that of another session');
    else if (!isOurs(claim, session.sessionId, claimer.nonce))
      this.loseTo('its znode has been overwritten by somebody else');
    return this.isHeld;
  }

  #onSession(state: SessionState): void {
    const { session, deadline } = this.tenure;
    if (state.status === 'closed') this.loseTo('its session has been closed');
    else if (isSessionOver(state, session.sessionId)) this.loseTo('its session has expired');
    else if (state.status === 'connected') deadline.limit(state.timeoutMs);
  }

  /**
   * Removes the claim, in one transaction with the end of the id time window. Does nothing if the claim
   * belongs to another task by now.
   */
  protected override async giveBack(): Promise<void> {
    const { session, path, claimer } = this.tenure;
    const call = { timeoutMs: this.timing.requestTimeoutMs * 2 };
    // Where the record cannot be read, or not be written below, the next tenure waits for the end of the
    // window.
    const record = await this.tenureTime.last(call).catch(() => undefined);
    const claim = await session.read(path, call);
    if (claim === undefined || !isOurs(claim, session.sessionId, claimer.nonce)) return;
    const { version } = claim.stat;
    try {
      if (record !== undefined) return await session.multi([{ type: 'remove', path, version }, record], call);
    } catch (error) {
      if (!isNotApplied(error)) throw error;
    }
    await session.remove(path, version, call);
  }

  protected override mayPass(error: unknown): boolean {
    // A write of ours that came late makes another version.
    return isFault(error, 'connection-loss', 'timeout', 'bad-version');
  }
}
