import { aborted } from '../../../src/core/base/abort.js';
import type {
  LibrarySessionOptions,
  Session,
} from '../../../src/zookeeper/client/connection/library-session.js';
import { failureOf, SESSION_MOVED } from '../../../src/zookeeper/client/connection/messages.js';
import type { NameResolver } from '../../../src/zookeeper/client/connection/name-resolver.js';
import { ServerSearch } from '../../../src/zookeeper/client/connection/server-search.js';
import { fallsSilent, SessionActivity } from '../../../src/zookeeper/client/connection/session-activity.js';
import {
  type CreatedZnode,
  type CreateMode,
  type MultiOperation,
  RequestFailure,
  type Znode,
  type ZnodeStat,
} from '../../../src/zookeeper/client/zookeeper.js';
import type { ClientHost } from './client-host.js';
import type { Connection } from './ensemble/connection.js';
import type { Reply, Request, ServerMessage } from './ensemble/protocol.js';

/** As in `library-connection.ts`, in milliseconds. */
const LONGEST_SILENCE_MS = 5_000;
const GOOD_AFTER_MS = 1_000;

/** One attempt to reach a server, and the connection that comes of it. */
interface Attempt {
  readonly connection: Connection;
  readonly over: AbortController;
  readonly server: string;
  askedAt: number;
  confirmedAt: number | undefined;
}

interface UnderWay {
  readonly sentAt: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (failure: RequestFailure) => void;
}

/** Names that end in their server's number. */
const NAMES = {
  resolve: async (host: string) => ({ status: 'found', addresses: [host] }),
} as unknown as NameResolver;

/**
 * One session with the simulated servers: does what `LibrarySession` does, over a simulated network, and with
 * the shipped search for a server, watch for silence and record of what was sent.
 */
export class SimulatedSession implements Session {
  readonly activity = new SessionActivity();
  readonly #search: ServerSearch;
  readonly #over = new AbortController();
  #underWay: UnderWay[] = [];
  #attempt: Attempt | undefined;
  #connected = false;
  #suspendedAt: number | undefined;
  #sessionId: string | undefined;
  #zxid = 0;
  #lastHeard = 0;
  #problem: string | undefined;
  #onConnected: (() => void) | undefined;

  constructor(
    private readonly options: LibrarySessionOptions,
    private readonly host: ClientHost,
  ) {
    this.#search = new ServerSearch({ ...options, names: NAMES });
    void this.#connectNext();
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  async create(path: string, data: Buffer, mode: CreateMode): Promise<string> {
    return (await this.createWithZxid(path, data, mode)).path;
  }

  createWithZxid(path: string, data: Buffer, mode: CreateMode): Promise<CreatedZnode> {
    return this.#request({ type: 'create', path, data, mode });
  }

  remove(path: string, version: number): Promise<void> {
    return this.#request({ type: 'remove', path, version });
  }

  setData(path: string, data: Buffer, version: number): Promise<ZnodeStat> {
    return this.#request({ type: 'set', path, data, version });
  }

  read(path: string, watch: boolean): Promise<Znode> {
    return this.#request({ type: 'read', path, watch });
  }

  children(path: string, watch: boolean): Promise<readonly string[]> {
    return this.#request({ type: 'children', path, watch });
  }

  exists(path: string, watch: boolean): Promise<boolean> {
    return this.#request({ type: 'exists', path, watch }).then(
      () => true,
      (error: RequestFailure) => {
        if (error.fault === 'no-node') return false;
        throw error;
      },
    );
  }

  multi(operations: readonly MultiOperation[]): Promise<void> {
    return this.#request({ type: 'multi', operations });
  }

  #request<T>(request: Request): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const attempt = this.#attempt;
      if (!this.#connected || !attempt) {
        reject(new RequestFailure('connection-loss', false, 'there is no connection'));
        return;
      }
      const post = () => {
        if (this.#attempt !== attempt || !this.#connected) {
          reject(new RequestFailure('connection-loss', false, 'there is no connection'));
          return;
        }
        this.#underWay.push({
          sentAt: this.options.clock.monotonic(),
          resolve: resolve as (value: unknown) => void,
          reject,
        });
        this.#send(attempt.connection, request);
      };
      // Reads of watches go behind the calls of their turn.
      if ('watch' in request && request.watch) this.host.atEndOfTurn(post);
      else post();
    });
  }

  #send(connection: Connection, request: Request): void {
    const fault = this.host.fault();
    if (fault !== 'request-lost')
      connection.up.send({ kind: 'request', request }, typeof fault === 'number' ? fault : 0);
    if (typeof fault !== 'number') connection.loseReplies();
  }

  /** As `LibraryConnection.end`. */
  async end(signal: AbortSignal): Promise<void> {
    if (!this.#connected && this.#suspendedAt !== undefined && !this.#over.signal.aborted) {
      const connected = new Promise<void>((resolve) => {
        this.#onConnected = resolve;
      });
      await Promise.race([connected, aborted(signal)]);
    }
    if (this.#connected && !signal.aborted)
      await Promise.race([this.#request({ type: 'close' }).catch(() => undefined), aborted(signal)]);
    this.dispose();
  }

  /** Here no time passes between the beginning of a call and its request. */
  turn(now = this.options.clock.monotonic()): {
    readonly socket: undefined;
    readonly sentAt: number;
    readonly last: (() => void)[];
  } {
    return { socket: undefined, sentAt: now, last: [] };
  }

  giveUp(problem: string): void {
    if (this.#connected) this.#drop(problem);
  }

  dispose(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#attempt?.over.abort();
    this.#connected = false;
    this.#onConnected?.();
    this.#failAll(new RequestFailure('connection-loss', true, 'the session is over'));
    this.#attempt?.connection.closeClient(false);
  }

  /** The process has been killed: its sockets are closed by its system. */
  kill(): void {
    this.#attempt?.connection.closeClient(false);
  }

  async #connectNext(): Promise<void> {
    const { clock, sessionTimeoutMs } = this.options;
    const { signal } = this.#over;
    const candidate = await this.#search.next(signal).catch(() => undefined);
    if (candidate?.status !== 'found' || signal.aborted) return;
    const { server, limitMs } = candidate;
    if (this.#suspendedAt !== undefined && clock.monotonic() - this.#suspendedAt > sessionTimeoutMs)
      this.#zxid = 0;
    const over = new AbortController();
    const connection = this.host.connect(Number(server.host.replace('server-', '')), (message) =>
      this.#take(attempt, message),
    );
    const attempt: Attempt = {
      connection,
      over,
      server: `${server.host}:${server.port}`,
      askedAt: 0,
      confirmedAt: undefined,
    };
    this.#attempt = attempt;
    const isLate = await clock.sleep(limitMs, over.signal).then(
      () => true,
      () => false,
    );
    if (!isLate || this.#connected || this.#attempt !== attempt) return;
    this.#search.unanswered();
    this.#drop(`no session within ${Math.round(limitMs)} ms`);
  }

  #take(attempt: Attempt, message: ServerMessage): void {
    if (this.#attempt !== attempt || this.#over.signal.aborted) return;
    const { clock, listener, sessionTimeoutMs } = this.options;
    this.#lastHeard = clock.monotonic();
    if (message.kind === 'closed') this.#disconnected('the connection was closed');
    else if (message.kind === 'opened') {
      attempt.askedAt = clock.monotonic();
      attempt.connection.up.send({
        kind: 'connect',
        sessionId: this.#sessionId,
        zxid: this.#zxid,
        timeoutMs: sessionTimeoutMs,
      });
    } else if (message.kind === 'session') this.#confirmed(attempt, message.sessionId, message.timeoutMs);
    else if (message.kind === 'changed') listener.changed(message.path, message.isGone);
    else if (message.kind === 'reply') this.#answered(message.reply);
    else {
      this.dispose();
      listener.ended('expired');
    }
  }

  #answered({ zxid, code, index, value }: Reply): void {
    const first = this.#underWay.shift();
    if (first === undefined) return;
    this.#zxid = Math.max(this.#zxid, zxid);
    if (this.activity.isNews(first.sentAt))
      this.activity.answered(first.sentAt, this.options.clock.monotonic());
    if (code === 0) first.resolve(value);
    else first.reject(failureOf(code, index));
    if (code === SESSION_MOVED) this.#drop('the session has moved to another server');
  }

  #confirmed(attempt: Attempt, sessionId: string, timeoutMs: number): void {
    const { clock, listener } = this.options;
    this.#connected = true;
    this.#search.connected();
    this.#suspendedAt = undefined;
    this.#sessionId = sessionId;
    this.#problem = undefined;
    attempt.confirmedAt = clock.monotonic();
    this.activity.begin(attempt.askedAt, timeoutMs);
    const intervalMs = Math.min(LONGEST_SILENCE_MS, timeoutMs / 3);
    const ask = () => void this.#request({ type: 'exists', path: '/', watch: false }).catch(() => undefined);
    void fallsSilent({
      clock,
      intervalMs,
      lastHeard: () => this.#lastHeard,
      ask,
      signal: attempt.over.signal,
    }).then((isSilent) => {
      if (isSilent) this.#drop(`no answer for ${Math.round(2 * intervalMs)} ms`);
    });
    if (this.#onConnected) this.#onConnected();
    else listener.connected({ sessionId, timeoutMs, server: attempt.server });
  }

  #disconnected(problem: string): void {
    const attempt = this.#attempt;
    if (!attempt || attempt.over.signal.aborted) return;
    const { clock, listener } = this.options;
    const wasConnected = this.#connected;
    this.#connected = false;
    if (attempt.confirmedAt !== undefined && clock.monotonic() - attempt.confirmedAt >= GOOD_AFTER_MS)
      this.#search.succeeded();
    attempt.over.abort();
    this.#problem = `${attempt.server}: ${problem}`;
    this.#failAll(new RequestFailure('connection-loss', true, this.#problem));
    if (wasConnected) {
      this.#suspendedAt = clock.monotonic();
      listener.suspended();
    } else listener.troubled();
    if (!this.#over.signal.aborted) void this.#connectNext();
  }

  #drop(problem: string): void {
    this.#attempt?.connection.closeClient(this.host.losesSent());
    this.#disconnected(problem);
  }

  #failAll(failure: RequestFailure): void {
    const failing = this.#underWay;
    this.#underWay = [];
    for (const { reject } of failing) reject(failure);
  }
}
