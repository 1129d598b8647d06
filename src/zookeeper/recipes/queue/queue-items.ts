// The bytes of Curator's ItemSerializer: a version, then an opcode, a length and the bytes of each item, and
// the opcode of the end.

import { RecipeError } from '../recipe.js';

/** Receives the bytes of a znode that are no items. */
export type OnDamaged = (error: RecipeError, data: Buffer) => void;

const VERSION = Buffer.from([0, 1, 0, 1]);
const ITEM = 1;
const END = 2;

/** The bytes of one znode. */
export function encodeItems(items: readonly Uint8Array[]): Buffer {
  const parts = items.flatMap((item) => {
    const head = Buffer.alloc(5, ITEM);
    head.writeInt32BE(item.length, 1);
    return [head, item];
  });
  return Buffer.concat([VERSION, ...parts, Buffer.of(END)]);
}

/** The items of one znode; undefined where it has other bytes. */
export function decodeItems(bytes: Buffer): Buffer[] | undefined {
  if (!bytes.subarray(0, VERSION.length).equals(VERSION)) return undefined;
  const items: Buffer[] = [];
  for (let at = VERSION.length; bytes[at] !== END; ) {
    const from = at + 5;
    if (bytes[at] !== ITEM || from > bytes.length) return undefined;
    at = from + bytes.readInt32BE(at + 1);
    if (at < from || at > bytes.length) return undefined;
    items.push(bytes.subarray(from, at));
  }
  return items;
}

/** Reports a znode that has been removed. @throws {RecipeError} `damaged` where nothing receives that */
export function reportDamaged(path: string, data: Buffer, onDamaged: OnDamaged | undefined): never[] {
  const error = new RecipeError(
    `${path} held ${data.length} bytes that are no items; it has been removed`,
    'damaged',
    path,
  );
  if (!onDamaged) throw error;
  onDamaged(error, data);
  return [];
}
