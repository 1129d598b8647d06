// `npm run bench:startup`: what the start of a command costs compared with a bare node, measured in turns in
// one run. Prints a table, and judges nothing.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { awsEnvironment, createBucket } from '../../test/support/bucket.js';
import { cliFile } from '../../test/support/processes.js';
import { startMinio } from '../../test/support/servers/minio.js';
import { markdownTable } from '../markdown.js';
import { median } from '../report.js';

/** A program whose start is measured. */
interface Program {
  readonly name: string;
  /** It writes to standard output when it has started. */
  readonly args: readonly string[];
}

/** What one start took. */
interface Start {
  /** From the spawn to the first output, in milliseconds. */
  readonly ms: number;
  /** The largest resident set until then, in MiB. */
  readonly mib: number;
}

const ROUNDS = 21;
const WARM_UP_ROUNDS = 2;

const BARE = { name: 'node -e 0', args: ['-e', 'fs.writeSync(1, "0")'] };

/** Starts a program, and ends with it. */
async function start({ name, args }: Program, env: NodeJS.ProcessEnv): Promise<Start> {
  const begun = performance.now();
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  await once(child.stdout, 'data');
  const ms = performance.now() - begun;
  const mib = peakMib(child.pid);
  const [code] = await exit;
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
  // It has ended before its memory could be read: rare, and no measurement.
  return mib === undefined ? start({ name, args }, env) : { ms, mib };
}

/** proc(5): the peak resident set of a process that has not ended. */
function peakMib(pid: number | undefined): number | undefined {
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return kib === undefined ? undefined : Number(kib) / 1024;
}

async function measure(programs: readonly Program[], env: NodeJS.ProcessEnv): Promise<Start[][]> {
  const starts = programs.map((): Start[] => []);
  // In turns, so that whatever else the machine does falls on all of them.
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
    for (const [index, program] of programs.entries()) {
      const taken = await start(program, env);
      if (round >= 0) starts[index]?.push(taken);
    }
  }
  return starts;
}

// The SDK's warning that it will need a newer Node one day is of no use in a measurement.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

const server = await startMinio();
const folder = mkdtempSync(join(tmpdir(), 'nodelease-bench-'));
try {
  const bucket = await createBucket(server);
  const run = (...store: string[]) => [
    cliFile,
    'run',
    '--log-level',
    'warn',
    '--nodes',
    '4',
    ...store,
    '--',
    'echo',
    'started',
  ];
  const programs: Program[] = [
    BARE,
    { name: 'nodelease --version', args: [cliFile, '--version'] },
    { name: 'nodelease run, file:', args: run('--store', `file:${folder}`) },
    {
      name: 'nodelease run, S3',
      args: run('--store', `s3://${bucket.name}/bench`, '--endpoint', server.endpoint),
    },
  ];
  const starts = await measure(programs, { ...process.env, ...awsEnvironment(server) });
  const medians = starts.map((taken) => ({
    ms: median(taken.map(({ ms }) => ms)),
    mib: median(taken.map(({ mib }) => mib)),
  }));
  const bare = medians[0] ?? { ms: Number.NaN, mib: Number.NaN };
  const rows = medians.map(({ ms, mib }, index) => [
    programs[index]?.name ?? '',
    ...[ms.toFixed(0), (ms / bare.ms).toFixed(2), mib.toFixed(1), (mib / bare.mib).toFixed(2)],
  ]);
  process.stdout.write(
    `Node ${process.version}, ${cpus()[0]?.model ?? 'an unknown processor'}, ${cpus().length} threads, ${server.description}.\n`,
  );
  process.stdout.write(
    `Until the first output, of \`run\` that of the child; medians of ${ROUNDS}, in turns.\n\n`,
  );
  process.stdout.write(`${markdownTable(['', 'ms', 'ratio', 'peak MiB', 'ratio'], rows)}\n`);
} finally {
  rmSync(folder, { recursive: true });
  await server.stop();
}
