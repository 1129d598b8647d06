import { concurrentCalls } from '../client/call-limits.js';
import type { ReconcileCall } from '../client/reconcile-loop.js';
import { catchUp } from '../client/retry.js';
import { nameAt, parentOf } from '../client/znode-path.js';
import type { Znode } from '../client/zookeeper.js';
import { ignoring, isNotApplied } from '../client/zookeeper-error.js';
import { type OwnZnode, RegisteredZnode, type WantedZnode } from './registered-znode.js';

/** The number that the servers append: ten digits, or a sign and nine or ten digits after an overflow. */
const NUMBER = /^(?:\d{10}|-\d{9,10})$/;

/**
 * A registration whose znode the servers number. No other registrant can be in its way, but its number may be
 * assigned again with a new parent.
 */
export class SequentialRegistration extends RegisteredZnode {
  /** The data of znodes that may have been created in a session, or may still be: the replies were lost. */
  #lost: { readonly sessionId: string; readonly data: Set<string> } | undefined;

  async register(wanted: WantedZnode, call: ReconcileCall): Promise<boolean> {
    const own = await this.#find(call);
    const znode = own && (await this.#read(own, call));
    if (own === undefined || znode === undefined) {
      this.own = undefined;
      await this.#make(wanted, call);
      const isRestored = own?.owner === call.sessionId;
      if (isRestored)
        this.context.emit({
          type: 'restored',
          path: own.path,
          problem: 'was removed: it has another number now',
        });
      return false;
    }
    if (own.owner === call.sessionId) return this.correct(znode, wanted, call);
    // The znode of an earlier session stays until the servers end that session: the instance would be found
    // twice.
    if (await this.context.zookeeper.remove(own.path, undefined, call)) this.own = undefined;
    return false;
  }

  async unregister(call: ReconcileCall): Promise<void> {
    const own = await this.#find(call);
    if (own !== undefined && (await this.#read(own, call)) !== undefined)
      await this.context.zookeeper.remove(own.path, undefined, call);
    this.own = undefined;
  }

  /** Our znode; undefined when it has gone, or another has its number. */
  async #read(own: OwnZnode, call: ReconcileCall): Promise<Znode | undefined> {
    const znode = await this.context.zookeeper.read(own.path, call);
    if (znode === undefined) return undefined;
    const { createdZxid, owner } = znode.stat;
    if (own.createdZxid !== undefined) return createdZxid === own.createdZxid ? znode : undefined;
    if (owner !== own.owner) return undefined;
    this.own = { ...own, createdZxid };
    return znode;
  }

  async #make({ data, mode }: WantedZnode, call: ReconcileCall): Promise<void> {
    const { sessionId } = call;
    this.checkWrite();
    try {
      const path = await this.context.zookeeper.createWithParents(this.wantedPath, data, mode, call);
      this.own = { path, owner: sessionId, createdZxid: undefined };
    } catch (error) {
      // Created again at once, it might exist twice, under two numbers.
      if (!isNotApplied(error)) {
        if (this.#lost?.sessionId !== sessionId) this.#lost = { sessionId, data: new Set() };
        this.#lost.data.add(data);
      }
      throw error;
    }
  }

  /**
   * Finds our znode. It searches all znodes of the name for those whose creation was not answered: one
   * becomes ours, the others are removed. Those of an earlier session ended with it. In this session the
   * search is repeated each time: a request over a broken connection may still arrive.
   */
  async #find(call: ReconcileCall): Promise<OwnZnode | undefined> {
    if (this.#lost?.sessionId !== call.sessionId) this.#lost = undefined;
    const { zookeeper } = this.context;
    const lost = this.#lost;
    if (lost === undefined) return this.own;
    const { sessionId } = lost;
    const parent = parentOf(this.wantedPath);
    const name = nameAt(this.wantedPath);
    await catchUp(zookeeper, parent, call);
    const names = (await zookeeper.children(parent, call)) ?? [];
    const numbered = names.filter((each) => each.startsWith(name) && NUMBER.test(each.slice(name.length)));
    await concurrentCalls(numbered, async (each) => {
      const path = `${parent === '/' ? '' : parent}/${each}`;
      if (path === this.own?.path) return;
      // One that may not be read is not ours.
      const znode = await zookeeper.read(path, call).catch(ignoring('no-auth'));
      if (!znode || znode.stat.owner !== sessionId) return;
      const { createdZxid, version } = znode.stat;
      const isLost = lost.data.has(znode.data.toString('utf8'));
      if (isLost && this.own === undefined) this.own = { path, owner: sessionId, createdZxid };
      // An overwritten one may also be another registrant's of this session, who would create it again.
      else if (isLost || version > 0) await zookeeper.remove(path, version, call);
    });
    return this.own;
  }
}
