import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { harnessFile } from '../support/package-root.js';
import type { Findings, Glance } from './judge.js';

/** The line that makes the observer answer with all that was seen before it. */
export const END_OF_ACTS = 'end';

/** How long the observer may take to start, and to answer, in milliseconds. */
const PATIENCE_MS = 30_000;
/** How long to leave a full pipe to its reader before the next try, in milliseconds. */
const FULL_PAUSE_MS = 20;

/** What the observer's process reports to its parent. */
export type Observation =
  | { readonly type: 'glance'; readonly glance: Glance }
  | { readonly type: 'findings'; readonly findings: Findings };

/** The process that sees all acts, and nothing else. */
export interface Observer {
  /** The named pipe that acts are written to. */
  readonly pipe: string;
  /** What it has said last; it speaks up every so often. */
  latest(): Glance;
  /** Waits until every act that is in the pipe by now has been judged, and ends the process. */
  finish(): Promise<Findings>;
  /** Ends the process, whatever it has seen. Idempotent. */
  kill(): void;
}

/**
 * Starts an observer in a process of its own, so that neither the tasks nor the troublemakers can hold it up.
 *
 * @param folder where its pipe is made
 * @param history a file that gets each act as a line
 * @throws Error when it does not get ready
 */
export async function startObserver(folder: string, history?: string): Promise<Observer> {
  const pipe = join(folder, 'acts');
  await promisify(execFile)('mkfifo', ['-m', '600', pipe]);
  const observer = fork(harnessFile('test/chaos/observer-main.ts'), [pipe, ...(history ? [history] : [])], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  let glance: Glance = { acts: 0, tenures: 0, violations: [], lost: 0, disordered: 0, late: 0 };
  let findings: Findings | undefined;
  observer.on('message', (message: Observation) => {
    if (message.type === 'glance') glance = message.glance;
    else findings = message.findings;
  });
  await heard(observer, 'to get ready');
  return {
    pipe,
    latest: () => glance,
    async finish() {
      if (!observer.connected) throw new Error('the observer has ended before it was asked to');
      const last = once(observer, 'disconnect');
      await writeEnd(pipe);
      if ((await Promise.race([last, sleep(PATIENCE_MS, 'late', { ref: false })])) === 'late') {
        throw new Error(`the observer did not come to an end within ${PATIENCE_MS} ms`);
      }
      if (findings === undefined) throw new Error('the observer ended without a word');
      return findings;
    },
    kill: () => void observer.kill('SIGKILL'),
  };
}

/** Opened for ordinary writing, a pipe without a reader would be waited for without end. */
async function writeEnd(pipe: string): Promise<void> {
  const end = await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    for (let patience = PATIENCE_MS / FULL_PAUSE_MS; ; patience -= 1) {
      try {
        await end.write(`${END_OF_ACTS}\n`);
        return;
      } catch (error) {
        const full = error instanceof Error && 'code' in error && error.code === 'EAGAIN';
        if (!full || patience <= 0) throw error;
        await sleep(FULL_PAUSE_MS);
      }
    }
  } finally {
    await end.close();
  }
}

async function heard(observer: ChildProcess, what: string): Promise<void> {
  const ended = once(observer, 'exit').then(([code, signal]) => {
    throw new Error(`the observer ended with ${code ?? signal} instead ${what}`);
  });
  ended.catch(() => {});
  const late = sleep(PATIENCE_MS, undefined, { ref: false }).then(() => {
    throw new Error(`the observer took more than ${PATIENCE_MS} ms ${what}`);
  });
  late.catch(() => {});
  await Promise.race([once(observer, 'message'), ended, late]);
}
