import { closeSync, readdirSync, readFileSync } from 'node:fs';

/** O_CLOEXEC as Linux shows it in fdinfo, which Node.js has no name for. */
const CLOSE_ON_EXEC = 0o2000000;

/**
 * The descriptors that this process was started with, and that every process started from here would have as well: Node.js marks those below 16 as its own
 * alone, and forgets the ones above a gap. Ask before anything else opens files. Empty outside of Linux; macOS hands none of them down.
 */
export function inheritedFiles(): readonly number[] {
  try {
    return readdirSync('/proc/self/fd')
      .map(Number)
      .filter((fd) => fd > 2 && isHandedDown(fd));
  } catch {
    return [];
  }
}

/** Closes them here; whoever has been started before keeps them. */
export function closeFiles(descriptors: readonly number[]): void {
  for (const fd of descriptors) closeSync(fd);
}

function isHandedDown(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The one by which the folder was read is gone.
    return false;
  }
}
