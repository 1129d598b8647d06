import { checkArguments, STORE } from '../base/arguments.js';
import type { Clock } from '../base/clock.js';
import { systemClock } from '../base/system.js';
import type {
  LeaseStore,
  ListedObject,
  Listing,
  ListingPage,
  StoreCallOptions,
  StoredObject,
} from './lease-store.js';

/**
 * For how long this process has seen objects unchanged: a lower bound of their ages that needs no time of
 * writing.
 *
 * A state was written before the first reply that showed it arrived, and a later reply that shows it was made
 * after its request was sent. So the time between these two moments never exceeds the age, in whatever order
 * replies arrive. It rests on etags that never repeat, and on a clock that never goes back; one that stops
 * while the machine is suspended makes ages smaller, and so take-overs later.
 */
export class ObservedAges {
  /** By key: the etag seen last, and when the first reply that showed it arrived. */
  readonly #seen = new Map<string, { readonly etag: string; readonly since: number }>();

  /**
   * The least age of a state when the reply that shows it was made, in milliseconds: 0 for a state other than
   * the one seen last.
   *
   * @param sentAt when the request was sent, on the monotonic clock
   * @param arrivedAt when its reply arrived
   */
  of(key: string, etag: string, sentAt: number, arrivedAt: number): number {
    const known = this.#seen.get(key);
    if (known?.etag === etag) return Math.max(0, sentAt - known.since);
    this.#seen.set(key, { etag, since: arrivedAt });
    return 0;
  }

  forget(key: string): void {
    this.#seen.delete(key);
  }

  /** Forgets the keys that a listing from `after` on would show, and does not. */
  forgetAbsent({ objects, more = false }: Listing & Partial<ListingPage>, after: string | undefined): void {
    const shown = new Set(objects.map(({ key }) => key));
    const last = objects.at(-1)?.key;
    for (const key of this.#seen.keys()) {
      const isCovered =
        (after === undefined || key > after) && (!more || (last !== undefined && key <= last));
      if (isCovered && !shown.has(key)) this.#seen.delete(key);
    }
  }
}

/**
 * A store that reports no write times, with the ages that this process observes: `age.min` of what it reads
 * and lists grows for as long as the etag stays the same. Where `store` knows a greater `age.min`, that one
 * counts; everything else is passed through.
 *
 * What is observed is lost with the returned object: use the same one for as long as the process waits for
 * leases.
 *
 * @param store must never give the state of a key an etag that another state of it had, also where the key
 * was removed meanwhile
 * @param clock its `monotonic()` must not be ahead by more than the clocks of holders may drift
 */
export function observedAge(store: LeaseStore, clock: Clock = systemClock): LeaseStore {
  checkArguments({ store, clock }, { store: STORE });
  const ages = new ObservedAges();
  const observed = <Shown extends ListedObject | StoredObject>(
    shown: Shown,
    sentAt: number,
    arrivedAt: number,
  ) => {
    const { key, etag, age } = shown;
    return { ...shown, age: { min: Math.max(age.min, ages.of(key, etag, sentAt, arrivedAt)), max: age.max } };
  };
  const listed = async <Shown extends Listing>(
    call: () => Promise<Shown>,
    after?: string,
  ): Promise<Shown> => {
    const sentAt = clock.monotonic();
    const shown = await call();
    const arrivedAt = clock.monotonic();
    ages.forgetAbsent(shown, after);
    return { ...shown, objects: shown.objects.map((row) => observed(row, sentAt, arrivedAt)) };
  };
  const { listPage, changed, describe, epoch, history, noAnswer, minWriteIntervalMs } = store;
  return {
    url: store.url,
    remote: store.remote,
    pollMs: store.pollMs,
    timeStepMs: store.timeStepMs,
    ...(minWriteIntervalMs !== undefined && { minWriteIntervalMs }),
    read: async (key, options) => {
      const sentAt = clock.monotonic();
      const object = await store.read(key, options);
      if (object !== undefined) return observed(object, sentAt, clock.monotonic());
      ages.forget(key);
      return undefined;
    },
    list: (options) => listed(() => store.list(options)),
    ...(listPage && {
      listPage: (after: string | undefined, options?: StoreCallOptions) =>
        listed(() => listPage.call(store, after, options), after),
    }),
    create: store.create.bind(store),
    replace: store.replace.bind(store),
    ...(changed && { changed: changed.bind(store) }),
    ...(describe && { describe: describe.bind(store) }),
    ...(epoch && { epoch: epoch.bind(store) }),
    ...(history && { history: history.bind(store) }),
    ...(noAnswer && { noAnswer: noAnswer.bind(store) }),
    discardProbe: store.discardProbe.bind(store),
    close: store.close.bind(store),
  };
}
