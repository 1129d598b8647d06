import { deepStrictEqual, ok } from 'node:assert/strict';
import type { LeaseStore, StoredObject, WriteResult } from '../lease-store.js';

/** What a check works with. */
export interface Handles {
  /** A store that holds no object. */
  open(): Promise<LeaseStore>;
  /** The same, with a second handle on its objects. */
  openTwice(): Promise<[LeaseStore, LeaseStore]>;
  readonly ageResolutionMs: number;
}

/** Checks by the promises that they are about. */
export type Checks = Readonly<Record<string, (handles: Handles) => Promise<void>>>;

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

/** An etag of the same shape that no object has: servers refuse misshapen ones for another reason. */
export function neverWas(etag: string): string {
  const base = /^\d+$/.test(etag) ? 10 : 16;
  return etag.replace(/[0-9a-f]/g, (digit) => ((Number.parseInt(digit, base) + 7) % base).toString(base));
}
