import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DataDirEvent } from '../../../../src/index.js';
import {
  camundaMarker,
  contentOf,
  makeVersion,
  manifest,
  newRoot,
  removeRoot,
} from '../../../support/data-dirs.js';
import { runInProcess } from '../../../support/in-process.js';
import { packageRoot } from '../../../support/package-root.js';
import { cliFile, killAll, runCli, runProcess, type TestProcess } from '../../../support/processes.js';
import { untilDead } from '../../app/cli/run-support.js';

let folder: string;
let root: string;

beforeEach(() => {
  folder = newRoot();
  root = join(folder, 'data');
  mkdirSync(root);
});
afterEach(async () => {
  await killAll();
  removeRoot(folder);
});

const HANGING_COPIES = fileURLToPath(
  new URL('../../../fixtures/programs/hanging-copies.mjs', import.meta.url),
);
/** More than is copied at once. */
const LARGE_BYTES = 6e6;

const at = (version: number) => join(root, 'node-0', `v${version}`);
const optionsOf = (...more: readonly string[]) => [
  ...[
    '--store',
    `file:${folder}/store`,
    '--nodes',
    '1',
    '--duration',
    '10s',
    '--grace',
    '100ms',
    '--data-dir',
    root,
  ],
  ...more,
];
const run = (script: string, ...more: string[]) =>
  runCli(['run', ...optionsOf(...more), '--', 'sh', '-c', script]);
const lines = (run: TestProcess) => run.stderr().trim().split('\n');
const operate = (...args: string[]) => runInProcess([...args, '--store', `file:${folder}/store`]);

/** Has version 1 hold a large file, and then a task that copies it and does not come to its end. */
async function copying(...more: string[]): Promise<TestProcess> {
  await run(`truncate -s ${LARGE_BYTES} $NODE_DATA_DIR/large`).exit;
  const command = [cliFile, 'run', ...optionsOf('--data-copy', ...more), '--', 'echo', 'never'];
  const second = runProcess(process.execPath, ['--import', HANGING_COPIES, ...command]);
  await second.waitForOutput(/hangs at .*\/large/);
  expect(sizeOf(join(at(2), 'large'))).toBeGreaterThan(0);
  return second;
}

function sizeOf(path: string): number {
  return existsSync(path) ? statSync(path).size : 0;
}

describe('nodelease run --data-dir', () => {
  it('gives the command the data of its predecessor: as links after SIGTERM, as copies after SIGKILL', async () => {
    const first = run(
      'mkdir $NODE_DATA_DIR/d; echo one >$NODE_DATA_DIR/d/a; echo $NODE_DATA_DIR; exec sleep 60',
    );
    await first.waitForOutput(/v1\n/);
    expect(first.stdout()).toBe(`${at(1)}\n`);
    first.kill('SIGTERM');
    expect((await first.exit).code).toBe(143);
    const second = run('cat $NODE_DATA_DIR/d/a; exec sleep 60');
    await second.waitForOutput(/one/);
    expect(statSync(join(at(2), 'd/a')).ino).toBe(statSync(join(at(1), 'd/a')).ino);
    const before = manifest(at(2));
    second.kill('SIGKILL');
    const third = run('cat $NODE_DATA_DIR/d/a');
    expect((await third.exit).code).toBe(0);
    expect(third.stdout()).toBe('one\n');
    expect(statSync(join(at(3), 'd/a')).ino).not.toBe(statSync(join(at(2), 'd/a')).ino);
    expect([manifest(at(2)), contentOf(at(3))]).toEqual([before, contentOf(at(2))]);
    expect(readdirSync(join(root, 'node-0')).sort()).toEqual(['v2', 'v3']);
    expect(JSON.parse(readFileSync(join(at(3), 'directory-initialized.json'), 'utf8'))).toMatchObject({
      version: 3,
      initializedFrom: 2,
    });
  });

  it('leaves a NODE_DATA_DIR alone that it does not manage', async () => {
    const own = runCli(['run', '--node-id', '3', '--', 'sh', '-c', 'echo [$NODE_DATA_DIR]'], {
      env: { NODE_DATA_DIR: 'mine' },
    });
    await own.exit;
    expect(own.stdout()).toBe('[mine]\n');
  });

  it('keeps a stale holder and its successor apart: neither sees what the other writes at the same time', async () => {
    const writer = 'i=0; while :; do i=$((i+1)); echo $0 $i >>$NODE_DATA_DIR/log; sleep 0.01; done';
    // A daemon, which has left the group when it says its number, and outlives its lease.
    const first = run(`echo first >$NODE_DATA_DIR/log; setsid sh -c 'echo $$; ${writer}' stale & sleep 60`);
    const [, pid] = await first.waitForOutput(/^(\d+)$/m);
    first.kill('SIGKILL');
    const second = run(`echo $NODE_DATA_DIR; exec sh -c '${writer}' new`);
    const [directory] = await second.waitForOutput(/^.*\/v\d+$/m);
    const stale = () => readFileSync(join(at(1), 'log'), 'utf8');
    const own = () => readFileSync(join(directory, 'log'), 'utf8');
    await expect.poll(own).toContain('new 1\n');
    const [staleBytes, ownBytes] = [stale().length, own().length];
    await expect.poll(() => stale().length).toBeGreaterThan(staleBytes);
    await expect.poll(() => own().length).toBeGreaterThan(ownBytes);
    second.kill('SIGTERM');
    expect((await second.exit).code).toBe(143);
    process.kill(Number(pid), 'SIGKILL');
    await untilDead([Number(pid)], 30_000);
    expect(stale()).not.toMatch(/new/);
    // Not one line of the stale holder behind the first own one.
    expect(own().slice(own().indexOf('new'))).toMatch(/^(new \d+\n)+$/);
  });

  it('is not ready, and starts nothing, before the directory is complete; and stops at once when the lease is lost', async () => {
    const second = await copying('--http', '127.0.0.1:0');
    const [url] = await second.waitForOutput(/http:\/\/127\.0\.0\.1:\d+/);
    const readiness = await fetch(`${url}/readyz`);
    expect([readiness.status, await readiness.json()]).toMatchObject([
      503,
      { reason: expect.stringMatching(/data directory is being prepared/) },
    ]);
    expect(await operate('release', '0', '--force')).toMatchObject({ code: 0 });
    expect((await second.exit).code).toBe(76);
    const written = sizeOf(join(at(2), 'large'));
    expect(written).toBeLessThan(LARGE_BYTES);
    expect(existsSync(join(at(2), 'directory-initialized.json'))).toBe(false);
    expect(second.stdout()).toBe('');
    expect(sizeOf(join(at(1), 'large'))).toBe(LARGE_BYTES);
  });

  it('ends at SIGTERM while the directory is prepared: nothing of it counts, and the node id is free', async () => {
    const second = await copying();
    second.kill('SIGTERM');
    expect((await second.exit).code).toBe(143);
    expect(second.stdout()).toBe('');
    expect(second.stderr()).toMatch(/lease released/);
    expect(sizeOf(join(at(2), 'large'))).toBeLessThan(LARGE_BYTES);
    expect(existsSync(join(at(2), 'directory-initialized.json'))).toBe(false);
  });

  it('removes what a killed preparation has left, and begins again', async () => {
    const second = await copying();
    second.kill('SIGKILL');
    await second.exit;
    truncateSync(join(at(1), 'large'), 10);
    const third = run('wc -c <$NODE_DATA_DIR/large');
    expect((await third.exit).code).toBe(0);
    expect(third.stdout().trim()).toBe('10');
    expect(third.stderr()).toMatch(/removed .*v2"/);
    expect(readdirSync(join(root, 'node-0')).sort()).toEqual(['v1', 'v3']);
  });

  it('removes an old version with directories that its program has made read-only', async () => {
    // As the owner, whom modes bind, and root does not.
    const runs = (script: string) => {
      const command = [process.execPath, cliFile, 'run', ...optionsOf(), '--', 'sh', '-c', script];
      return runProcess('unshare', ['--user', ...command]).exit;
    };
    await runs('cd $NODE_DATA_DIR && mkdir -p d/e && echo x >d/e/a && chmod 555 d/e d .');
    await runs('true');
    expect((await runs('cat $NODE_DATA_DIR/d/e/a')).code).toBe(0);
    expect(readdirSync(join(root, 'node-0')).sort()).toEqual(['v2', 'v3']);
    execFileSync('chmod', ['-R', 'u+w', root]);
  });
});

describe('nodelease serve --data-dir', () => {
  it('reports the path where it reports the node id', async () => {
    const file = join(folder, 'wait');
    const serve = runCli(['serve', ...optionsOf('--http', '127.0.0.1:0', '--wait-file', file)]);
    const [url] = await serve.waitForOutput(/http:\/\/127\.0\.0\.1:\d+/);
    await expect.poll(() => existsSync(file)).toBe(true);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ nodeId: 0, dataDir: at(1) });
    expect(await (await fetch(`${url}/lease`)).json()).toMatchObject({ nodeId: 0, dataDir: at(1) });
  });

  it('copies also from a tenure that was released: its other containers may be at work still', async () => {
    const serve = () => runCli(['serve', ...optionsOf('--http', '127.0.0.1:0')]);
    const first = serve();
    await first.waitForOutput(/prepared .*v1, empty/);
    first.kill('SIGTERM');
    await first.exit;
    expect(first.stderr()).toMatch(/lease released/);
    writeFileSync(join(at(1), 'a'), '');
    await serve().waitForOutput(/prepared .*v2, from version 1 by copies/);
  });
});

describe('a root that cannot be used is reported in one line, and nothing is changed:', () => {
  /** In a mount namespace of its own, where `mounts` are made first. */
  const mounted = (mounts: string, script = 'echo never') => {
    const command = [process.execPath, cliFile, 'run', ...optionsOf(), '--', 'sh', '-c', script];
    return runProcess('unshare', [
      '--user',
      '--map-root-user',
      '--mount',
      'sh',
      '-c',
      `${mounts} && exec "$@"`,
      'sh',
      ...command,
    ]);
  };
  const useVersion1 = () => runCli(['run', ...optionsOf().slice(0, -2), '--', 'true']).exit;
  const problems = (process: TestProcess) =>
    lines(process).filter((line) => !/"level":30|"cluster-created"/.test(line));

  it.each([
    [
      'missing',
      'nowhere',
      /^nodelease: --data-dir: expected a directory that is there, got ".*nowhere" \[CONFIG_INVALID\]$/,
    ],
    [
      'a file',
      'file',
      /^nodelease: --data-dir: expected a directory, not a file, got ".*file" \[CONFIG_INVALID\]$/,
    ],
  ])('one that is %s', async (_, name, message) => {
    writeFileSync(join(folder, 'file'), '');
    root = join(folder, name);
    const run_ = run('echo never');
    expect((await run_.exit).code).toBe(64);
    expect([run_.stdout(), lines(run_).length]).toEqual(['', 1]);
    expect(run_.stderr().trim()).toMatch(message);
    expect(existsSync(join(folder, 'store'))).toBe(false);
  });

  it('one that is read-only', async () => {
    const readOnly = mounted(`mount -t tmpfs -o ro tmpfs ${root}`);
    expect((await readOnly.exit).code).toBe(64);
    expect(lines(readOnly)).toEqual([
      `nodelease: --data-dir: expected a directory that this process may write to, got "${root}" [CONFIG_INVALID]`,
    ]);
  });

  it.each([
    ['on another file system than its versions', 'node-0', /node-0 is on another file system than /],
    ['on another file system than a version', 'node-0/v1', /v1 is on another file system than /],
  ])('one %s', async (_, mount, message) => {
    makeVersion(root, 0, 1, { 'd/a': 'x' });
    const before = manifest(root);
    await useVersion1();
    const source = `printf '${camundaMarker(1, null)}' >${root}/${mount}/directory-initialized.json`;
    const elsewhere = mounted(`mount -t tmpfs tmpfs ${root}/${mount} && ${source}`);
    expect((await elsewhere.exit).code).toBe(69);
    expect(problems(elsewhere)).toEqual([expect.stringMatching(message)]);
    expect(manifest(root)).toEqual(before);
  });

  it('one that root cannot hold open, for want of /proc: another user might put links into it', async () => {
    const blind = mounted('mount -t tmpfs tmpfs /proc');
    expect((await blind.exit).code).toBe(69);
    expect(problems(blind)).toEqual([
      expect.stringMatching(
        /as root, data directories need \/proc\/self\/fd, which this system does not have/,
      ),
    ]);
    expect(manifest(root)).toEqual([]);
    // As the same user, who is not root in a namespace that knows no users.
    const ownFiles = mounted(
      'mount -t tmpfs tmpfs /proc && set -- unshare --user "$@"',
      'echo $NODE_DATA_DIR',
    );
    expect((await ownFiles.exit).code).toBe(0);
    expect(ownFiles.stdout()).toMatch(/\/v2\n$/);
  });

  it('but what is left of an old version, and cannot be removed, is reported and keeps no task from work', async () => {
    const leftover = mounted(
      `mkdir -p ${root}/node-0/v1.removed/d && mount -t tmpfs tmpfs ${root}/node-0/v1.removed/d`,
      'echo works',
    );
    expect((await leftover.exit).code).toBe(0);
    expect(leftover.stdout()).toBe('works\n');
    expect(problems(leftover)).toEqual([expect.stringMatching(/v1\.removed could not be removed: EBUSY/)]);
  });

  it.each([
    ['with a newer version', 9, camundaMarker(9, null), /v9 is newer than the version 1 of this tenure/],
    ['with a marker that is not JSON', 1, '{', /v1 has a marker directory-initialized.json that is not JSON/],
  ])('one %s', async (_, version, marker, message) => {
    makeVersion(root, 0, version, { a: 'x' }, marker);
    const before = manifest(root);
    const refused = run('echo never');
    expect((await refused.exit).code).toBe(69);
    expect([refused.stdout(), manifest(root)]).toEqual(['', before]);
    expect(problems(refused)).toEqual([expect.stringMatching(message)]);
    expect(refused.stderr()).toMatch(/lease released/);
  });

  it('a disk that is full in the middle: the source stays, the half version goes, the node id is free', async () => {
    // By inodes: the bytes of the files fit.
    const script = `mount -t tmpfs -o nr_inodes=60 tmpfs ${root} && mkdir -p ${at(1)} && cd ${at(1)} && printf '${camundaMarker(1, null)}' >directory-initialized.json
      for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35; do echo $i >f$i; done
      "$@"; code=$?; ls ${root}/node-0 | tr '\\n' ' '; cat ${at(1)}/f35; exit $code`;
    await useVersion1();
    const command = [process.execPath, cliFile, 'run', ...optionsOf(), '--', 'echo', 'never'];
    const full = runProcess('unshare', [
      '--user',
      '--map-root-user',
      '--mount',
      'sh',
      '-c',
      script,
      'sh',
      ...command,
    ]);
    expect((await full.exit).code).toBe(69);
    expect(full.stdout()).toBe('v1 35\n');
    expect(problems(full)).toEqual([
      expect.stringMatching(/data directory .*v2 cannot be prepared: ENOSPC: no space left on device/),
    ]);
    expect(full.stderr()).toMatch(/lease released/);
  });

  it('a disk that is full at the very end: the next start may still link, which needs no space for copies', async () => {
    await useVersion1();
    // Three pages: all but the marker fits.
    const source = `mkdir -p ${at(1)} && cd ${at(1)} && printf '${camundaMarker(1, null)}' >directory-initialized.json && ln directory-initialized.json directory-ended.json && echo x >a`;
    const full = mounted(
      `mount -t tmpfs -o size=12k tmpfs ${root} && ${source} && set -- sh -c '"$@"; code=$?; ls; exit $code' sh "$@"`,
    );
    expect((await full.exit).code).toBe(69);
    expect(problems(full)).toEqual([
      expect.stringMatching(/v2 cannot be prepared: ENOSPC: no space left on device, write/),
    ]);
    expect(full.stdout().split('\n')).toContain('directory-ended.json');
  });
});

describe('the library', () => {
  it.each(['inline', 'worker'] as const)(
    'has the path in its lease, and a new version of it after each release: keeper %s',
    async (keeper) => {
      // The build, since a worker thread is started from its compiled form.
      const { acquire } = (await import(
        join(packageRoot, 'dist/index.js')
      )) as typeof import('../../../../src/index.js');
      const modes: string[] = [];
      const onEvent = (event: DataDirEvent) => event.type === 'prepared' && modes.push(event.mode);
      const dataDir = { root, retention: 1, onEvent };
      for (const version of [1, 2, 3]) {
        const lease = await acquire({
          store: `file:${folder}/store`,
          nodes: 1,
          onLost: 'signal',
          keeper,
          dataDir,
        });
        expect(lease.dataDir).toBe(at(version));
        expect(readdirSync(at(version)).length).toBe(version);
        writeFileSync(join(at(version), `by-${version}`), '');
        await lease.release();
      }
      expect(modes.slice(1)).toEqual(['link', 'link']);
      expect(readdirSync(join(root, 'node-0'))).toEqual(['v3']);
    },
  );
});
