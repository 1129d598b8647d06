import { connect } from 'node:net';
import { aborted } from '../../../core/base/abort.js';
import { formatServer, type ServerAddress } from '../connect-string.js';
import type { ConnectedState } from '../session-state.js';
import { RequestFailure, type TimeSources } from '../zookeeper.js';
import {
  CONNECTING,
  type ConnectionManager,
  connectionOf,
  type LibraryClient,
  MessageGuard,
} from './library-internals.js';
import { Op, Request } from './messages.js';
import { type NameResolver, sharedResolver } from './name-resolver.js';
import { RequestPipeline } from './request-pipeline.js';
import { ServerSearch } from './server-search.js';
import { fallsSilent, SessionActivity } from './session-activity.js';
import { CLOSED_BY_PEER, connectSecurely, noSession, type PreparedTls, tlsProblem } from './tls.js';

/** Receives the events of a session. Must not throw. */
interface SessionListener {
  /** The session is confirmed over a connection, for the first time or again. */
  connected(facts: Omit<ConnectedState, 'status'>): void;
  /** The connection of a confirmed session is lost. Every request under way has failed. */
  suspended(): void;
  /** Another attempt to connect has failed, or the first. */
  troubled(): void;
  /** The servers have ended the session, or refuse the credentials. Nothing more comes of it. */
  ended(why: 'expired' | 'auth-failed'): void;
  /** A one-shot watch on the znode has fired; `isGone` when because the znode was removed. */
  changed(path: string, isGone: boolean): void;
}

export interface LibraryConnectionOptions extends TimeSources {
  readonly servers: readonly ServerAddress[];
  /** The requested time-out of the session, in milliseconds. */
  readonly sessionTimeoutMs: number;
  readonly listener: SessionListener;
  readonly tls?: PreparedTls | undefined;
  /** Finds the servers' addresses. @default the one that all connections of the process share */
  readonly names?: NameResolver;
}

/**
 * The longest time for which a server may be silent before it is probed, and then to answer, in milliseconds,
 * however long the session is.
 */
const LONGEST_SILENCE_MS = 5_000;
/**
 * A connection that lasted this long was a good one: the search for the next begins without a pause, in
 * milliseconds.
 */
const GOOD_AFTER_MS = 1_000;

/**
 * With TLS, how much longer an attempt may take once there is a connection, in milliseconds: a server's first
 * handshake may take seconds, and a second attempt fits into the 5 s of a call.
 */
const HANDSHAKE_MS = { min: 2_000, max: 3_500 };

/** One attempt to reach a server, and the connection that comes of it. */
interface ConnectionAttempt {
  readonly server: string;
  /** Ends with the connection. */
  readonly over: AbortController;
  /** Why it ended, as far as that is known. */
  problem?: string;
  /** When the session was requested over it, and when it was confirmed, on the monotonic clock. */
  askedAt?: number;
  confirmedAt?: number;
  /** Whether its session has been reported. */
  isReported?: boolean;
}

/**
 * The connection of one session, over any number of sockets, with corrections of the library's errors on the
 * instance.
 *
 * All waiting uses the injected clock. The library's own search for a server, its time-outs and its watches
 * are replaced: they cannot be stopped, do not notice a server that does not answer, or throw where no code
 * can catch it.
 */
export class LibraryConnection {
  readonly activity = new SessionActivity();
  readonly #manager: ConnectionManager;
  readonly #guard: MessageGuard;
  readonly #search: ServerSearch;
  readonly #over = new AbortController();
  protected readonly requests: RequestPipeline;
  readonly #problems = new Map<string, string>();
  #attempt: ConnectionAttempt | undefined;
  #suspendedAt: number | undefined;
  /** The number of answers before the current connection, or before the last one. */
  #answersBefore = 0;
  /** Whether the last connection was closed before any request was answered: the next one is tested first. */
  #isUnproven = false;
  #onConnected: (() => void) | undefined;

  /** @param client not connected yet */
  constructor(
    protected readonly client: LibraryClient,
    private readonly options: LibraryConnectionOptions,
  ) {
    const { clock, listener, names = sharedResolver } = options;
    const manager = connectionOf(client);
    this.#manager = manager;
    this.#search = new ServerSearch({ ...options, names });
    // The library knows of no watches: a watch reads again after each reconnect, so there is nothing to hand
    // to the next server.
    this.#guard = new MessageGuard(manager, {
      changed: (path, isGone) => listener.changed(path, isGone),
      answered: (xid, answer) => this.requests.answered(xid, answer),
      nonsense: (problem) => this.#drop(problem),
    });
    this.requests = new RequestPipeline({
      manager,
      guard: this.#guard,
      activity: this.activity,
      clock,
      unusable: (problem) => this.#drop(problem),
    });
    manager.connect = () => {
      manager.setState(CONNECTING);
      void this.#connectNext();
    };
    const asked = manager.onSocketConnected.bind(manager);
    manager.onSocketConnected = () => {
      this.#guard.readAt = clock.monotonic();
      if (this.#attempt) this.#attempt.askedAt = this.#guard.readAt;
      asked();
    };
    const closed = manager.onSocketClosed.bind(manager);
    manager.onSocketClosed = (hadError) => {
      this.#disconnected();
      closed(hadError);
    };
    client.on('connected', () => this.#confirmed());
    client.on('expired', () => this.#end('expired'));
    client.on('authenticationFailed', () => this.#end('auth-failed'));
    client.connect();
  }

  /** The problem of each server at its last attempt; undefined while nothing is known. */
  get problem(): string | undefined {
    const problems = [...this.#problems.values()];
    return problems.length === 0 ? undefined : problems.join('; ');
  }

  /**
   * Begins the current turn of the event loop, whose requests are sent in one write at its end.
   * @param now the time, if the clock was just read
   */
  turn(now?: number): void {
    this.requests.turn(now);
  }

  /**
   * Ends the session at the servers. Without a connection, waits for one, since the session's znodes stay
   * otherwise. Leaves nothing open, also when `signal` aborts first.
   */
  async end(signal: AbortSignal): Promise<void> {
    // Not where the servers have ended it already: then none comes.
    if (!this.requests.isOpen && this.#suspendedAt !== undefined && !this.#over.signal.aborted) {
      const connected = new Promise<void>((resolve) => {
        this.#onConnected = resolve;
      });
      await Promise.race([connected, aborted(signal)]);
    }
    const socket = this.#manager.socket;
    if (this.requests.isOpen && socket && !signal.aborted) {
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      // In this turn: the process may be about to exit.
      this.requests.flush();
      this.client.close();
      await Promise.race([closed, aborted(signal)]);
    }
    this.dispose();
  }

  /**
   * Gives up the connection, where there is one, since its server does not answer. Keeps the session, and
   * tries the next server at once.
   */
  giveUp(problem: string): void {
    if (this.requests.isOpen) this.#drop(problem);
  }

  /**
   * Lets go of everything, and of the session, which ends at the servers when its time-out has passed.
   * Idempotent.
   */
  dispose(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#attempt?.over.abort();
    this.requests.isOpen = false;
    this.#onConnected?.();
    this.requests.fail(new RequestFailure('connection-loss', true, 'the session is over'));
    this.#manager.socket?.destroy();
  }

  /** Opens a socket to the next address for the library, unless all is over. */
  async #connectNext(): Promise<void> {
    const { clock, sessionTimeoutMs, listener, tls } = this.options;
    const manager = this.#manager;
    const { signal } = this.#over;
    const next = () => this.#search.next(signal).catch(() => undefined);
    let candidate = await next();
    while (candidate?.status === 'unresolved' && !signal.aborted) {
      this.#note(formatServer(candidate.server), candidate.problem);
      listener.troubled();
      candidate = await next();
    }
    if (candidate?.status !== 'found' || signal.aborted) return;
    const { server, address, limitMs } = candidate;
    // A new ensemble is behind the state that this client has seen. It would refuse the client for ever,
    // instead of reporting the session as expired.
    if (
      this.#suspendedAt !== undefined &&
      clock.monotonic() - this.#suspendedAt > this.client.getSessionTimeout()
    )
      manager.zxid = Buffer.alloc(8);
    const attempt: ConnectionAttempt = { server: formatServer(server), over: new AbortController() };
    this.#attempt = attempt;
    this.#guard.reset();
    const socket = tls ? connectSecurely(tls, server, address) : connect(server.port, address);
    manager.socket = socket.setNoDelay();
    socket.on(tls ? 'secureConnect' : 'connect', () => manager.onSocketConnected());
    socket.on('data', (bytes) => manager.onSocketData(bytes));
    socket.on('drain', () => manager.onSocketDrain());
    socket.on('close', (hadError) => manager.onSocketClosed(hadError));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const isNew = attempt.confirmedAt === undefined;
      const problem = isNew && tls && tlsProblem(error, tls, attempt.askedAt !== undefined);
      // Whether a closed connection fails by one of those errors, or just ends, is a matter of chance.
      if (problem) attempt.problem ??= problem;
      else if (!CLOSED_BY_PEER.includes(error.code)) attempt.problem ??= error.message;
    });
    let waitedMs = 0;
    const wait = async (ms: number) => {
      waitedMs += ms;
      await clock.sleep(ms, attempt.over.signal);
    };
    try {
      await wait(limitMs);
      if (tls && !socket.connecting)
        await wait(Math.min(HANDSHAKE_MS.max, Math.max(HANDSHAKE_MS.min, sessionTimeoutMs / 3)));
    } catch {
      return;
    }
    if (this.requests.isOpen || this.#attempt !== attempt) return;
    this.#search.unanswered();
    this.#drop(`no session within ${Math.round(waitedMs)} ms`);
  }

  #confirmed(): void {
    const attempt = this.#attempt;
    if (this.#over.signal.aborted || !attempt) return;
    const { clock, listener } = this.options;
    this.requests.isOpen = true;
    // This file probes a silent server itself, by a request whose answer shows when it was sent. The library's
    // timer would start again with each message.
    this.#manager.pingTimeout = 0;
    this.#search.connected();
    this.#suspendedAt = undefined;
    this.#problems.clear();
    attempt.confirmedAt = clock.monotonic();
    const timeoutMs = this.client.getSessionTimeout();
    this.activity.begin(attempt.askedAt ?? Number.NEGATIVE_INFINITY, timeoutMs);
    const intervalMs = Math.min(LONGEST_SILENCE_MS, timeoutMs / 3);
    const { remoteAddress = '', remotePort = 0 } = this.#manager.socket ?? {};
    const lastHeard = () => this.#guard.lastHeard;
    const ask = () => {
      // All answers from now on come after this request.
      this.#guard.readAt = clock.monotonic();
      void this.#probe();
    };
    void fallsSilent({ clock, intervalMs, lastHeard, ask, signal: attempt.over.signal }).then((isSilent) => {
      if (isSilent) this.#drop(`no answer for ${Math.round(2 * intervalMs)} ms`);
    });
    const sessionId = this.client.getSessionId().toString('hex');
    const report = () => {
      attempt.isReported = true;
      listener.connected({
        sessionId,
        timeoutMs,
        server: formatServer({ host: remoteAddress, port: remotePort }),
      });
    };
    this.#answersBefore = this.requests.answers;
    if (this.#onConnected) this.#onConnected();
    else if (this.#isUnproven)
      // A request over the connection has to be answered first, be it by a refusal.
      void this.#probe().then(() => {
        if (!attempt.over.signal.aborted && this.requests.answers > this.#answersBefore) report();
      });
    else report();
  }

  /** Sends a cheap request, which is answered by whichever server there is. Never rejects. */
  #probe() {
    return this.requests.send(new Request(Op.exists, ['/', false]), () => undefined).catch(() => undefined);
  }

  /** The connection is no longer usable. Once its socket has closed, the library tries the next server. */
  #disconnected(): void {
    const attempt = this.#attempt;
    if (!attempt || attempt.over.signal.aborted) return;
    const { clock, listener, tls } = this.options;
    const wasConnected = this.requests.isOpen;
    this.requests.isOpen = false;
    if (attempt.confirmedAt !== undefined && clock.monotonic() - attempt.confirmedAt >= GOOD_AFTER_MS)
      this.#search.succeeded();
    attempt.over.abort();
    const problem =
      attempt.problem ??
      (wasConnected || (tls && attempt.askedAt === undefined) ? 'the connection was closed' : noSession(tls));
    const text = this.#note(attempt.server, problem);
    // Credentials that were not written yet: the library gives them to every connection again.
    this.#manager.packetQueue.queue.length = 0;
    this.requests.fail(new RequestFailure('connection-loss', true, text));
    if (wasConnected) {
      this.#suspendedAt = clock.monotonic();
      this.#isUnproven = this.requests.answers === this.#answersBefore;
    }
    if (attempt.isReported) listener.suspended();
    else listener.troubled();
  }

  #end(why: 'expired' | 'auth-failed') {
    if (this.#over.signal.aborted) return;
    if (why === 'auth-failed') {
      if (this.#attempt) this.#note(this.#attempt.server, 'the credentials are refused');
      this.requests.fail(new RequestFailure('auth-failed', true, 'the servers refuse the credentials'));
    }
    this.dispose();
    this.options.listener.ended(why);
  }

  /** Breaks the connection, not the session: the library tries the next server. */
  #drop(problem: string) {
    if (this.#attempt) this.#attempt.problem ??= problem;
    this.#manager.socket?.destroy();
    // The socket says so only a little later; nothing may be sent until then.
    this.#disconnected();
  }

  /** Records the problem of a server, and returns it as it is reported. */
  #note(server: string, problem: string): string {
    const text = problem.includes(server) ? problem : `${server}: ${problem}`;
    this.#problems.set(server, text);
    return text;
  }
}
