import { deepStrictEqual, ok } from 'node:assert/strict';
import type { LeaseStore, StoredObject, WriteResult } from '../lease-store.js';

/**
 * Checks by the promises that they are about. Each gets a store without objects, a second handle on it, and
 * how coarse its ages are, in milliseconds.
 */
export type Checks = Readonly<
  Record<string, (store: LeaseStore, other: LeaseStore, ageResolutionMs: number) => Promise<void>>
>;

/** Facts that a lease object carries. */
export const METADATA = { taskid: 'task-a', version: '7', expiry: '1795219197534' };

/** The etag of a write that has to be accepted. */
export function written(result: WriteResult): string {
  ok(result.status === 'written', 'the write was refused');
  return result.etag;
}

/** An object that has to be there. */
export async function read(store: LeaseStore, key: string): Promise<StoredObject> {
  const object = await store.read(key);
  ok(object !== undefined, `${key} is missing`);
  return object;
}

/** That an object is what was written, and nothing else. */
export async function isThere(
  store: LeaseStore,
  key: string,
  expected: Partial<StoredObject>,
): Promise<void> {
  const object = await read(store, key);
  const actual = Object.fromEntries(
    Object.keys(expected).map((name) => [name, object[name as keyof StoredObject]]),
  );
  deepStrictEqual({ key: object.key, ...actual }, { key, ...expected });
}

/** Creates `0.json`, and resolves to its etag. */
export async function createFirst(store: LeaseStore): Promise<string> {
  return written(await store.create('0.json', 'first', METADATA));
}
