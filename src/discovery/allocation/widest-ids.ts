import { isFault } from '../../zookeeper/zookeeper-error.js';
import { STAMPS_PATH } from '../tree-paths.js';
import type { BoundCall, BoundSession } from './bound-session.js';
import { fieldsOf } from './id-stamp.js';

/** What it takes to look. */
type Reader = Pick<BoundSession, 'read'>;

/** How often at the most it is tried to raise the width: there are only nine of them, and others who raise it only make it wider. */
const ROUNDS = 20;

/**
 * The most bits that node ids ever took in unique ids here, as it stands in the znode of the stamps: groups go when they are empty, and who
 * made narrow ids then could repeat one that a node of such a group made in the same millisecond.
 *
 * @returns 0 where nobody has said so
 */
export async function readWidest(session: Reader, call?: BoundCall): Promise<number> {
  return (await readRecord(session, call)).idWidth;
}

/**
 * Makes sure that {@link readWidest} answers with so many bits at the least, from now on. Others may do the same at the same time.
 *
 * @throws {ZooKeeperError} among others `bad-version` when somebody changes it all the time
 */
export async function raiseWidest(session: BoundSession, idWidth: number, call?: BoundCall): Promise<void> {
  const data = JSON.stringify({ idWidth });
  for (let round = 1; ; round += 1) {
    const known = await readRecord(session, call);
    if (known.idWidth >= idWidth) return;
    try {
      if (known.version === undefined) await session.createWithParents(STAMPS_PATH, data, 'shared', call);
      else await session.setData(STAMPS_PATH, data, known.version, call);
      return;
    } catch (error) {
      // Another one was faster. A server tells of that only when it has seen it, so the next look sees it, too.
      if (round === ROUNDS || !isFault(error, 'node-exists', 'bad-version', 'no-node')) throw error;
    }
  }
}

async function readRecord(session: Reader, call?: BoundCall): Promise<{ readonly idWidth: number; readonly version?: number }> {
  const znode = await session.read(STAMPS_PATH, call);
  if (znode === undefined) return { idWidth: 0 };
  return { idWidth: widthIn(znode.data), version: znode.stat.version };
}

/** The number of bits that a znode's JSON names, 8 … 16; 0 where it names none. */
export function widthIn(data: Buffer): number {
  const { idWidth } = fieldsOf(data);
  return Number.isInteger(idWidth) && (idWidth as number) >= 8 && (idWidth as number) <= 16 ? (idWidth as number) : 0;
}
