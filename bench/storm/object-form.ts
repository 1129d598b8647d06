import { encodeCluster, newCluster } from '../../src/core/lease/model/cluster-config.js';
import { nativeCodec } from '../../src/core/lease/model/lease-codec.js';
import { acquired, type HeldLease, released, renewed } from '../../src/core/lease/model/lease-state.js';
import { emptied, held, NOTHING, type PlainObject } from '../../test/simulation/comparison/plain-object.js';

/** The lease objects of a contestant, as they stand before a storm. */
export interface ObjectForm {
  /** The cluster's settings, where the contestant has any. */
  cluster(settings: { readonly size: number; readonly durationMs: number }): PlainObject | undefined;
  readonly vacant: PlainObject;
  /** After one tenure. @param now the store's time, in milliseconds since the Unix epoch */
  released(now: number, durationMs: number): PlainObject;
  /** In its first tenure. @param renewal how often it was renewed; each makes another object */
  held(id: number, now: number, durationMs: number, renewal: number): PlainObject;
}

export const nativeForm: ObjectForm = {
  cluster: ({ size, durationMs }) => {
    const config = { ...newCluster({ nodes: size, durationMs }), bootstrapped: true };
    return { body: encodeCluster(config), metadata: {} };
  },
  vacant: nativeCodec.encode({ kind: 'vacant' }),
  released: (now, durationMs) => nativeCodec.encode(released(tenure(0, now, durationMs), Math.floor(now), 0)),
  held: (id, now, durationMs, renewal) => {
    const held = tenure(id, now, durationMs);
    const width = { idWidth: held.idWidth, narrowIdsUntil: held.narrowIdsUntil };
    return nativeCodec.encode(renewed(held, { renewal, durationMs, storeNow: now, knownNodes: {}, width }));
  },
};

export const plainForm: ObjectForm = {
  cluster: () => undefined,
  vacant: NOTHING,
  released: () => emptied(1),
  held: (id, now, durationMs, renewal) =>
    held({ taskId: `holder-${id}`, version: 1, timestamp: Math.floor(now) + durationMs + renewal }),
};

function tenure(id: number, now: number, durationMs: number): HeldLease {
  const claim = {
    taskId: `holder-${id}`,
    nonce: id.toString(16).padStart(24, '0'),
    durationMs,
    storeNow: now,
    stampedUntil: 0,
    idWidth: 16,
  };
  return acquired({ kind: 'vacant' }, claim);
}
