/** The signals that are handed on to the child. */
export const FORWARDED_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;

/** One of {@link FORWARDED_SIGNALS}. */
export type ForwardedSignal = (typeof FORWARDED_SIGNALS)[number];

/** Where signals arrive: the process, or a stand-in. */
export interface SignalSource {
  on(signal: ForwardedSignal, listener: () => void): unknown;
  off(signal: ForwardedSignal, listener: () => void): unknown;
}

/** A signal arrived while there was no child to have it. */
export class Interrupted extends Error {
  constructor(readonly signal: ForwardedSignal) {
    super(`interrupted by ${signal}`);
    this.name = 'Interrupted';
  }
}

/** Takes the signals of this process, and hands them to whoever is in charge. */
export class SignalRelay {
  readonly #interrupted = new AbortController();
  readonly #listeners: (readonly [ForwardedSignal, () => void])[];
  #pending: ForwardedSignal | undefined;
  #receive: ((signal: ForwardedSignal) => void) | undefined;

  constructor(private readonly source: SignalSource) {
    this.#listeners = FORWARDED_SIGNALS.map((signal) => [signal, () => this.#arrived(signal)]);
    for (const [signal, listener] of this.#listeners) source.on(signal, listener);
  }

  /** Aborts with {@link Interrupted} when a signal that asks for an end arrives while nobody receives. */
  get interrupted(): AbortSignal {
    return this.#interrupted.signal;
  }

  /**
   * Signals go to `receive` from now on; without it, they interrupt. One that has interrupted and was not heeded is handed over at once: its sender meant whatever is running.
   */
  handTo(receive: ((signal: ForwardedSignal) => void) | undefined): void {
    this.#receive = receive;
    const pending = this.#pending;
    if (!receive || !pending) return;
    this.#pending = undefined;
    receive(pending);
  }

  /** Gives the signals back to the process. */
  close(): void {
    for (const [signal, listener] of this.#listeners) this.source.off(signal, listener);
  }

  #arrived(signal: ForwardedSignal): void {
    if (this.#receive) this.#receive(signal);
    else if (signal !== 'SIGWINCH') {
      this.#pending ??= signal;
      this.#interrupted.abort(new Interrupted(signal));
    }
  }
}
