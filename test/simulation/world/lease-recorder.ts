import { CLUSTER_KEY } from '../../../src/core/lease/model/cluster-config.js';
import type { Lease, LeaseLostError } from '../../../src/core/lease/model/lease.js';
import { leaseKey, nodeIdOf } from '../../../src/core/lease/model/lease-state.js';
import type { StoredObject, StoreError, WriteResult } from '../../../src/core/store/lease-store.js';
import { type Trace, type TraceEvent, tracedObject } from '../../model/lease-trace.js';
import type { WatchedTask } from '../checks/invariants.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { World } from './world.js';

/** What the store does with a request, and its sender with the answer. */
export interface Handling<Reply, Sender> {
  readonly apply: (sender: Sender) => Reply;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: StoreError) => void;
}

/** A request, as far as a trace needs it. */
export interface Followed<Reply, Sender> extends Handling<Reply, Sender> {
  readonly key: string;
  readonly body?: string;
  readonly etag?: string;
  readonly signal?: AbortSignal | undefined;
}

/** Writes down what happens to the lease objects of a world, for `explain()`. */
export class LeaseRecorder implements Trace {
  readonly vacant = new Map<string, string>();
  readonly events: TraceEvent[] = [];
  readonly #leases = new Map<SimulatedProcess, Lease>();
  #requests = 0;

  /** @param world which has its first objects */
  constructor(private readonly world: World) {
    const { bucket } = world;
    for (const { key, etag } of bucket.list().objects) {
      if (nodeIdOf(key) !== undefined) this.vacant.set(key, etag);
      else if (key === CLUSTER_KEY) this.#onSettings(bucket.read(key)?.body ?? '');
    }
  }

  /** The same handling of a request, which leaves its events. */
  follow<Reply, Sender>(
    task: string,
    process: SimulatedProcess,
    call: Followed<Reply, Sender>,
  ): Partial<Handling<Reply, Sender>> {
    const { key, body, etag, signal } = call;
    if (key === CLUSTER_KEY && body !== undefined) return { apply: this.#followSettings(body, call.apply) };
    if (nodeIdOf(key) === undefined) return {};
    this.#requests += 1;
    const request = this.#requests;
    const { events, world } = this;
    const shown: unknown[] = [];
    const hears = (answer: Extract<TraceEvent, { kind: 'hears' }>['answer'], time = 0) => {
      if (!signal?.aborted)
        events.push({ kind: 'hears', request, answer, time, ...this.#ofTask(key, task, process) });
    };
    const sent = this.#ofTask(key, task, process);
    if (body === undefined) events.push({ kind: 'asks', request, ...sent });
    else events.push({ kind: 'sends', request, object: tracedObject(body), etag, ...sent });
    return {
      apply: (sender: Sender) => {
        const reply = call.apply(sender);
        const at = world.scheduler.now;
        if (body === undefined) {
          const object = reply as StoredObject | undefined;
          const time = shown.push(reply) - 1;
          events.push({
            kind: 'shown',
            at,
            key,
            request,
            time,
            etag: object?.etag,
            age: object?.age.min ?? 0,
          });
        } else {
          const result = reply as WriteResult;
          if (result.status === 'written')
            events.push({ kind: 'applied', at, key, request, etag: result.etag });
        }
        return reply;
      },
      resolve: (reply: Reply) => {
        if (body === undefined) hears('read', shown.indexOf(reply));
        else hears((reply as WriteResult).status);
        call.resolve(reply);
      },
      reject: (error: StoreError) => {
        hears(error.outcome === 'not-applied' ? 'not applied' : 'unknown');
        call.reject(error);
      },
    };
  }

  onAcquired({ name, process, lease }: WatchedTask): void {
    this.#leases.set(process, lease);
    this.events.push({ kind: 'holds', ...this.#ofTask(leaseKey(lease.id), name, process) });
  }

  onLost({ name, process, lease }: WatchedTask, { reason }: LeaseLostError): void {
    const toAnother = reason === 'taken';
    this.events.push({ kind: 'loses', toAnother, ...this.#ofTask(leaseKey(lease.id), name, process) });
  }

  #ofTask(key: string, task: string, process: SimulatedProcess) {
    const lease = this.#leases.get(process);
    const isOf = lease !== undefined && leaseKey(lease.id) === key;
    const until = isOf && lease.isValid() ? lease.deadline : undefined;
    return { at: this.world.scheduler.now, key, task, clock: process.clock.monotonic(), until };
  }

  #followSettings<Reply, Sender>(body: string, apply: (sender: Sender) => Reply): (sender: Sender) => Reply {
    return (sender) => {
      const reply = apply(sender);
      if ((reply as WriteResult).status === 'written') this.#onSettings(body);
      return reply;
    };
  }

  #onSettings(body: string): void {
    const { durationMs, graceMs } = JSON.parse(body) as { durationMs: number; graceMs: number };
    this.events.push({ kind: 'settings', at: this.world.scheduler.now, key: '', durationMs, graceMs });
  }
}
