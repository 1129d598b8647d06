import { timeoutSignal } from '../../core/base/abort.js';
import { Listeners } from '../../core/base/listeners.js';
import { backoffMs } from '../../core/base/retry.js';
import { shareAnswer } from '../../core/base/share-answer.js';
import type { ConnectString } from './connect-string.js';
import type { LibrarySessionOptions, OpenSession, Session } from './connection/library-session.js';
import type { SessionState } from './session-state.js';

interface SessionKeeperOptions extends Omit<LibrarySessionOptions, 'servers' | 'listener' | 'names'> {
  readonly connect: ConnectString;
  readonly openSession: OpenSession;
  /** A one-shot watch on the znode has fired, its path being that on the servers. */
  readonly onChanged: (path: string, isGone: boolean) => void;
}

/** How long the end of a session may take, in milliseconds. */
const CLOSE_WITHIN_MS = 1_000;
/** A session that lasted this long was a good one: the next follows at once, in milliseconds. */
const GOOD_AFTER_MS = 5_000;
/** Between sessions that do not last, in milliseconds. */
const RENEW_MS = { first: 200, max: 5_000 };

/** Keeps a session: opens a new one when the last has ended, and reports the state. */
export class SessionKeeper {
  #state: SessionState = { status: 'connecting' };
  /** A promise while what it needs is being loaded. */
  #session: Session | Promise<Session>;
  /** Since the last good one. */
  #shortSessions = 0;
  #connectedAt: number | undefined;
  readonly #listeners = new Listeners<SessionState>();
  readonly #news: SessionState[] = [];
  readonly #closing = new AbortController();
  readonly close = shareAnswer(() => this.#end());

  constructor(private readonly options: SessionKeeperOptions) {
    this.#session = this.#open();
  }

  get state(): SessionState {
    return this.#state;
  }

  /** The session to send requests to; only while the state is `connected`. */
  get session(): Session {
    return this.#session as Session;
  }

  /** The current problem, for people; undefined without one. */
  get problem(): string | undefined {
    return this.#loaded?.problem;
  }

  /** See `SessionActivity.heardBy()`. */
  heardBy(at: number): number {
    return this.#loaded?.activity.heardBy(at) ?? Number.NEGATIVE_INFINITY;
  }

  get #loaded() {
    return this.#session instanceof Promise ? undefined : this.#session;
  }

  onState(listener: (state: SessionState) => void): () => void {
    return this.#listeners.add(listener);
  }

  async #end() {
    this.#closing.abort();
    const session = this.#session;
    const limit = timeoutSignal(
      this.options.clock,
      CLOSE_WITHIN_MS,
      () => new Error(`not ended within ${CLOSE_WITHIN_MS} ms`),
    );
    const { signal } = limit;
    const end = session instanceof Promise ? session.then((it) => it.end(signal)) : session.end(signal);
    this.#become({ status: 'closed' });
    await end;
    limit.release();
    this.#listeners.clear();
  }

  #open(): Session | Promise<Session> {
    const { connect, onChanged, openSession, ...options } = this.options;
    const session = openSession({
      ...options,
      servers: connect.servers,
      listener: {
        connected: (facts) => {
          this.#connectedAt ??= options.clock.monotonic();
          this.#become({ status: 'connected', ...facts });
        },
        suspended: () => this.#suspend(),
        troubled: () => this.#troubled(),
        ended: () => this.#renew(),
        changed: onChanged,
      },
    });
    if (session instanceof Promise) {
      void session.then((loaded) => {
        this.#session = loaded;
      });
    }
    return session;
  }

  #suspend() {
    if (this.#state.status !== 'connected') return;
    const { sessionId, timeoutMs } = this.#state;
    this.#become({ status: 'suspended', sessionId, timeoutMs, problem: this.problem });
  }

  #troubled() {
    const { problem } = this;
    const state = this.#state;
    if ((state.status !== 'connecting' && state.status !== 'suspended') || state.problem === problem) return;
    this.#become({ ...state, problem });
  }

  #renew(): void {
    if (this.#closing.signal.aborted) return;
    const { clock, random } = this.options;
    this.#suspend();
    if (this.#state.status === 'suspended')
      this.#become({ status: 'expired', sessionId: this.#state.sessionId });
    this.#become({ status: 'connecting', problem: this.problem });
    if (this.#closing.signal.aborted) return;
    if (this.#connectedAt !== undefined && clock.monotonic() - this.#connectedAt >= GOOD_AFTER_MS)
      this.#shortSessions = 0;
    this.#connectedAt = undefined;
    const pauseMs = backoffMs(RENEW_MS, this.#shortSessions, random);
    this.#shortSessions += 1;
    clock.sleep(pauseMs, this.#closing.signal).then(
      () => {
        this.#session = this.#open();
      },
      () => undefined,
    );
  }

  /** Notifies every listener of each state in order, even if a listener causes the next state. */
  #become(state: SessionState) {
    if (this.#state.status === 'closed') return;
    this.#state = state;
    this.#news.push(state);
    if (this.#news.length > 1) return;
    for (let next = this.#news[0]; next !== undefined; next = this.#news[0]) {
      this.#listeners.notify(next);
      this.#news.shift();
    }
  }
}
