import { constants, fstatSync, openSync, readFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { isatty } from 'node:tty';

const STANDARD_ERROR = 2;

/**
 * Writes as much as there is room for. Returns how many bytes that were.
 *
 * @throws Error with the code EAGAIN when there is no room
 */
export type NonBlockingWrite = (bytes: Uint8Array) => number;

/**
 * Standard error, which a slow reader of the log cannot make wait. The flag that does so belongs to the open
 * pipe, terminal or socket, which the child shares, and a child need not expect EAGAIN. So:
 * - A pipe or a terminal is opened once more, and only that opening has the flag.
 * - A socket (as of systemd's journal) cannot be opened, nor can a pipe of another user. It gets the flag for
 *   the duration of each write. Given up: a write of the child that begins in these microseconds, while there
 *   is no room, fails with EAGAIN.
 * - A file takes every write.
 */
export function standardErrorWrite(): NonBlockingWrite {
  const plain: NonBlockingWrite = (bytes) => writeSync(STANDARD_ERROR, bytes);
  const stat = fstatSync(STANDARD_ERROR);
  if (!stat.isFIFO() && !stat.isSocket() && !isatty(STANDARD_ERROR)) return plain;
  try {
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
    const reopened = openSync(`/proc/self/fd/${STANDARD_ERROR}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    return (bytes) => writeSync(reopened, bytes);
  } catch {
    return flaggedWrite(plain);
  }
}

function flaggedWrite(plain: NonBlockingWrite): NonBlockingWrite {
  const wasBlocking = isBlocking();
  const handle = flagHandle();
  if (handle === undefined) return plain;
  // Node sets the flag as it opens a stream.
  if (wasBlocking) handle.setBlocking(true);
  return (bytes) => {
    // Not so where standard output is the same socket, and answers go there.
    if (!isBlocking()) return plain(bytes);
    handle.setBlocking(false);
    try {
      return plain(bytes);
    } finally {
      handle.setBlocking(true);
    }
  };
}

interface FlagHandle {
  setBlocking(isBlocking: boolean): void;
}

/** Node's one way to the flag. Undefined for a terminal. */
function flagHandle(): FlagHandle | undefined {
  try {
    const stream = new Socket({ fd: STANDARD_ERROR, readable: false });
    return (stream as unknown as { readonly _handle?: FlagHandle })._handle;
  } catch {
    return undefined;
  }
}

function isBlocking(): boolean {
  try {
    return (descriptorFlags(STANDARD_ERROR) & constants.O_NONBLOCK) === 0;
  } catch {
    return true;
  }
}

/**
 * The flags of an open file, as `open` takes them: on Linux alone.
 *
 * @throws Error where there is no /proc, or no such descriptor
 */
export function descriptorFlags(fd: number): number {
  const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
  if (flags === undefined) throw new Error(`/proc has no flags of descriptor ${fd}`);
  return Number.parseInt(flags, 8);
}
