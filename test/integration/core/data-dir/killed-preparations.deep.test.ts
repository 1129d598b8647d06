import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { makeVersion, newRoot, removeRoot } from '../../../support/data-dirs.js';
import { killAll, runProcess } from '../../../support/processes.js';

const program = fileURLToPath(new URL('../../../fixtures/programs/prepare-data-dir.mjs', import.meta.url));

let root: string;
afterEach(async () => {
  await killAll();
  removeRoot(root);
});

const at = (version: number) => join(root, 'node-0', `v${version}`);
/** Prepares a version, by links where the work of the newest one has ended. */
const start = (version: number, ended: boolean) =>
  runProcess(process.execPath, [program, root, String(version), ...(ended ? [`${newest()}`] : [])]);

/** Leaves out what belongs to the directory, and not to its content. */
const NOT_ITS_OWN = '! -name directory-initialized.json ! -name directory-ended.json';

/** All that a version keeps: kind, mode, size and time of each path; with `bytes`, a hash of each file. */
function contentOf(version: number, { bytes }: { readonly bytes: boolean }): string {
  const kinds = `-type l -printf '%P l %l\\n' -o -type d -printf '%P d %m\\n' -o -printf '%P %y %m %s %Ts\\n'`;
  const facts = `find . -mindepth 1 ${NOT_ITS_OWN} \\( ${kinds} \\) | sort`;
  const hashes = `find . -type f ${NOT_ITS_OWN} -print0 | sort -z | xargs -0 sha1sum`;
  const script = `${facts}; ${bytes ? hashes : 'true'}`;
  return execFileSync('sh', ['-c', script], { cwd: at(version), maxBuffer: 2 ** 26, encoding: 'utf8' });
}

function validVersions(): number[] {
  return readdirSync(join(root, 'node-0'))
    .filter(
      (name) => existsSync(join(root, 'node-0', name, 'directory-initialized.json')) && /^v\d+$/.test(name),
    )
    .map((name) => Number(name.slice(1)));
}

function newest(): number {
  return Math.max(...validVersions());
}

/** Makes version 1 of many small files and some large ones. */
function makeTree(files: number, large: number, largeBytes: number): void {
  makeVersion(root, 0, 1, { 'link-here': '-> d0/f0', 'empty/': '' });
  for (let file = 0; file < files; file += 1) {
    const folder = join(at(1), `d${file % 100}`);
    if (file < 100) mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `f${file}`), randomBytes(1 + (file % 2_000)));
  }
  for (let file = 0; file < large; file += 1) {
    execFileSync('sh', ['-c', `head -c ${largeBytes} /dev/urandom >$0`, join(at(1), `large${file}`)]);
  }
}

/** Kills preparations of one version after the other; returns how many of them had come to their end. */
async function killed(first: number, kills: number, ended: boolean, bytes: boolean): Promise<number> {
  const expected = contentOf(validVersions().at(-1) ?? 0, { bytes });
  const begun = performance.now();
  const whole = start(first, ended);
  await whole.waitForOutput(/begins/, 60_000);
  const startedMs = performance.now() - begun;
  expect((await whole.exit).code).toBe(0);
  /** What a preparation takes by now: the machine may be busier than it was, or less. */
  let tookMs = performance.now() - begun - startedMs;
  let complete = 0;
  for (let kill = 1; kill <= kills; kill += 1) {
    const version = ended ? newest() + 1 : first + kill;
    const preparation = start(version, ended);
    await preparation.waitForOutput(/begins/, 60_000);
    const from = performance.now();
    const ownEnd = preparation.exit.then(() => performance.now() - from);
    await sleep(Math.random() * tookMs * 1.1);
    // It had come to its end before it was killed.
    if (!preparation.kill('SIGKILL')) tookMs = (tookMs + (await ownEnd)) / 2;
    await preparation.exit;
    const valid = validVersions();
    // One to go on from is always there, and whatever is new, or old and still there, is all of it.
    expect(valid.length).toBeGreaterThan(0);
    if (valid.includes(version)) complete += 1;
    for (const each of valid) expect([each, contentOf(each, { bytes })]).toEqual([each, expected]);
  }
  const last = first + kills + 1;
  expect((await start(last, ended).exit).code).toBe(0);
  const [older, made] = validVersions().sort((a, b) => a - b);
  expect([made, contentOf(last, { bytes: true })]).toEqual([last, contentOf(older ?? 0, { bytes: true })]);
  expect(readdirSync(join(root, 'node-0')).length).toBe(2);
  return complete;
}

it('a preparation that is killed at a random point 182 times leaves a complete version or none, and its source as it was', async () => {
  // In memory: a kill loses nothing that was written, so what matters is the point.
  root = newRoot(existsSync('/dev/shm') ? '/dev/shm' : undefined);
  makeTree(300, 2, 10_000_000);
  const copies = await killed(2, 130, false, true);
  expect(copies).toBeLessThan(110);
  const links = await killed(200, 52, true, true);
  expect(links).toBeLessThan(45);
}, 900_000);

it('and 18 times with 10,000 files and 2 GB', async () => {
  root = newRoot();
  makeTree(10_000, 4, 497_500_000);
  await killed(2, 14, true, false);
  await killed(100, 4, false, false);
}, 1_800_000);
