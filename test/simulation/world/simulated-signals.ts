import type { ForwardedSignal, SignalSource } from '../../../src/app/kit/terminal/signal-relay.js';

/** The signals that arrive at one simulated process. */
export class SimulatedSignals implements SignalSource {
  readonly #listeners = new Map<ForwardedSignal, Set<() => void>>();

  on(signal: ForwardedSignal, listener: () => void): void {
    const listeners = this.#listeners.get(signal) ?? new Set();
    this.#listeners.set(signal, listeners.add(listener));
  }

  off(signal: ForwardedSignal, listener: () => void): void {
    this.#listeners.get(signal)?.delete(listener);
  }

  emit(signal: ForwardedSignal): void {
    for (const listener of this.#listeners.get(signal) ?? []) listener();
  }
}
