import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { awsEnvironment, createBucket, type TestBucket } from './support/bucket.js';
import { guidePages } from './support/guide-pages.js';
import { packageRoot } from './support/package-root.js';
import { uniqueChroot } from './support/zookeeper.js';

// The code blocks of README and guides. One in `js` runs as it is, one in `ts` is compiled first, strictly.
// `<!-- ts` or `<!-- js` in the line above has code that readers do not see and that runs before the block:
// what the reader's own program has. A block continues the program of its page, unless it declares a name
// again. One marked `no-run` is a program that is compiled only.

const run = promisify(execFile);
// Below the package, which finds itself there by its name.
const folder = join(packageRoot, '.harness/code-blocks');
const place = mkdtempSync(join(tmpdir(), 'nodelease-blocks-'));

interface Program {
  /** Where its first block is: `docs/guides/node-ids.md:17`. */
  readonly name: string;
  readonly language: 'ts' | 'js';
  readonly isRun: boolean;
  code: string;
}

const BLOCK = /(?:^<!-- (?:ts|js)\n([\s\S]*?)-->\n)?^```(ts|js)( no-run)?\n([\s\S]*?)^```$/gm;
const DECLARED = /^(?:export )?(?:await using|const|let|import) (?:\w+|\{.*?\})/gm;

/** The names that code declares or imports at its top level. */
function declaredIn(code: string): string[] {
  return [...code.matchAll(DECLARED)].flatMap(([statement]) =>
    [...statement.matchAll(/(\w+)(?= *[,}]|$)/g)].map(([, name = '']) => name),
  );
}

function programsOf(page: string): Program[] {
  const programs: Program[] = [];
  const text = readFileSync(join(packageRoot, page), 'utf8');
  for (const { 0: block, 1: hidden = '', 2: fence, 3: mark, 4: shown = '', index } of text.matchAll(BLOCK)) {
    const language = fence as 'ts' | 'js';
    const isRun = mark === undefined;
    const code = hidden + shown;
    const last = programs.findLast((program) => program.language === language && program.isRun);
    const known = new Set(declaredIn(last?.code ?? ''));
    if (last && isRun && !declaredIn(code).some((name) => known.has(name))) last.code += code;
    else {
      const fenceAt = index + block.indexOf('```');
      const line = text.slice(0, fenceAt).split('\n').length;
      programs.push({ name: `${page}:${line}`, language, isRun, code });
    }
  }
  return programs;
}

const programs = guidePages.flatMap(programsOf);

let bucket: TestBucket;
const fileOf = ({ name }: Program) => name.replace(/\W/g, '-');

beforeAll(async () => {
  bucket = await createBucket(inject('s3'));
  await mkdir(folder, { recursive: true });
  for (const program of programs) {
    // The servers of this run, with a separate prefix and chroot.
    const code = program.code
      .replaceAll('s3://my-bucket', `s3://${bucket.name}/${fileOf(program)}`)
      .replaceAll("'my-bucket'", `'${bucket.name}'`)
      .replaceAll(/zk1:2181[,:\w]*(\/shop)?/g, `${inject('zookeeper').connect}${uniqueChroot('blocks')}`)
      .replaceAll('/var/lib/shop', place);
    await writeFile(join(folder, `${fileOf(program)}.${program.language === 'ts' ? 'mts' : 'mjs'}`), code);
  }
});

afterAll(() => {
  for (const path of [folder, place]) rmSync(path, { recursive: true, force: true });
});

describe('the code blocks of README and guides', () => {
  it('in TypeScript compile strictly', async () => {
    const files = programs.filter(({ language }) => language === 'ts').map((it) => `${fileOf(it)}.mts`);
    expect(files.length).toBeGreaterThan(15);
    const lib = ['es2022', 'esnext.disposable'];
    const options = { strict: true, skipLibCheck: true, types: ['node'], module: 'nodenext', lib };
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...options, target: 'es2022', noEmitOnError: false }, files }),
    );
    await run(join(packageRoot, 'node_modules/.bin/tsc'), [], { cwd: folder });
  });

  it.each(programs.filter(({ isRun }) => isRun).map((program) => [program.name, program] as const))(
    '%s runs',
    async (_, program) => {
      const s3 = inject('s3');
      const env = {
        ...{ PATH: process.env.PATH, HOME: place, HOSTNAME: 'web-7' },
        ...awsEnvironment(s3),
        AWS_ENDPOINT_URL_S3: s3.endpoint,
      };
      // It ends where the page ends, whatever it holds then.
      const start = `await import(${JSON.stringify(join(folder, `${fileOf(program)}.mjs`))}); process.exit();`;
      await run(process.execPath, ['--input-type=module', '--eval', start], {
        cwd: place,
        env,
        timeout: 110_000,
      });
    },
  );
});
