import type { Lease, LeaseLostError } from '../../src/core/lease/model/lease.js';
import { leaseKey, nodeIdOf } from '../../src/core/lease/model/lease-state.js';
import type {
  LeaseStore,
  StoreCallOptions,
  StoredObject,
  WriteResult,
} from '../../src/core/store/lease-store.js';
import type { Traced } from './lease-trace.js';

/** What a task writes down: all of a trace that it can know by itself, with the bodies of the objects. */
export type TaskEvent = {
  /** The clock of the host, in milliseconds. A call is noted before it is made, and an answer once it is there. */
  readonly at: number;
  readonly key: string;
  /** Until when it believes in its lease of this object. */
  readonly until?: number | undefined;
} & (
  | { readonly kind: 'asks'; readonly request: number }
  | {
      readonly kind: 'sends';
      readonly request: number;
      readonly body: string;
      readonly etag?: string | undefined;
    }
  | {
      readonly kind: 'hears';
      readonly request: number;
      readonly answer: Traced<'hears'>['answer'];
      /** Of what was read; the etag also of what was written. */
      readonly body?: string | undefined;
      readonly etag?: string | undefined;
      readonly age?: number | undefined;
    }
  | { readonly kind: 'holds' }
  | { readonly kind: 'loses'; readonly toAnother: boolean }
);

type Heard = Omit<Extract<TaskEvent, { kind: 'hears' }>, 'kind' | 'request' | 'at' | 'key' | 'until'>;

/** Notes what one task does with lease objects, which process it may be: for `mergedTrace()`. */
export class TaskRecorder {
  #lease: Pick<Lease, 'id' | 'deadline' | 'isValid'> | undefined;
  #requests = 0;

  /**
   * @param monotonic the clock by which the task knows its deadline, and all tasks of the trace their time
   * @param note keeps an event before it returns
   */
  constructor(
    private readonly monotonic: () => number,
    private readonly note: (event: TaskEvent) => void,
  ) {}

  /** The same store, whose calls are noted. */
  follow(store: LeaseStore): LeaseStore {
    const followed: Partial<LeaseStore> = {
      read: (key, options) =>
        this.#call(key, { kind: 'asks' }, options, () => store.read(key, options), heardRead),
      create: (key, body, metadata, options) =>
        this.#call(
          key,
          { kind: 'sends', body },
          options,
          () => store.create(key, body, metadata, options),
          heardWrite,
        ),
      replace: (key, body, metadata, etag, options) =>
        this.#call(
          key,
          { kind: 'sends', body, etag },
          options,
          () => store.replace(key, body, metadata, etag, options),
          heardWrite,
        ),
    };
    return new Proxy(store, {
      get(_, name: keyof LeaseStore) {
        const value = followed[name] ?? store[name];
        return typeof value === 'function' ? value.bind(store) : value;
      },
    });
  }

  onAcquired(lease: Lease): void {
    this.#lease = lease;
    this.note({ kind: 'holds', ...this.#now(leaseKey(lease.id)) });
  }

  onLost({ reason, nodeId }: LeaseLostError): void {
    this.note({ kind: 'loses', toAnother: reason === 'taken', ...this.#now(leaseKey(nodeId)) });
  }

  async #call<Reply>(
    key: string,
    what:
      | { readonly kind: 'asks' }
      | { readonly kind: 'sends'; readonly body: string; readonly etag?: string },
    options: StoreCallOptions | undefined,
    send: () => Promise<Reply>,
    heard: (reply: Reply) => Heard,
  ): Promise<Reply> {
    if (nodeIdOf(key) === undefined) return send();
    this.#requests += 1;
    const request = this.#requests;
    // Where the task has given the call up, it hears nothing any more.
    const hears = (answer: Heard) => {
      if (!options?.signal?.aborted) this.note({ kind: 'hears', request, ...answer, ...this.#now(key) });
    };
    this.note({ request, ...what, ...this.#now(key) });
    try {
      const reply = await send();
      hears(heard(reply));
      return reply;
    } catch (error) {
      const { outcome } = error as { readonly outcome?: string };
      hears({ answer: outcome === 'not-applied' ? 'not applied' : 'unknown' });
      throw error;
    }
  }

  #now(key: string): Pick<TaskEvent, 'at' | 'key' | 'until'> {
    const lease = this.#lease;
    const at = this.monotonic();
    if (lease === undefined || leaseKey(lease.id) !== key) return { key, at };
    // The clock goes on: what is valid was so at the first reading, what is not is not at the second.
    return lease.isValid() ? { key, at, until: lease.deadline } : { key, at: this.monotonic() };
  }
}

const heardRead = (object: StoredObject | undefined): Heard => ({
  answer: 'read',
  body: object?.body,
  etag: object?.etag,
  age: object?.age.min,
});

const heardWrite = (result: WriteResult): Heard =>
  result.status === 'written' ? { answer: 'written', etag: result.etag } : { answer: 'conflict' };
