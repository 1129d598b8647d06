// `npm run prove`: tries to refute what this project claims, for an hour, and writes what came of it into
// docs/reference/proof.md. Exits with 1 where something was refuted, and then writes no page.

import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { packageRoot } from '../support/package-root.js';
import { type Proof, proofs } from './proofs.js';

const PAGE = join(packageRoot, 'docs/reference/proof.md');
const START = '<!-- prove -->';

const [minutes = '60', ...rest] = process.argv.slice(2);
if (!/^[1-9]\d{0,3}$/.test(minutes) || rest.length > 0) {
  process.stderr.write(
    `usage: npm run prove [-- MINUTES]: a whole number, not ${minutes} ${rest.join(' ')}\n`,
  );
  process.exit(64);
}

const rows: string[] = [];
for (const proof of proofs(Number(minutes))) {
  process.stderr.write(`\n${proof.by}\n`);
  const begun = process.hrtime.bigint();
  const { code, output } = await run(proof);
  const seconds = Math.round(Number(process.hrtime.bigint() - begun) / 1e9);
  const [tried, found] = proof.figures(output);
  rows.push(
    `| ${[proof.claim, `\`${proof.by}\``, tried, code === 0 ? found : `**refuted**: exit code ${code}`, `${seconds} s`].join(' | ')} |`,
  );
  process.stdout.write(`${rows.at(-1)}\n`);
  if (code !== 0) process.exitCode = 1;
}
if (process.exitCode === undefined) {
  const [text = ''] = readFileSync(PAGE, 'utf8').split(START);
  const head = ['| claim | tried by | tried | found | |', '|---|---|---|---|--:|'];
  const on = `${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${cpus().length} cores.`;
  writeFileSync(PAGE, `${text}${START}\n\n${[...head, ...rows].join('\n')}\n\n${on}\n`);
}

/** Runs it; what it prints is shown, too. */
async function run({ command: [program, ...args] }: Proof): Promise<{ code: number; output: string }> {
  const child = spawn(program, args, { cwd: packageRoot, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    process.stderr.write(text);
  });
  const code = await new Promise<number>((done) => child.once('close', (code) => done(code ?? 1)));
  return { code, output: stripVTControlCharacters(output) };
}
