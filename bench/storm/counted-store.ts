import type { LeaseStore, StoreCallOptions } from '../../src/core/store/lease-store.js';
import { NO_REQUESTS, plus, type RequestCount } from './request-count.js';
import type { Operation } from './s3-latency.js';

/** Objects of one page of a listing. */
const PAGE = 1_000;

/**
 * A task's own client of a real server, and what it has sent: a request for each call, and for each page of a
 * listing.
 */
export interface CountedStore extends LeaseStore {
  readonly requests: RequestCount;
}

/** Counts what is sent to `store`. */
export function counted(store: LeaseStore): CountedStore {
  let requests = NO_REQUESTS;
  const count = (operation: Operation) => {
    requests = plus(requests, { ...NO_REQUESTS, [operation]: 1 });
  };
  const { listPage, changed } = store;
  return {
    get requests() {
      return requests;
    },
    url: store.url,
    remote: store.remote,
    pollMs: store.pollMs,
    timeStepMs: store.timeStepMs,
    read: (...call) => {
      count('get');
      return store.read(...call);
    },
    list: async (...call) => {
      count('list');
      const listing = await store.list(...call);
      for (let shown = PAGE; shown < listing.objects.length; shown += PAGE) count('list');
      return listing;
    },
    ...(listPage && {
      listPage: (after: string | undefined, options?: StoreCallOptions) => {
        count('list');
        return listPage.call(store, after, options);
      },
    }),
    create: (...call) => {
      count('put');
      return store.create(...call);
    },
    replace: (...call) => {
      count('put');
      return store.replace(...call);
    },
    discardProbe: (...call) => {
      count('delete');
      return store.discardProbe(...call);
    },
    ...(changed && { changed: changed.bind(store) }),
    close: () => store.close(),
  };
}
