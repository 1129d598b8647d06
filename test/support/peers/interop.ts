import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { installed } from '../installed.js';
import { packageRoot } from '../package-root.js';

const SOURCES = join(packageRoot, 'test/interop');
const ENDS_WITHIN_MS = 60_000;
/** For short runs: the compiler's best would come too late. */
export const JAVA_OPTIONS = [
  '-Xmx128m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=error',
];

const run = promisify(execFile);

/** The libraries that programs of `test/interop` are written for. */
interface Library {
  /** Of the programs, in `test/interop`. */
  readonly folder: string;
  /** The variable that gives its class path. */
  readonly variable: string;
  /** What prints its class path, having installed it at need. */
  readonly installer: readonly [script: string, ...args: string[]];
  /** What to do where that fails, for people. */
  readonly wanted: string;
}

const CURATOR: Library = {
  folder: '.',
  variable: 'NODELEASE_TEST_CURATOR_CLASSPATH',
  installer: ['install-curator.sh'],
  wanted:
    'Debian or Ubuntu: apt-get install libcurator-discovery-java libcurator-framework-java libcurator-client-java libcurator-recipes-java default-jdk-headless',
};
const ofMaven = (folder: string, variable: string): Library => ({
  folder,
  variable,
  installer: ['install-maven.sh', folder],
  wanted: 'Debian or Ubuntu: apt-get install maven default-jdk-headless',
});
const SPRING = ofMaven('spring', 'NODELEASE_TEST_SPRING_CLASSPATH');
const DUBBO = ofMaven('dubbo', 'NODELEASE_TEST_DUBBO_CLASSPATH');

/** @throws Error when there is none and it cannot be installed; tests are never skipped for that */
async function findClassPath({ variable, installer, wanted }: Library): Promise<string> {
  const given = process.env[variable];
  if (given) return given;
  const [script, ...args] = installer;
  return installed(
    script,
    args,
    `${wanted}, or set ${variable} to the jars, with those that they need, and have a JDK`,
  );
}

/**
 * Compiles the programs for Apache Curator, once for as long as they do not change, into the tests' cache
 * outside of the tree.
 *
 * @returns the class path of its programs, the library included
 * @throws Error with the compiler's words
 */
export function compileCuratorPrograms(): Promise<string> {
  return compile(CURATOR);
}

/** The same for Spring Cloud Zookeeper. */
export function compileSpringPrograms(): Promise<string> {
  return compile(SPRING);
}

/** The same for Dubbo. */
export function compileDubboPrograms(): Promise<string> {
  return compile(DUBBO);
}

async function compile(library: Library): Promise<string> {
  const classPath = await findClassPath(library);
  const folderOfSources = join(SOURCES, library.folder);
  const sources = (await readdir(folderOfSources)).filter((file) => file.endsWith('.java')).sort();
  const hash = createHash('sha256').update(classPath);
  for (const source of sources) hash.update(source).update(await readFile(join(folderOfSources, source)));
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nodelease-test');
  const folder = join(cache, `interop-${hash.digest('hex').slice(0, 16)}`);
  if (!existsSync(folder)) {
    const unfinished = `${folder}-${randomBytes(4).toString('hex')}`;
    await mkdir(unfinished, { recursive: true });
    try {
      await run('javac', [
        '-encoding',
        'UTF-8',
        '-cp',
        classPath,
        '-d',
        unfinished,
        ...sources.map((source) => join(folderOfSources, source)),
      ]);
      await rename(unfinished, folder);
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true });
      // Another run may have been faster.
      if (!existsSync(folder)) throw error;
    }
  }
  return [classPath, folder].join(delimiter);
}

/** Runs one of Curator's programs to its end. */
export async function runJava(program: string, args: readonly string[]): Promise<void> {
  await run('java', [...JAVA_OPTIONS, '-cp', await compileCuratorPrograms(), program, ...args], {
    timeout: ENDS_WITHIN_MS,
  });
}
