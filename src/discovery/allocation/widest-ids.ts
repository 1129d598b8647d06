import { isFault } from '../../zookeeper/zookeeper-error.js';
import { STAMPS_PATH } from '../tree-paths.js';
import type { BoundCall, BoundSession } from './bound-session.js';
import { fieldsOf } from './id-stamp.js';

/**
 * The most bits that node ids ever took in unique ids here, as it stands in the znode of the stamps: groups go when they are empty, and who
 * made narrow ids then could repeat one that a node of such a group made in the same millisecond.
 *
 * @returns 0 where nobody has said so
 */
export async function readWidest(session: BoundSession, call?: BoundCall): Promise<number> {
  return (await readRecord(session, call)).idWidth;
}

/**
 * Makes sure that {@link readWidest} answers with so many bits at the least, from now on.
 *
 * @throws {ZooKeeperError} among others `bad-version` when another one does the same: to be called again
 */
export async function raiseWidest(session: BoundSession, idWidth: number, call?: BoundCall): Promise<void> {
  const known = await readRecord(session, call);
  if (known.idWidth >= idWidth) return;
  const data = JSON.stringify({ idWidth });
  if (known.version !== undefined) {
    await session.setData(STAMPS_PATH, data, known.version, call);
    return;
  }
  try {
    await session.createWithParents(STAMPS_PATH, data, 'persistent', call);
  } catch (error) {
    if (!isFault(error, 'node-exists')) throw error;
    await raiseWidest(session, idWidth, call);
  }
}

async function readRecord(session: BoundSession, call?: BoundCall): Promise<{ readonly idWidth: number; readonly version?: number }> {
  const znode = await session.read(STAMPS_PATH, call);
  if (znode === undefined) return { idWidth: 0 };
  return { idWidth: widthIn(znode.data), version: znode.stat.version };
}

/** The number of bits that a znode's JSON names, 8 … 16; 0 where it names none. */
export function widthIn(data: Buffer): number {
  const { idWidth } = fieldsOf(data);
  return Number.isInteger(idWidth) && (idWidth as number) >= 8 && (idWidth as number) <= 16 ? (idWidth as number) : 0;
}
