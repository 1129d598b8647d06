import type { Connection, Pending } from './connection.js';
import { Code, DataTree } from './data-tree.js';
import type { Ensemble } from './ensemble.js';
import type { Transaction } from './leader.js';
import { Line } from './line.js';
import { type ClientMessage, isWrite, operationsOf, type Reply, type Request } from './protocol.js';
import { WatchTable } from './watch-table.js';

/**
 * One server: the leader, or one that follows it and may be behind. Reads are its own; for writes it asks the
 * leader.
 */
export class Server {
  /** As far as this server knows. */
  tree = new DataTree();
  /** The last transaction that it has carried out. */
  applied = 0;
  /** False while it looks for a leader: it takes no clients. */
  serving = true;
  /** Nothing passes between it and the leader before. */
  cutUntil = 0;
  /** It stands still until then. */
  stalledUntil = 0;
  /** Until then it is spared further faults: docs/design/simulation.md, what is not covered. */
  calmAt = 0;
  /** It carries out nothing new before. */
  lagsUntil = 0;
  readonly watches = new WatchTable();
  readonly #connections = new Set<Connection>();
  readonly #bySession = new Map<string, Connection>();
  /** What is to be done once a transaction has been carried out here. */
  readonly #onApplied = new Map<number, (transaction: Transaction) => void>();
  readonly #toLeader: Line<() => void>;
  readonly #fromLeader: Line<() => void>;
  /** Sessions that were heard of since the last report to the leader. */
  #touched = new Set<string>();
  #lastApplyAt = 0;
  #epoch = 0;

  constructor(
    private readonly ensemble: Ensemble,
    readonly index: number,
  ) {
    const { scheduler } = ensemble;
    const latencyMs = () => (this.#leads ? 0 : ensemble.peerLatencyMs());
    const deliver = (act: () => void) => act();
    const heldUntil = () =>
      this.#leads ? this.stalledUntil : Math.max(this.cutUntil, ensemble.leadingServer.stalledUntil);
    this.#toLeader = new Line({ scheduler, latencyMs, deliver, heldUntil });
    this.#fromLeader = new Line({
      scheduler,
      latencyMs,
      deliver,
      heldUntil: () => Math.max(this.cutUntil, this.stalledUntil),
    });
  }

  get #leads(): boolean {
    return this.ensemble.leadingServer === this;
  }

  /** What a client sends. */
  take(connection: Connection, message: ClientMessage): void {
    if (message.kind === 'closed') this.#forget(connection);
    else if (!this.serving) connection.closeServer();
    else if (message.kind === 'open') {
      this.#connections.add(connection);
      connection.down.send({ kind: 'opened' });
    } else if (message.kind === 'connect') this.#connect(connection, message);
    else if (connection.sessionId !== undefined)
      this.#take(connection, connection.sessionId, message.request);
  }

  #connect(
    connection: Connection,
    { sessionId, zxid, timeoutMs }: Extract<ClientMessage, { kind: 'connect' }>,
  ): void {
    // A client must not see what is older than what it has seen.
    if (zxid > this.applied) {
      this.#close(connection);
      return;
    }
    const { leader } = this.ensemble;
    if (sessionId === undefined) {
      this.#toLeader.send(() => {
        const { sessionId: made, transaction } = leader.createSession(
          this.index,
          this.ensemble.granted(timeoutMs),
        );
        this.#onApplied.set(transaction.zxid, () =>
          this.#attach(connection, made, this.ensemble.granted(timeoutMs)),
        );
      });
      return;
    }
    const old = this.#bySession.get(sessionId);
    if (old) this.#close(old);
    this.#toLeader.send(() => {
      const granted = leader.moveSession(sessionId, this.index);
      this.#fromLeader.send(() => {
        if (granted !== undefined) this.#attach(connection, sessionId, granted);
        else {
          if (connection.serverOpen) connection.down.send({ kind: 'expired' });
          this.#close(connection);
        }
      });
    });
  }

  #attach(connection: Connection, sessionId: string, timeoutMs: number): void {
    if (!connection.serverOpen || !this.serving) return;
    connection.sessionId = sessionId;
    this.#bySession.set(sessionId, connection);
    connection.down.send({ kind: 'session', sessionId, timeoutMs });
  }

  #take(connection: Connection, sessionId: string, request: Request): void {
    this.ensemble.onRequest(sessionId, request);
    const { leader } = this.ensemble;
    if (this.#leads) leader.touch(sessionId);
    else this.#touched.add(sessionId);
    const pending: Pending = { request, reply: undefined };
    connection.pending.push(pending);
    if (isWrite(request)) {
      this.#toLeader.send(() => {
        const verdict = leader.decide(
          sessionId,
          this.index,
          request.type === 'close' ? undefined : operationsOf(request),
        );
        this.#onApplied.set(verdict.transaction.zxid, (transaction) => {
          const { code, index } = verdict;
          pending.reply = {
            zxid: transaction.zxid,
            code,
            index,
            value: code === Code.ok ? this.#value(request, transaction) : undefined,
          };
          this.#drain(connection);
        });
      });
    }
    this.#drain(connection);
  }

  /** Answers in the order of the requests: a read waits for the writes before it. */
  #drain(connection: Connection): void {
    while (connection.serverOpen) {
      const [first] = connection.pending;
      if (first === undefined) return;
      if (!isWrite(first.request)) first.reply = this.#read(connection, first.request);
      if (first.reply === undefined) return;
      connection.pending.shift();
      connection.down.send({ kind: 'reply', reply: first.reply });
      if (first.request.type === 'close') this.#close(connection);
    }
  }

  #read(connection: Connection, request: Request): Reply {
    const { tree, applied: zxid } = this;
    if (!('watch' in request)) throw new Error('not a read');
    const { path, type, watch } = request;
    const stat = tree.stat(path);
    if (watch && (stat !== undefined || type === 'exists')) {
      if (type === 'children') this.watches.addChildren(path, connection);
      else this.watches.addData(path, connection);
      this.ensemble.onWatch(connection.sessionId as string, type, path, tree);
    }
    if (stat === undefined) return { zxid, code: Code.noNode };
    if (type === 'exists') return { zxid, code: Code.ok, value: stat };
    if (type === 'children') return { zxid, code: Code.ok, value: tree.children(path) };
    return { zxid, code: Code.ok, value: { data: tree.data(path), stat } };
  }

  /** The leader announces a transaction that a majority has. */
  learn(transaction: Transaction): void {
    const { scheduler } = this.ensemble;
    this.#fromLeader.send(() => {
      if (!this.serving) return;
      const epoch = this.#epoch;
      const lag = this.#leads ? 0 : this.ensemble.applyLagMs();
      this.#lastApplyAt = Math.max(this.#lastApplyAt, scheduler.now + lag, this.lagsUntil);
      const apply = () => {
        if (epoch !== this.#epoch) return;
        if (this.stalledUntil > scheduler.now) scheduler.at(this.stalledUntil, undefined, apply);
        else this.#apply(transaction);
      };
      scheduler.at(this.#lastApplyAt, undefined, apply);
    });
  }

  /** The leader asks which sessions are heard of here. */
  ping(): void {
    this.#fromLeader.send(() => {
      if (!this.serving) return;
      const touched = this.#touched;
      this.#touched = new Set();
      this.#toLeader.send(() => {
        for (const sessionId of touched) this.ensemble.leader.touch(sessionId);
      });
    });
  }

  #apply(transaction: Transaction): void {
    const { zxid, changes, closes } = transaction;
    if (zxid <= this.applied) return;
    for (const change of changes) {
      this.tree.apply(change, transaction);
      this.watches.trigger(change, (connection, path, isGone) => {
        if (connection.serverOpen) connection.down.send({ kind: 'changed', path, isGone });
      });
    }
    this.applied = zxid;
    this.#onApplied.get(zxid)?.(transaction);
    this.#onApplied.delete(zxid);
    const closed = closes === undefined ? undefined : this.#bySession.get(closes);
    if (closed) this.#close(closed);
  }

  #value(request: Request, { changes }: Transaction): unknown {
    const [first] = changes;
    if (request.type === 'create')
      return first && { path: first.path, createdZxid: this.tree.stat(first.path)?.createdZxid };
    if (request.type === 'set') return this.tree.stat(request.path);
    return undefined;
  }

  #close(connection: Connection): void {
    connection.closeServer();
    this.#forget(connection);
  }

  #forget(connection: Connection): void {
    connection.closeServer();
    this.#connections.delete(connection);
    this.watches.forget(connection);
    const { sessionId } = connection;
    if (sessionId !== undefined && this.#bySession.get(sessionId) === connection)
      this.#bySession.delete(sessionId);
  }

  /** It has lost its leader: it drops its clients, and what is under way. */
  leave(): void {
    this.serving = false;
    this.#epoch += 1;
    for (const connection of [...this.#connections]) this.#close(connection);
    this.#onApplied.clear();
    this.#touched.clear();
    this.watches.clear();
    this.#toLeader.drop();
    this.#fromLeader.drop();
  }

  /** It follows a leader again, and has all that was decided. */
  join(): void {
    const { leader } = this.ensemble;
    this.tree = leader.tree.clone();
    this.applied = leader.zxid;
    this.#lastApplyAt = 0;
    this.serving = true;
  }
}
