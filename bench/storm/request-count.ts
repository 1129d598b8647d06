import type { Operation } from './s3-latency.js';

/** Requests by their kind. A listing counts once a page. */
export type RequestCount = Readonly<Record<Operation, number>>;

export const NO_REQUESTS: RequestCount = { get: 0, put: 0, list: 0, delete: 0 };

/** All of them. */
export function total({ get, put, list, delete: deleted }: RequestCount): number {
  return get + put + list + deleted;
}

/** What was asked for by several, or one after the other. */
export function plus(a: RequestCount, b: RequestCount): RequestCount {
  return { get: a.get + b.get, put: a.put + b.put, list: a.list + b.list, delete: a.delete + b.delete };
}

/** What came after `before`. */
export function since(before: RequestCount, now: RequestCount): RequestCount {
  return {
    get: now.get - before.get,
    put: now.put - before.put,
    list: now.list - before.list,
    delete: now.delete - before.delete,
  };
}

/** So many times as many. */
export function times({ get, put, list, delete: deleted }: RequestCount, factor: number): RequestCount {
  return { get: get * factor, put: put * factor, list: list * factor, delete: deleted * factor };
}

/**
 * Dollars a request: S3 Standard in us-east-1. A refused conditional write costs what an accepted one does, a
 * DELETE nothing.
 */
export const S3_DOLLARS: RequestCount = { get: 0.4e-6, put: 5e-6, list: 5e-6, delete: 0 };

/** What they cost, in dollars. */
export function dollars(requests: RequestCount): number {
  return requests.get * S3_DOLLARS.get + requests.put * S3_DOLLARS.put + requests.list * S3_DOLLARS.list;
}
