import { Audit, folderOf } from '../../src/app/audit/audit.js';
import type { PastObject } from '../../src/core/store/lease-store.js';
import type { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';

/** All states of the objects in a bucket, by key, the newest first: as a bucket with versioning keeps them. */
export type KeptStates = Map<string, PastObject[]>;

/** Keeps what is written to a bucket in memory from now on, and what is removed. */
export function keepStates(bucket: MemoryBucket): KeptStates {
  const states: KeptStates = new Map();
  const note = ({ key }: { readonly key: string }) => {
    const object = bucket.read(key);
    const at = object?.storeTime ?? bucket.list().storeTime;
    const written = object && { body: object.body, metadata: object.metadata };
    states.set(key, [{ key, written, at, kept: true }, ...(states.get(key) ?? [])]);
    return false;
  };
  for (const { key } of bucket.list().objects) note({ key });
  void bucket.changes.next(new AbortController().signal, note);
  return states;
}

/** What an audit finds in them. */
export function audited(states: KeptStates): Audit {
  const audit = new Audit();
  const enter = (folder: string) => audit.enter(folder, states.get(`${folder}cluster.json`) ?? []);
  enter('');
  for (const key of [...states.keys()].sort()) {
    const folder = folderOf(key);
    if (folder === undefined) continue;
    if (audit.needs(folder)) enter(folder);
    for (const state of states.get(key) ?? []) audit.add(state);
  }
  audit.finish();
  return audit;
}
