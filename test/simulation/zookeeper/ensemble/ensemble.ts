import type { Actor, Scheduler } from '../../world/scheduler.js';
import { Connection } from './connection.js';
import type { DataTree } from './data-tree.js';
import { Leader, type Transaction } from './leader.js';
import type { Request, ServerMessage } from './protocol.js';
import { Server } from './server.js';

/**
 * What is held up for a longer share of a session's time-out is lost: docs/design/simulation.md, what is not
 * covered.
 */
const FLOWS_ON_SHARE = 1 / 2;

/** What one seed decides of the servers. Milliseconds of true time. */
export interface EnsembleConditions {
  readonly servers: number;
  /**
   * The servers' unit of time: sessions last 2 to 20 ticks, and servers report their sessions to the leader
   * every half tick.
   */
  readonly tickMs: number;
  /** After this time without its leader a server drops its clients. */
  readonly syncLimitMs: number;
  /** The time-out of the sessions. */
  readonly grantedMs: number;
  readonly stepMs: number;
  /** How many milliseconds of true time pass while the leader's clock counts one. */
  readonly leaderRate: number;
}

export interface EnsembleOptions extends EnsembleConditions {
  readonly scheduler: Scheduler;
  readonly wallAt: (time: number) => number;
  readonly peerLatencyMs: () => number;
  readonly commitMs: () => number;
  readonly applyLagMs: () => number;
  readonly onExpired?: (sessionId: string) => void;
  /** A transaction has been decided: the tree is as it leaves it. */
  readonly onDecided?: (transaction: Transaction, tree: DataTree) => void;
  readonly onRequest?: (sessionId: string, request: Request) => void;
  readonly onWatch?: (
    sessionId: string,
    type: 'read' | 'children' | 'exists',
    path: string,
    tree: DataTree,
  ) => void;
}

/** The end of a client's connection that is the client's. */
export interface ClientEnd {
  readonly actor: Actor;
  readonly latencyMs: () => number;
  /** Until when nothing passes between the client's machine and this server. */
  readonly heldUntil: (server: number) => number;
  readonly take: (message: ServerMessage) => void;
}

/** The servers, one of which leads. */
export class Ensemble {
  readonly scheduler: Scheduler;
  readonly leader: Leader;
  readonly servers: readonly Server[];
  readonly peerLatencyMs: () => number;
  readonly applyLagMs: () => number;
  #leading = 0;
  #lastCommitAt = 0;

  constructor(private readonly options: EnsembleOptions) {
    const { scheduler, servers, stepMs, leaderRate: rate, wallAt, tickMs } = options;
    this.scheduler = scheduler;
    this.peerLatencyMs = options.peerLatencyMs;
    this.applyLagMs = options.applyLagMs;
    this.leader = new Leader({
      ...{ scheduler, stepMs, rate, wallAt },
      heldUntil: () => this.leadingServer.stalledUntil,
      onExpired: (sessionId) => options.onExpired?.(sessionId),
      onDecided: (transaction) => {
        options.onDecided?.(transaction, this.leader.tree);
        this.#lastCommitAt = Math.max(
          this.#lastCommitAt,
          scheduler.now + (servers === 1 ? 0 : options.commitMs()),
        );
        scheduler.at(this.#lastCommitAt, undefined, () => {
          for (const server of this.servers) server.learn(transaction);
        });
      },
    });
    this.servers = Array.from({ length: servers }, (_, index) => new Server(this, index));
    for (const server of this.servers) server.join();
    const ping = () => {
      const { stalledUntil } = this.leadingServer;
      if (stalledUntil > scheduler.now) return void scheduler.at(stalledUntil, undefined, ping);
      if (this.leader.present)
        for (const server of this.servers) if (server !== this.leadingServer) server.ping();
      scheduler.at(scheduler.now + tickMs / 2, undefined, ping);
    };
    if (servers > 1) ping();
  }

  get leadingServer(): Server {
    return this.servers[this.#leading] as Server;
  }

  /** A socket to a server: `opened` or `closed` comes next. */
  connect(index: number, { actor, latencyMs, heldUntil, take }: ClientEnd): Connection {
    const server = this.servers[index] as Server;
    const connection = new Connection({
      ...{ scheduler: this.scheduler, latencyMs, actor },
      heldUntil: () => Math.max(heldUntil(index), server.stalledUntil),
      toServer: (from, message) => server.take(from, message),
      toClient: take,
    });
    connection.up.send({ kind: 'open' });
    return connection;
  }

  /** The time-out that a client gets which asks for this one. */
  granted(timeoutMs: number): number {
    const { tickMs } = this.options;
    return Math.min(20 * tickMs, Math.max(2 * tickMs, timeoutMs));
  }

  /** The leader is gone, and another one elected after a while. */
  elect(next: number, lastsMs: number): void {
    if (!this.leader.present) return;
    this.leader.present = false;
    for (const server of this.servers) server.leave();
    this.scheduler.at(this.scheduler.now + lastsMs, undefined, () => {
      this.#leading = next % this.servers.length;
      this.leader.elected();
      for (const server of this.servers) server.join();
    });
  }

  /**
   * A server is cut off from its leader. It goes on answering reads until it notices; what is under way is
   * lost, unless it is short.
   *
   * @param lossy whether it notices at once
   */
  cut(index: number, lastsMs: number, lossy: boolean): void {
    const server = this.servers[index] as Server;
    if (server === this.leadingServer || !this.#disturb(server, lastsMs)) return;
    const { scheduler } = this;
    const until = scheduler.now + lastsMs;
    server.cutUntil = until;
    if (!lossy && lastsMs <= this.options.grantedMs * FLOWS_ON_SHARE) return;
    scheduler.at(scheduler.now + (lossy ? 0 : Math.min(lastsMs, this.options.syncLimitMs)), undefined, () => {
      if (!this.leader.present || !server.serving || server === this.leadingServer) return;
      server.leave();
      scheduler.at(until, undefined, () => {
        if (this.leader.present && !server.serving) server.join();
      });
    });
  }

  /** A server stands still. */
  stall(index: number, lastsMs: number): void {
    const server = this.servers[index] as Server;
    const shortMs = Math.min(lastsMs, this.options.grantedMs * FLOWS_ON_SHARE);
    if (this.#disturb(server, shortMs)) server.stalledUntil = this.scheduler.now + shortMs;
  }

  /** A server carries out nothing new for a while. */
  lag(index: number, lastsMs: number): void {
    (this.servers[index] as Server).lagsUntil = this.scheduler.now + lastsMs;
  }

  /** Between two of these faults a server has reported its sessions to the leader. */
  #disturb(server: Server, lastsMs: number): boolean {
    const { now } = this.scheduler;
    if (!this.leader.present || !server.serving || now < Math.max(server.calmAt, this.leadingServer.calmAt))
      return false;
    server.calmAt = now + lastsMs + this.options.grantedMs;
    return true;
  }

  onRequest(sessionId: string, request: Request): void {
    this.options.onRequest?.(sessionId, request);
  }

  onWatch(sessionId: string, type: 'read' | 'children' | 'exists', path: string, tree: DataTree): void {
    this.options.onWatch?.(sessionId, type, path, tree);
  }
}
