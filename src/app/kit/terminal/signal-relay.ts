/** The signals that are handed on to the child. */
const FORWARDED_SIGNALS = [
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGWINCH',
] as const;

/** A signal that is handed on to the child. */
export type ForwardedSignal = (typeof FORWARDED_SIGNALS)[number];

/** Where signals arrive: the process, or a substitute. */
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

/** Takes the signals of this process, and hands them to one receiver. */
export class SignalRelay {
  readonly #interrupted = new AbortController();
  readonly #listeners: (readonly [ForwardedSignal, () => void])[];
  /** Each once, as the system keeps those that wait. */
  readonly #pending = new Set<ForwardedSignal>();
  /** Whether a signal to any process of the command has asked for an end so far. */
  hasAskedToStop = false;
  #receive: ((signal: ForwardedSignal) => void) | undefined;

  constructor(private readonly source: SignalSource) {
    this.#listeners = FORWARDED_SIGNALS.map((signal) => [signal, () => this.#arrived(signal)]);
    for (const [signal, listener] of this.#listeners) source.on(signal, listener);
  }

  /**
   * Aborts with {@link Interrupted} when a signal that asks for an end arrives while there is no receiver.
   */
  get interrupted(): AbortSignal {
    return this.#interrupted.signal;
  }

  /**
   * Signals go to `receive` from now on; without it, they interrupt. It gets at once those that have
   * interrupted and were not heeded.
   */
  handTo(receive: ((signal: ForwardedSignal) => void) | undefined): void {
    this.#receive = receive;
    if (!receive) return;
    this.#pending.forEach(receive);
    this.#pending.clear();
  }

  /** Gives the signals back to the process. */
  close(): void {
    for (const [signal, listener] of this.#listeners) this.source.off(signal, listener);
  }

  #arrived(signal: ForwardedSignal) {
    this.hasAskedToStop ||= asksToStop(signal);
    if (this.#receive) this.#receive(signal);
    else if (signal !== 'SIGWINCH') {
      this.#pending.add(signal);
      this.#interrupted.abort(new Interrupted(signal));
    }
  }
}

/**
 * These ask the command to stop. Others do not: many programs read their settings again at SIGHUP, a JVM
 * lists its threads at SIGQUIT, and work on.
 */
const STOPPING: readonly ForwardedSignal[] = ['SIGTERM', 'SIGINT'];

/** Whether a signal asks the command to stop. */
export function asksToStop(signal: ForwardedSignal): boolean {
  return STOPPING.includes(signal);
}

/**
 * Lets the first signal that asks for an end wait until `prepare` has settled, and everything else through at
 * once. A second one that asks for an end does not wait, and takes the first one with it: its sender is in a
 * hurry. SIGHUP and SIGQUIT go through unprepared, though a program without a handler ends by them: what is
 * prepared for cannot be taken back, and most that have one continue.
 *
 * @param prepare settles soon: how long the child learns nothing is its business. One that rejects holds
 * nothing up, and has to report it itself
 */
export function deferStop(deliver: (signal: ForwardedSignal) => void, prepare: () => Promise<void>) {
  let waiting: ForwardedSignal | undefined;
  let prepared = false;
  const release = () => {
    const signal = waiting;
    waiting = undefined;
    if (signal !== undefined) deliver(signal);
  };
  return {
    /** Hands a signal on: at once, unless it asks for an end that is still being prepared for. */
    pass(signal: ForwardedSignal): void {
      const stops = asksToStop(signal);
      if (!stops || prepared) {
        if (stops) release();
        deliver(signal);
        return;
      }
      prepared = true;
      waiting = signal;
      void prepare().then(release, release);
    },
    /** A signal that waits has no receiver any more. */
    drop(): void {
      waiting = undefined;
    },
  };
}
