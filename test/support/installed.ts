import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { packageRoot } from './package-root.js';

/** The longest one of `npm test` takes 6 minutes on two cores, and the longest of all half an hour. */
const GIVE_UP_AFTER_MS = 45 * 60_000;
const REPORT_EVERY_MS = 20_000;

/**
 * Runs a script of `test/support/install`, which prints where something is, and installs it first where it is
 * missing. The terminal then shows what is being installed, for how long so far, and how long it took last
 * time. The output of the tools goes into a log file.
 *
 * @param otherwise what to do where the script fails: `install Go 1.24 or later, or start Docker`
 * @returns what the script printed
 * @throws Error of one line where it fails, or takes longer than 45 minutes
 */
export async function installed(script: string, args: readonly string[], otherwise: string): Promise<string> {
  const name = [basename(script).replace(/^install-|\.sh$/g, ''), ...args].join('-');
  // In a process group of its own, so that the tools end with the script.
  const install = spawn('sh', [resolve(packageRoot, 'test/support/install', script), ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const giveUp = () => killGroup(install);
  process.once('exit', giveUp);
  const timer = setTimeout(giveUp, GIVE_UP_AFTER_MS);
  const progress = new Progress(name);
  try {
    const ended = once(install, 'close') as Promise<[number | null]>;
    const answer = text(install.stdout);
    for await (const line of createInterface(install.stderr)) progress.add(line);
    const [code] = await ended;
    if (code !== 0)
      throw new Error(
        `${name} could not be installed (${progress.describe(code)}). ${capitalized(otherwise)}.`,
      );
    progress.succeed();
    return (await answer).trim();
  } finally {
    clearTimeout(timer);
    process.off('exit', giveUp);
    progress.close();
  }
}

/**
 * What the terminal shows of one installation. A script that finds everything in its place writes no line,
 * and then nothing is shown.
 */
class Progress {
  readonly #begun = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #lastLine = 'it said nothing';

  constructor(readonly name: string) {}

  add(line: string): void {
    if (this.#timer === undefined) this.#start(line);
    appendFileSync(this.#file('log'), `${line}\n`);
    if (line.trim() !== '') this.#lastLine = line.trim();
  }

  #start(line: string): void {
    const before = read(this.#file('seconds'));
    const last = before === undefined ? '' : ` It took ${before} s last time.`;
    process.stderr.write(`${line}${last}\n`);
    this.#timer = setInterval(
      () => process.stderr.write(`${this.name}: ${this.#seconds()} s so far.${last}\n`),
      REPORT_EVERY_MS,
    );
    writeFileSync(this.#file('log'), '');
  }

  /** What went wrong, in one line. */
  describe(code: number | null): string {
    return `exit code ${code ?? 'none'} after ${this.#seconds()} s: ${this.#lastLine}; all of its output is in ${this.#file('log')}`;
  }

  succeed(): void {
    if (this.#timer === undefined) return;
    process.stderr.write(`${this.name}: installed in ${this.#seconds()} s.\n`);
    writeFileSync(this.#file('seconds'), String(this.#seconds()));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #seconds(): number {
    return Math.round((performance.now() - this.#begun) / 1_000);
  }

  #file(suffix: string): string {
    const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nodelease-test');
    mkdirSync(cache, { recursive: true });
    return join(cache, `${this.name}.${suffix}`);
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGTERM');
  } catch {
    // It has ended.
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

const capitalized = (sentence: string) => sentence.charAt(0).toUpperCase() + sentence.slice(1);
