import { type ClusterConfig, decodeCluster } from '../../src/core/lease/model/cluster-config.js';
import { nativeCodec } from '../../src/core/lease/model/lease-codec.js';
import type { HeldLease, LeaseState } from '../../src/core/lease/model/lease-state.js';
import { initializeCluster } from '../../src/core/lease/operate/initialize.js';
import { scaleCluster } from '../../src/core/lease/operate/scale.js';
import type { ScaleEvent, ScaleOptions, ScaleOutcome } from '../../src/core/lease/operate/scaling.js';
import { StoreSession } from '../../src/core/lease/session/store-session.js';
import { StoreError } from '../../src/core/store/lease-store.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import {
  type MemoryCall,
  type MemoryIntercept,
  MemoryLeaseStore,
} from '../../src/core/store/memory/memory-lease-store.js';
import { seededRandom, VirtualClock } from './virtual-clock.js';

export const DURATION = 15_000;
export const GRACE = 1_000;
/** Of 8 bits with the reserved ones, and the first that takes 9. */
export const NARROW = 4;
export const WIDE = 300;

/** A cluster of four node ids on a memory store, in virtual time. */
export async function scaleScene({
  nodes = NARROW,
  initialize = true,
}: {
  nodes?: number;
  initialize?: boolean;
} = {}) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const store = new MemoryLeaseStore({ clock }, bucket);
  if (initialize) {
    const wanted = { nodes, durationMs: DURATION, graceMs: GRACE };
    await initializeCluster({
      session: new StoreSession(store, clock, 1_000),
      clock,
      random: seededRandom(9),
      wanted,
    });
  }
  /** Writes what a holder, or somebody before it, wrote. */
  const put = (id: number, state: LeaseState) => {
    const { body, metadata } = nativeCodec.encode(state);
    const etag = bucket.read(`${id}.json`)?.etag;
    if (etag === undefined) bucket.create(`${id}.json`, body, metadata);
    else bucket.replace(`${id}.json`, body, metadata, etag);
  };
  const hold = (id: number, more: Partial<HeldLease> = {}) => {
    const timestamp = more.timestamp ?? clock.now() + DURATION;
    const held: HeldLease = {
      ...{
        kind: 'held',
        taskId: `task-${id}`,
        version: 1,
        timestamp,
        durationMs: DURATION,
        knownNodes: {},
      },
      ...{ nonce: `nonce-${id}`, renewal: 0, acquiredAt: clock.now(), idWidth: 8 },
      narrowIdsUntil: timestamp - 1,
      ...more,
    };
    put(id, held);
    return held;
  };
  const read = (id: number) => {
    const object = bucket.read(`${id}.json`);
    return object && nativeCodec.decode(object.body, object.metadata);
  };
  const cluster = (): ClusterConfig => decodeCluster(bucket.read('cluster.json')?.body ?? '');
  const change = (config: Partial<ClusterConfig>) => {
    const body = JSON.stringify({ ...cluster(), ...config });
    bucket.replace('cluster.json', body, {}, bucket.read('cluster.json')?.etag ?? '');
  };
  let calls = 0;
  const scale = (
    size: number,
    { intercept, ...more }: Partial<ScaleOptions> & { intercept?: MemoryIntercept } = {},
  ) => {
    const events: ScaleEvent[] = [];
    const state: { outcome?: ScaleOutcome; error?: unknown } = {};
    calls += 1;
    const done = scaleCluster({
      session: new StoreSession(store.connect(intercept), clock, 1_000),
      ...{ clock, random: seededRandom(calls), size, onEvent: (event: ScaleEvent) => events.push(event) },
      ...more,
    }).then(
      (outcome) => {
        state.outcome = outcome;
      },
      (error: unknown) => {
        state.error = error;
      },
    );
    return {
      events,
      state,
      /** Lets time pass until the call has ended, and gives its outcome, or throws its error. */
      end: async (): Promise<ScaleOutcome> => {
        for (let i = 0; i < 400 && state.outcome === undefined && state.error === undefined; i += 1)
          await clock.advance(500);
        if (state.error !== undefined) throw state.error;
        if (state.outcome === undefined) throw new Error('the call does not end');
        await done;
        return state.outcome;
      },
    };
  };
  return { clock, bucket, store, put, hold, read, cluster, change, scale };
}

export const died = new StoreError('the process has ended', { fault: 'denied', outcome: 'unknown' });

/**
 * The requests of a process that ends at one of them, counted from 1, before or after it is applied; of one
 * that does not end where nothing is given.
 */
export function endingAt(fail?: { readonly at: number; readonly applied: boolean }) {
  const calls: MemoryCall[] = [];
  let ended = false;
  const intercept: MemoryIntercept = async (call, apply) => {
    if (ended) throw died;
    calls.push(call);
    if (calls.length !== fail?.at) return apply();
    ended = true;
    if (fail.applied) apply();
    throw died;
  };
  return { calls, intercept };
}

export const writes = ({ operation }: MemoryCall) => operation === 'create' || operation === 'replace';
export const keyOf = (call: MemoryCall) => ('key' in call ? call.key : '');
