import type { Interval, LeaseStore } from '../../src/core/store/lease-store.js';

export const UNKNOWN_AGE: Interval = { min: 0, max: Number.POSITIVE_INFINITY };

/** The same store, but that it does not report when an object was written. */
export function timeless(store: LeaseStore): LeaseStore {
  const aged = <Shown extends object>(shown: Shown) => ({ ...shown, age: UNKNOWN_AGE });
  const { listPage, changed, epoch } = store;
  return {
    url: store.url,
    remote: store.remote,
    pollMs: store.pollMs,
    timeStepMs: store.timeStepMs,
    read: async (...request) => {
      const object = await store.read(...request);
      return object && aged(object);
    },
    list: async (...request) => {
      const listing = await store.list(...request);
      return { ...listing, objects: listing.objects.map(aged) };
    },
    ...(listPage && {
      listPage: async (...request: Parameters<typeof listPage>) => {
        const page = await listPage.apply(store, request);
        return { ...page, objects: page.objects.map(aged) };
      },
    }),
    create: store.create.bind(store),
    replace: store.replace.bind(store),
    ...(changed && { changed: changed.bind(store) }),
    ...(epoch && { epoch: epoch.bind(store) }),
    discardProbe: store.discardProbe.bind(store),
    close: store.close.bind(store),
  };
}
