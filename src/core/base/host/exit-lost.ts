import { spawn } from 'node:child_process';
import { isMainThread } from 'node:worker_threads';

/** The exit code of a process that has lost its lease. */
const EXIT_LEASE_LOST = 76;

/** Requests to a disk or to a name server. */
const POOLED = /^(FSReq|CloseReq|Get(Addr|Name)Info)/;

/** Kills the process that has started this shell, if it is still there after half a second. */
const KILL_PARENT =
  'sleep 0.5 || sleep 1; read -r _ _ _ parent _ </proc/$$/stat; [ "$parent" = "$0" ] && kill -9 "$parent"';

/**
 * Ends this process since its lease is lost. process.exit() waits for the requests that are under way in the
 * threads of Node's pool, without a limit, and for all that are queued there. So a child kills it then. Process 1
 * of a container ignores that, and aborts.
 */
export function exitLost(): never {
  if (isMainThread && process.getActiveResourcesInfo().some((each) => POOLED.test(each))) {
    if (process.pid === 1) process.abort();
    try {
      spawn('/bin/sh', ['-c', KILL_PARENT, `${process.pid}`], { detached: true, stdio: 'ignore' });
    } catch {
      // As where there is no shell or no /proc: nothing ends the wait.
    }
  }
  process.exit(EXIT_LEASE_LOST);
}
