import { homedir, hostname } from 'node:os';

// What a process asks its system for, where Node throws instead of an answer.

/** The name of this host; empty where the system has none. */
export function hostName(ask = hostname): string {
  try {
    return ask();
  } catch {
    return '';
  }
}

/**
 * Gives a process a home directory, `/` as in containers, where its user has none: without HOME, and without
 * an entry in /etc/passwd. The SDKs of clouds look for their files there, and fail if there is no home, even
 * if they need none.
 */
export function ensureHome(env: NodeJS.ProcessEnv, ask = homedir): void {
  try {
    if (!env.HOME) ask();
  } catch {
    env.HOME = '/';
  }
}
