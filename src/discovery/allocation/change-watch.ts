import type { Clock } from '../../clock.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';

/** Waits for something to change among the children of some znodes, or with the session. One use each; to be closed. */
export class ChangeWatch {
  readonly #ends: (() => void)[] = [];
  readonly #armed: Promise<unknown>;
  readonly #changed: Promise<void>;

  constructor(
    zookeeper: ZooKeeper,
    private readonly clock: Clock,
    paths: readonly string[],
  ) {
    let tell: () => void = () => undefined;
    this.#changed = new Promise((resolve) => {
      tell = resolve;
    });
    const watches = paths.map((path) => {
      let told = false;
      return zookeeper.watchChildren(path, () => {
        if (told) tell();
        told = true;
      });
    });
    this.#armed = Promise.all(watches.map(({ first }) => first));
    this.#ends.push(...watches.map((watch) => () => watch.close()), zookeeper.onState(tell));
  }

  /**
   * Resolves when changes from now on are noticed, or after `limitMs`.
   *
   * @throws `signal.reason`
   */
  armed(limitMs: number, signal?: AbortSignal): Promise<void> {
    return this.#until(this.#armed, limitMs, signal);
  }

  /**
   * Resolves when something has changed, or after `limitMs`.
   *
   * @throws `signal.reason`
   */
  changed(limitMs: number, signal?: AbortSignal): Promise<void> {
    return this.#until(this.#changed, limitMs, signal);
  }

  /** Idempotent. */
  close(): void {
    for (const end of this.#ends.splice(0)) end();
  }

  async #until(event: Promise<unknown>, limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const woken = new AbortController();
    const onAbort = () => woken.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([this.clock.sleep(limitMs, woken.signal), event]);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      woken.abort();
    }
  }
}
