import type { World } from '../world/world.js';
import type { ObservedObject } from './observed-object.js';

/** How many tenures an object lists. */
const KEPT = 8;

/** The simulator's own record of the tenures of each id, which lease objects have to agree with. */
export class PastObserver {
  /** Of each id, the newest first: `version task end`, with every end that it may have been. */
  readonly #past = new Map<number, readonly RegExp[]>();
  /** Engines that keep no history never begin to. */
  #isKept = false;

  constructor(
    private readonly world: World,
    private readonly fail: (text: string) => void,
  ) {}

  /** The store has gone back: these objects say what was before. */
  onRestored(objects: ReadonlyMap<number, ObservedObject>): void {
    this.#past.clear();
    for (const [id, { history }] of objects)
      this.#past.set(
        id,
        tenuresOf(history).map((tenure) => new RegExp(`^${tenure}$`)),
      );
  }

  afterWrite(id: number, before: ObservedObject, now: ObservedObject): void {
    const earlier = this.#past.get(id) ?? [];
    const isOver = before.held && (!now.held || now.nonce !== before.nonce);
    const past = isOver
      ? [new RegExp(`^${before.version} ${before.taskId} ${endOf(before, now)}$`), ...earlier].slice(0, KEPT)
      : earlier;
    this.#past.set(id, past);
    this.#isKept ||= now.history !== undefined;
    // A tenure ends before it began where the store's clock has been set back.
    if (!this.#isKept || this.world.clockWentBack) return;
    const reported = tenuresOf(now.history);
    const isRight =
      reported.length === past.length && reported.every((each, index) => past[index]?.test(each));
    if (!isRight) this.fail(`${id}.json lists [${reported.join(', ')}], and there were [${past.join(', ')}]`);
  }
}

function endOf(before: ObservedObject, now: ObservedObject): string {
  if (now.held) return 'x';
  if (now.version === before.version) return 'r';
  const taken = now.retiredIn === undefined ? 'e' : 't';
  // A tombstone that may be taken at once is of a lease that had expired; what it takes for one is rule 9's.
  return now.durationMs ? taken : `[x${taken}]`;
}

function tenuresOf(history = ''): string[] {
  return history
    .split(' ')
    .filter((word) => word !== '')
    .map((word) => {
      const [version = '', begun = '', ended = '', end, task] = word.split('/');
      const isForwards = Number.parseInt(begun, 36) <= Number.parseInt(ended, 36);
      return `${Number.parseInt(version, 36)} ${task} ${isForwards ? end : 'backwards'}`;
    });
}
