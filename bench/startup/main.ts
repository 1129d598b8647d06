// `npm run bench:startup`: what the start of a command costs, compared with a bare Node and with a bundled
// program that makes one PUT and one GET by the same SDK. On each version of Node, measured in turns in one
// run. Prints tables, and judges nothing.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { build } from 'esbuild';
import { awsEnvironment, createBucket } from '../../test/support/bucket.js';
import { installed } from '../../test/support/installed.js';
import { packageRoot } from '../../test/support/package-root.js';
import { cliFile } from '../../test/support/processes.js';
import { startMinio } from '../../test/support/servers/minio.js';
import { markdownTable } from '../markdown.js';
import { median } from '../report.js';

/** A program whose start is measured. */
interface Program {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Called before each start. */
  readonly prepare?: () => void;
}

/** What one start took, to the end of the process. */
interface Start {
  /** Processor time, in milliseconds. */
  readonly ms: number;
  /** The largest resident set, in MiB. */
  readonly mib: number;
}

const ROUNDS = 15;
const WARM_UP_ROUNDS = 2;
const MAJORS = [22, 24, 26];

const folder = mkdtempSync(join(tmpdir(), 'nodelease-bench-'));
const MEASURED = join(packageRoot, 'bench/startup/measured.cjs');

async function start(node: string, { name, args, env, prepare }: Program): Promise<Start> {
  prepare?.();
  const child = spawn(node, [MEASURED, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
  });
  const exit = once(child, 'exit');
  const taken = await text(child.stdio[3] as Readable);
  const [code] = await exit;
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
  return JSON.parse(taken) as Start;
}

async function measure(node: string, programs: readonly Program[]): Promise<string> {
  const starts = programs.map((): Start[] => []);
  // In turns, so that whatever else the machine does falls on all of them.
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1)
    for (const [index, program] of programs.entries()) {
      const taken = await start(node, program);
      if (round >= 0) starts[index]?.push(taken);
    }
  // Whatever else the machine does only ever adds time.
  const all = starts.map((taken) => ({
    ms: Math.min(...taken.map(({ ms }) => ms)),
    mib: median(taken.map(({ mib }) => mib)),
  }));
  const [bare, sdk] = all as [Start, Start];
  const times = (value: number, of: number) => (value / of).toFixed(2);
  const rows = all.map(({ ms, mib }, index) => [
    programs[index]?.name ?? '',
    ...[ms.toFixed(0), times(ms, bare.ms), times(ms, sdk.ms)],
    ...[mib.toFixed(1), times(mib, bare.mib), times(mib, sdk.mib)],
  ]);
  return markdownTable(['', 'ms', '/ bare', '/ SDK', 'peak MiB', '/ bare', '/ SDK'], rows);
}

// The SDK's warning that it will need a newer Node one day is of no use in a measurement.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

const server = await startMinio();
try {
  Object.assign(process.env, awsEnvironment(server));
  const bucket = await createBucket(server);
  const bundled = join(folder, 'get-and-put.cjs');
  await build({
    ...{ entryPoints: [join(packageRoot, 'bench/startup/get-and-put.ts')], outfile: bundled },
    ...{ bundle: true, platform: 'node', logLevel: 'error' },
  });
  const run = (...store: string[]) => [
    ...['run', '--log-level', 'error', '--nodes', '4', ...store],
    ...['--', 'true'],
  ];
  const onS3 = run('--store', `s3://${bucket.name}/bench`, '--endpoint', server.endpoint);
  const copy = join(folder, 'cli');
  cpSync(dirname(cliFile), copy, { recursive: true });
  // A run comes first: what it leaves in the compile cache is what later starts find.
  const programs: Program[] = [
    { name: 'nothing', args: [] },
    { name: 'one PUT and one GET by the SDK', args: [bundled, server.endpoint, bucket.name] },
    { name: 'nodelease run, S3', args: [cliFile, ...onS3] },
    {
      name: 'the same, its first start',
      args: [join(copy, basename(cliFile)), ...onS3],
      prepare: () => rmSync(join(copy, 'compile-cache'), { recursive: true, force: true }),
    },
    {
      name: 'the same, without a compile cache',
      args: [cliFile, ...onS3],
      env: { NODE_DISABLE_COMPILE_CACHE: '1' },
    },
    { name: 'nodelease --version', args: [cliFile, '--version'] },
    { name: 'nodelease run, file:', args: [cliFile, ...run('--store', `file:${folder}/leases`)] },
  ];
  process.stdout.write(
    `${cpus()[0]?.model ?? 'An unknown processor'}, ${cpus().length} threads, ${server.description}.\n` +
      `The least processor time and the median of the peak memory, of ${ROUNDS} starts in turns, to the end of the process.\n`,
  );
  const nodes = [process.execPath];
  for (const major of MAJORS) nodes.push(await installed('install-node.sh', [String(major)], 'install npm'));
  for (const node of nodes) {
    const version = spawn(node, ['--version'], { stdio: ['ignore', 'pipe', 'inherit'] });
    process.stdout.write(
      `\nNode ${(await text(version.stdout)).trim()}\n\n${await measure(node, programs)}\n`,
    );
  }
} finally {
  rmSync(folder, { recursive: true });
  await server.stop();
}
