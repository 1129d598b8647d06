import type { ForwardedSignal } from './signal-relay.js';

/** Signals on their way to a child. */
export interface DeferredStop {
  /** Hands a signal on: at once, unless it asks for an end that is still being prepared for. */
  pass(signal: ForwardedSignal): void;
  /** There is nobody left to have a signal that waits. */
  drop(): void;
}

/** These ask the command to stop. Others do not: many programs read their settings again at SIGHUP, a JVM tells its threads at SIGQUIT, and work on. */
const STOPPING: readonly ForwardedSignal[] = ['SIGTERM', 'SIGINT'];

/** Whether a signal asks the command to stop. */
export function asksToStop(signal: ForwardedSignal): boolean {
  return STOPPING.includes(signal);
}

/**
 * Lets the first signal that asks for an end wait until `prepare` has settled, and everything else through at once. A second one that asks
 * for an end does not wait, and takes the first one with it: whoever sends it is in a hurry. SIGHUP and SIGQUIT go through unprepared, though a
 * program without a handler ends by them: what is prepared for cannot be taken back, and most that have one go on.
 *
 * @param prepare settles soon: how long the child learns nothing is its business. One that rejects holds nothing up, and is to tell it itself
 */
export function deferStop(deliver: (signal: ForwardedSignal) => void, prepare: () => Promise<void>): DeferredStop {
  let waiting: ForwardedSignal | undefined;
  let prepared = false;
  const release = () => {
    const signal = waiting;
    waiting = undefined;
    if (signal !== undefined) deliver(signal);
  };
  return {
    pass(signal) {
      const stops = asksToStop(signal);
      if (!stops || prepared) {
        if (stops) release();
        return deliver(signal);
      }
      prepared = true;
      waiting = signal;
      void prepare().then(release, release);
    },
    drop() {
      waiting = undefined;
    },
  };
}
