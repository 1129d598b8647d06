import { StoreError, type StoreFault } from './lease-store.js';

/** One request to a store, for messages. */
export interface StoreRequest {
  readonly operation: keyof typeof DOING;
  /** The store, as its user wrote it. */
  readonly url: string;
  /** The object below the prefix; undefined for a listing. */
  readonly key?: string | undefined;
}

/** What each operation is called in messages. */
const DOING = {
  read: 'reading',
  list: 'listing',
  create: 'creating',
  replace: 'replacing',
  discard: 'removing',
} as const;

/** What a request does, as the beginning of a message. */
export function attempt({ operation, key }: StoreRequest): string {
  return `${DOING[operation]}${key === undefined ? '' : ` ${key}`}`;
}

/** The failure of a request. `cause` is given only where it says more: causes are printed. */
export function failure(
  request: StoreRequest,
  {
    fault,
    outcome,
    detail,
    cause,
  }: { fault: StoreFault; outcome: StoreError['outcome']; detail: string; cause?: unknown },
): StoreError {
  // A missing bucket is the same whatever was tried in it.
  const what = fault === 'missing' ? '' : `${attempt(request)}: `;
  return new StoreError(`${request.url}: ${what}${detail}`, { fault, outcome, cause });
}

/** A reply that says nothing a store could mean. */
export function senseless(request: StoreRequest, answer: string): StoreError {
  return failure(request, { fault: 'rejected', outcome: 'unknown', detail: `answered ${answer}` });
}

/** Refuses to remove anything but a scratch object of a probe. @throws {StoreError} */
export function checkScratch(url: string, key: string): void {
  if (key.startsWith('probe-')) return;
  throw new StoreError(`${url}: ${key} is not a scratch object and is not removed`, {
    fault: 'rejected',
    outcome: 'not-applied',
  });
}
