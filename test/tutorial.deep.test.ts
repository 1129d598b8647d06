import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, inject, it } from 'vitest';
import { awsEnvironment, createBucket } from './support/bucket.js';
import { packageRoot } from './support/package-root.js';
import { cliFile } from './support/processes.js';
import { freePort } from './support/servers/free-ports.js';

const SESSION = /^```console session\n([\s\S]*?)^```$/gm;
const FILE = /`([\w.]+)`[^`]*\n\n```(?:js no-run|sh)\n([\s\S]*?)^```$/gm;

const folder = mkdtempSync(join(tmpdir(), 'nodelease-tutorial-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a page shows, for outputs of other tasks at other times. */
function patternOf(shown: string): RegExp {
  const literal = shown.trim().replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(
    literal.replace(/\S+-[0-9a-f]{16}|\d\S+T\S+Z|\d+\\\.\ds/g, '\\S+').replace(/[ \n]+/g, '\\s+'),
  );
}

it('shows in one terminal what the tutorial shows', async () => {
  const page = readFileSync(join(packageRoot, 'docs/start/tutorial.md'), 'utf8');
  const [s3, bucket, receiver, console] = [
    inject('s3'),
    await createBucket(inject('s3')),
    await freePort(),
    await freePort(),
  ];
  const here = (text: string) =>
    text
      .replaceAll('18080', `${receiver}`)
      .replaceAll('17070', `${console}`)
      .replaceAll('s3://my-bucket', `s3://${bucket.name}`)
      .replaceAll('http://127.0.0.1:9000', s3.endpoint);
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  symlinkSync(cliFile, join(folder, 'node_modules/.bin/nodelease'));
  for (const [, name = '', text = ''] of page.matchAll(FILE)) writeFileSync(join(folder, name), here(text));

  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, ...awsEnvironment(s3) };
  const terminal = spawn('bash', [], { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] });
  // Jobs have numbers and process groups, as in a terminal.
  terminal.stdin.write('set -m\n');
  let output = '';
  terminal.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const commands = [...page.matchAll(SESSION)].flatMap(([, block = '']) => block.split(/^\$ /m).slice(1));
  expect(commands.length).toBeGreaterThan(12);
  try {
    for (const command of commands) {
      const [line = '', ...shown] = command.split('\n');
      output = '';
      terminal.stdin.write(`${here(line)}\n`);
      const pattern = patternOf(here(shown.join('\n')));
      while (!pattern.test(output)) await once(terminal.stdout, 'data');
    }
  } finally {
    // None is left, unless the test has failed.
    terminal.stdin.end('kill -KILL $(jobs -p)\n');
    await once(terminal, 'exit');
  }
});
