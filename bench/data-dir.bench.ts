import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { constants, copyFileSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../src/core/base/system.js';
import { markEnded } from '../src/core/data-dir/marker.js';
import { prepareDataDir } from '../src/core/data-dir/prepare.js';
import { camundaMarker, makeVersion } from '../test/support/data-dirs.js';
import { median, report } from './report.js';

const FILES = 10_000;
const LARGE = 4;
const LARGE_BYTES = 500_000_000;
const ROUNDS = 3;

const shell = (script: string, ...args: string[]) => execFileSync('sh', ['-c', script, 'sh', ...args]);

/** 10,000 files of a kilobyte and four of 500 MB, as version 1 of node id 0. */
function makeTree(root: string): string {
  const top = makeVersion(root, 0, 1, {}, null);
  for (let file = 0; file < FILES; file += 1) {
    if (file < 100) mkdirSync(join(top, `d${file}`));
    writeFileSync(join(top, `d${file % 100}`, `f${file}`), randomBytes(1_000));
  }
  for (let file = 0; file < LARGE; file += 1)
    shell('head -c $1 /dev/urandom >$2', String(LARGE_BYTES), join(top, `large${file}`));
  writeFileSync(join(top, 'directory-initialized.json'), camundaMarker(1, null));
  return top;
}

function hasClones(root: string): boolean {
  try {
    writeFileSync(join(root, 'a'), 'x');
    copyFileSync(join(root, 'a'), join(root, 'b'), constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch {
    return false;
  }
}

/** Seconds. What was written before is on the disk by then. */
async function seconds(work: () => unknown): Promise<number> {
  shell('sync');
  const begun = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - begun) / 1e9;
}

/**
 * The root on the file system of the working files, and with btrfs-progs or xfsprogs, as root, one that
 * clones.
 */
function roots(): { readonly name: string; readonly root: string; readonly end: () => void }[] {
  const plain = mkdtempSync(join(tmpdir(), 'nodelease-bench-'));
  const all = [{ name: 'here', root: plain, end: () => rmSync(plain, { recursive: true }) }];
  for (const [name, make] of [
    ['xfs', 'mkfs.xfs -q'],
    ['btrfs', 'mkfs.btrfs -q'],
  ]) {
    const folder = mkdtempSync(join(tmpdir(), 'nodelease-bench-'));
    const end = () => {
      shell('umount $1/at 2>/dev/null; rm -rf $1', folder);
    };
    try {
      shell(
        `truncate -s 12G $1/image && ${make} $1/image && mkdir $1/at && mount -o loop $1/image $1/at`,
        folder,
      );
      all.push({ name: `${name}, in a file`, root: join(folder, 'at'), end });
    } catch {
      end();
      process.stdout.write(`no ${name} here\n`);
    }
  }
  return all;
}

it('the time to prepare 2 GB in 10,000 files, compared with cp -a', async () => {
  for (const { name, root, end } of roots()) {
    try {
      const source = makeTree(root);
      const clones = hasClones(root);
      const times: Record<string, number[]> = {};
      const measure = async (what: string, work: () => unknown) => {
        times[what] = [...(times[what] ?? []), await seconds(work)];
      };
      const prepare = async (version: number, ended: boolean) => {
        if (ended) await markEnded(source);
        const lease = { id: 0, version, signal: new AbortController().signal, isValid: () => true };
        return prepareDataDir({ root, lease, store: 's3://b/p', clock: systemClock, retention: 9 });
      };
      for (let round = 0; round < ROUNDS; round += 1) {
        const copy = join(root, 'copy');
        await measure('cp -a, and sync', () =>
          shell(`cp -a --reflink=never $1 $2 && sync -f $2`, source, copy),
        );
        shell('rm -r $1', copy);
        await measure('cp -al, and sync', () => shell('cp -al $1 $2 && sync -f $2', source, copy));
        shell('rm -r $1', copy);
        if (clones) {
          await measure('cp -a --reflink, and sync', () =>
            shell('cp -a --reflink=always $1 $2 && sync -f $2', source, copy),
          );
          shell('rm -r $1', copy);
        }
        await measure('nodelease, by links', () => prepare(2, true));
        shell('rm -r $1', join(root, 'node-0/v2'));
        await measure(clones ? 'nodelease, by reflinks' : 'nodelease, by copies', () => prepare(2, false));
        shell('rm -r $1', join(root, 'node-0/v2'));
      }
      const baseline = median(times['cp -a, and sync'] ?? []);
      report(
        `2 GB in ${FILES} files, ${name} (${statfsSync(root).type.toString(16)}), median of ${ROUNDS}`,
        Object.entries(times).map(([what, values]) => [
          what,
          `${median(values).toFixed(2)} s`,
          (median(values) / baseline).toFixed(2),
        ]),
      );
      expect(median(times['nodelease, by links'] ?? [])).toBeLessThan(baseline);
    } finally {
      end();
    }
  }
}, 1_200_000);
