import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { packageRoot } from './package-root.js';

const SOURCES = join(packageRoot, 'test/interop');
const ENDS_WITHIN_MS = 60_000;
/** For short runs: the compiler's best would come too late. */
export const JAVA_OPTIONS = ['-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=error'];

const run = promisify(execFile);

/**
 * The class path of Apache Curator's service discovery: what NODELEASE_TEST_CURATOR_CLASSPATH says, else the jars of Debian's packages,
 * installed at need.
 *
 * @throws Error when there is none and it cannot be installed; tests are never skipped for that
 */
export async function findCurator(): Promise<string> {
  const given = process.env.NODELEASE_TEST_CURATOR_CLASSPATH;
  if (given) return given;
  const install = spawn('sh', [join(packageRoot, 'test/support/install-curator.sh')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [path, [code]] = await Promise.all([text(install.stdout), once(install, 'close') as Promise<[number | null]>]);
  if (code === 0) return path.trim();
  throw new Error(`Apache Curator could not be installed (exit code ${code}); the reason stands above. Tests beside the real Curator need one of
  - Debian or Ubuntu: apt-get install libcurator-discovery-java libcurator-framework-java libcurator-client-java libcurator-recipes-java default-jdk-headless,
  - its jars, with those that they need and a JDK: set NODELEASE_TEST_CURATOR_CLASSPATH.`);
}

/**
 * Compiles `test/interop`, once for as long as it does not change, into the tests' cache outside of the tree.
 *
 * @returns the class path of its programs, Curator included
 * @throws Error with the compiler's words
 */
export async function compileInterop(): Promise<string> {
  const classPath = await findCurator();
  const sources = (await readdir(SOURCES, { recursive: true })).filter((file) => file.endsWith('.java')).sort();
  const hash = createHash('sha256').update(classPath);
  for (const source of sources) hash.update(source).update(await readFile(join(SOURCES, source)));
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nodelease-test');
  const folder = join(cache, `interop-${hash.digest('hex').slice(0, 16)}`);
  if (!existsSync(folder)) {
    const unfinished = `${folder}-${randomBytes(4).toString('hex')}`;
    await mkdir(unfinished, { recursive: true });
    try {
      await run('javac', ['-encoding', 'UTF-8', '-cp', classPath, '-d', unfinished, ...sources.map((source) => join(SOURCES, source))]);
      await rename(unfinished, folder);
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true });
      // Another run may have been faster.
      if (!existsSync(folder)) throw error;
    }
  }
  return [classPath, folder].join(delimiter);
}

/** Runs one of the programs of `test/interop` to its end. */
export async function runJava(program: string, args: readonly string[]): Promise<void> {
  await run('java', [...JAVA_OPTIONS, '-cp', await compileInterop(), program, ...args], { timeout: ENDS_WITHIN_MS });
}
