import type { Clock } from '../../clock.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';

/** Waits for something to change among the children of some znodes, or in the data of one, or with the session. One use each; to be closed. */
export class ChangeWatch {
  readonly #ends: (() => void)[] = [];
  readonly #armed: Promise<unknown>;
  readonly #changed: Promise<void>;
  #hasChanged = false;

  constructor(
    zookeeper: ZooKeeper,
    private readonly clock: Clock,
    paths: readonly string[],
    dataPath?: string,
  ) {
    let tell: () => void = () => undefined;
    this.#changed = new Promise((resolve) => {
      tell = () => {
        this.#hasChanged = true;
        resolve();
      };
    });
    const fromSecond = () => {
      let told = false;
      return () => {
        if (told) tell();
        told = true;
      };
    };
    const watches = paths.map((path) => zookeeper.watchChildren(path, fromSecond()));
    if (dataPath !== undefined) watches.push(zookeeper.watchData(dataPath, fromSecond()));
    this.#armed = Promise.all(watches.map(({ first }) => first));
    this.#ends.push(
      ...watches.map((watch) => () => watch.close()),
      zookeeper.onState(() => tell()),
    );
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

  /** Whether something has changed. */
  get hasChanged(): boolean {
    return this.#hasChanged;
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
