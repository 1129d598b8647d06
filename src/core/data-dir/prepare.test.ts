import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  camundaMarker,
  contentOf,
  makeVersion,
  manifest,
  newRoot,
  removeRoot,
  type Tree,
  writeTree,
} from '../../../test/support/data-dirs.js';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { LeaseLostError } from '../lease/model/lease.js';
import { removeVersion } from './collect.js';
import type { DataDirEvent } from './data-dir-options.js';
import { HeldTree } from './held-tree.js';
import { MARKER, markEnded } from './marker.js';
import { type PrepareOptions, prepareDataDir } from './prepare.js';

/** A place where syncing costs nothing, if there is one. */
const memory = existsSync('/dev/shm') ? '/dev/shm' : undefined;

let root: string;
let clock: VirtualClock;
let events: DataDirEvent[];

beforeEach(() => {
  root = newRoot(memory);
  clock = new VirtualClock();
  clock.wallOffset = 1_795_351_126_653;
  events = [];
});
afterEach(() => removeRoot(root));

const TREE: Tree = {
  a: 'one',
  'd/b': 'two',
  'd/e/c': '',
  'd/e/link': '-> ../b',
  'empty/': '',
  'd/directory-initialized.json': 'of the user',
};

const held = (version: number, id = 3, previous: PrepareOptions['lease']['previous'] = 'other') => ({
  id,
  version,
  previous,
  signal: new AbortController().signal,
  isValid: () => true,
});
const prepare = (version: number, options: Partial<PrepareOptions> = {}) =>
  prepareDataDir({
    root,
    lease: held(version),
    store: 'file:/leases',
    clock,
    onEvent: (event) => events.push(event),
    ...options,
  });
const at = (version: number) => join(root, 'node-3', `v${version}`);
const inode = (version: number, path: string) => statSync(join(at(version), path)).ino;

describe('a new version', () => {
  it('is empty without an earlier version, and marked as Camunda marks it', async () => {
    expect(await prepare(1)).toMatchObject({ path: at(1), restored: false });
    expect(manifest(root)).toHaveLength(4);
    expect(readFileSync(join(root, 'nodelease.json'), 'utf8')).toBe('{"store":"file:/leases"}\n');
    expect(readFileSync(join(at(1), 'directory-initialized.json'), 'utf8')).toBe(
      '{"initializedAt":1795351126653,"version":1,"initializedFrom":null}',
    );
  });

  it.each(['\ufeff{ "store": "file:/leases" }\r\n', '{"store":"file:/leases"}'])(
    'is made where a person has corrected the file of the store: %j',
    async (owner) => {
      writeTree(root, { 'nodelease.json': owner });
      expect(await prepare(1)).toMatchObject({ path: at(1) });
    },
  );

  it('is made from the newest valid version of Camunda, which stays unchanged', async () => {
    makeVersion(root, 3, 1, { old: 'x' });
    const source = makeVersion(root, 3, 3, TREE);
    const before = manifest(source);
    await prepare(5);
    expect(readFileSync(join(at(5), 'directory-initialized.json'), 'utf8')).toBe(
      '{"initializedAt":1795351126653,"version":5,"initializedFrom":3}',
    );
    expect(contentOf(at(5))).toEqual(contentOf(source));
    expect(manifest(source)).toEqual(before);
    expect(events.at(0)).toMatchObject({
      type: 'prepared',
      from: 3,
      mode: expect.stringMatching(/copy|clone/),
      files: 4,
      bytes: 17,
    });
  });

  it.each([
    ['the last tenure, with the same key, left it here', 4, 'same', 3],
    ['another host has held the node id since', 5, 'same', null],
    ['the last tenure had another key', 4, 'other', null],
    ['the last tenure is not known', 4, undefined, null],
  ] as const)('on a local disk: %s', async (_, version, previous, from) => {
    makeVersion(root, 3, 3, TREE);
    const prepared = await prepare(version, { local: true, lease: held(version, 3, previous) });
    expect(prepared).toMatchObject({ path: at(version), restored: from !== null });
    expect(events.at(-1)).toMatchObject({ type: 'prepared', from });
    expect(existsSync(join(at(version), 'a'))).toBe(from !== null);
  });

  it('on a local disk is made from the version before starts that were killed or failed, unless another host had the id too', async () => {
    const source = makeVersion(root, 3, 3, TREE);
    mkdirSync(at(4));
    const start = (version: number, onEvent?: PrepareOptions['onEvent']) =>
      prepare(version, { local: true, lease: held(version, 3, 'same'), ...(onEvent && { onEvent }) });
    symlinkSync('/etc/passwd', join(source, 'out'));
    await expect(start(5)).rejects.toThrow(/leads out/);
    rmSync(join(source, 'out'));
    const replace = () => {
      writeFileSync(join(source, 'new'), 'x');
      renameSync(join(source, 'new'), join(source, 'a'));
    };
    await expect(start(6, ({ type }) => type === 'removed' && replace())).rejects.toThrow(/was replaced/);
    expect(await start(7)).toMatchObject({ restored: true });
    expect(readdirSync(join(root, 'node-3')).sort()).toEqual(['v3', 'v7']);
    mkdirSync(at(9));
    expect(await start(10)).toMatchObject({ restored: false });
  });

  it('on a local disk shows from its begin on that it and unfinished ones were here: it may be killed at any time', async () => {
    makeVersion(root, 3, 3, TREE);
    makeVersion(root, 3, 4, TREE);
    rmSync(join(at(4), 'directory-initialized.json'));
    mkdirSync(at(5));
    const shown: string[] = [];
    const look = () => void shown.push(readdirSync(join(root, 'node-3')).sort().join());
    const isValid = () => {
      if (shown.length === 0) look();
      return true;
    };
    const onEvent = ({ type }: { type: string }) => void (type === 'removed' && look());
    const start = (version: number) =>
      prepare(version, { local: true, lease: { ...held(version, 3, 'same'), isValid }, onEvent });
    expect(await start(6)).toMatchObject({ restored: true });
    expect(shown.slice(0, 3)).toEqual(['v3,v4,v5,v6', 'v3,v4,v5,v6', 'v3,v4,v5,v6']);
    mkdirSync(at(7));
    expect(await start(7)).toMatchObject({ restored: true });
  });

  it.each([
    ['s3://b/p', undefined, ['looks-local', 'prepared']],
    ['s3://b/p', true, ['prepared']],
    ['file:/leases', undefined, ['prepared']],
  ])('on a file system of one host, with the store %s, local %s: %s', async (store, local, types) => {
    await prepare(1, { store, ...(local && { local }) });
    expect(events.map(({ type }) => type)).toEqual(types);
  });

  it('keeps modes, times and, for root, owners', async () => {
    const source = makeVersion(root, 3, 1, TREE);
    chmodSync(join(source, 'a'), 0o4750);
    chmodSync(join(source, 'd/e'), 0o555);
    if (process.geteuid?.() === 0) execFileSync('chown', ['-R', '1234:4321', join(source, 'd')]);
    const paths = ['a', 'd', 'd/b', 'd/e'];
    for (const path of paths) utimesSync(join(source, path), 1_000_000_000, 1_000_000_000);
    await prepare(2);
    expect(contentOf(at(2))).toEqual(contentOf(source));
    for (const path of paths) {
      const [copy, original] = [statSync(join(at(2), path)), statSync(join(source, path))];
      expect([path, copy.uid, copy.gid, copy.mode, Math.round(copy.mtimeMs)]).toEqual([
        path,
        original.uid,
        original.gid,
        original.mode,
        Math.round(original.mtimeMs),
      ]);
    }
    chmodSync(join(at(2), 'd/e'), 0o755);
    chmodSync(join(source, 'd/e'), 0o755);
  });

  it('keeps no set-user-ID bit where the owner changes', async () => {
    const source = makeVersion(root, 3, 1, TREE);
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) execFileSync('chown', ['1234:4321', join(source, 'a')]);
    chmodSync(join(source, 'a'), 0o6755);
    // As where root may not change owners, or nodelease has another user.
    const user = vi.spyOn(process as { geteuid(): number }, 'geteuid').mockReturnValue(1_000);
    onTestFinished(() => user.mockRestore());
    await prepare(2);
    expect(statSync(join(at(2), 'a')).mode & 0o7777).toBe(isRoot ? 0o755 : 0o6755);
  });

  it('keeps the target of a link byte for byte', async () => {
    const target = Buffer.from([0x61, 0xe9]);
    symlinkSync(target, join(makeVersion(root, 3, 1, TREE), 'l'));
    await prepare(2);
    expect(readlinkSync(join(at(2), 'l'), 'buffer')).toEqual(target);
  });

  it('gets nothing that is excluded, and nothing below it', async () => {
    makeVersion(root, 3, 1, { ...TREE, 'runtime/x': '1', 'd/runtime/y': '2', 'd/z.tmp': '3', 'd/keep': '4' });
    await prepare(2, { exclude: ['runtime', '*.tmp', 'd/e'] });
    expect(contentOf(at(2)).map((line) => line.split(' ')[0])).toEqual([
      'a',
      'd',
      'd/b',
      'd/directory-initialized.json',
      'd/keep',
      'empty',
    ]);
  });

  it('gets no socket, FIFO or device', async () => {
    const source = makeVersion(root, 3, 1, TREE);
    execFileSync('mkfifo', [join(source, 'd/pipe')]);
    await prepare(2);
    expect([existsSync(join(at(2), 'd/b')), existsSync(join(at(2), 'd/pipe'))]).toEqual([true, false]);
  });

  it('reports its progress every ten seconds', async () => {
    makeVersion(root, 3, 1, Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}`, 'x'])));
    let checks = 0;
    // As long as that takes one step, or another.
    const isValid = () => {
      checks += 1;
      if (checks > 60) clock.freeze(2_000);
      void clock.advance(0);
      return true;
    };
    await prepare(2, { lease: { ...held(2), isValid } });
    const progress = events.filter((event) => event.type === 'progress');
    expect(progress.length).toBeGreaterThan(1);
    expect(progress[0]).toMatchObject({ path: at(2), of: { files: 40, bytes: 40 } });
  });
});

describe('the files of the version before', () => {
  it.each([
    ['linked if its work has ended', true, {}, true],
    ['copied if its work may be left', false, {}, false],
    ['copied on request', true, { copy: true }, false],
  ])('are %s', async (_, ended, options, linked) => {
    const source = makeVersion(root, 3, 1, TREE);
    if (ended) await markEnded(source);
    await prepare(2, options);
    expect(contentOf(at(2))).toEqual(contentOf(at(1)));
    expect(inode(2, 'd/b') === inode(1, 'd/b')).toBe(linked);
    expect(events.at(-1)).toMatchObject({
      type: 'prepared',
      mode: linked ? 'link' : expect.stringMatching(/copy|clone/),
    });
  });

  it('are linked if its work has ended, whatever happened to later tenures, until a later version shares them', async () => {
    await markEnded(makeVersion(root, 3, 1, TREE));
    makeVersion(root, 3, 2, { half: '' }, null);
    await prepare(4);
    expect([inode(4, 'd/b'), existsSync(join(at(4), 'directory-ended.json'))]).toEqual([
      inode(1, 'd/b'),
      false,
    ]);
    // As an operator does, to return to an older version.
    renameSync(at(4), join(root, 'elsewhere'));
    await prepare(6);
    expect(inode(6, 'd/b')).not.toBe(inode(1, 'd/b'));
  });

  it('are copied if its record of the end is a copy from another version', async () => {
    makeVersion(root, 3, 1, { ...TREE, 'directory-ended.json': camundaMarker(1, null) });
    await prepare(4);
    expect(inode(4, 'd/b')).not.toBe(inode(1, 'd/b'));
  });

  it('are not seen to change by another holder: successive versions that were copied share no byte', async () => {
    makeVersion(root, 3, 1, TREE);
    await prepare(2);
    writeFileSync(join(at(1), 'a'), 'by the stale holder');
    writeFileSync(join(at(2), 'a'), 'by the new one');
    expect([1, 2].map((version) => readFileSync(join(at(version), 'a'), 'utf8'))).toEqual([
      'by the stale holder',
      'by the new one',
    ]);
  });

  it.each([
    ['removes its marker', false, (marker: string) => rmSync(marker)],
    [
      'brings those of another version',
      true,
      (marker: string) => {
        for (const file of [marker, `${marker}.tmp`]) writeFileSync(file, '{"version":1}');
      },
    ],
  ])('are kept where a program that fetches a backup %s', async (_, copy, change) => {
    makeVersion(root, 3, 1, TREE);
    const { end } = await prepare(2, { copy });
    change(join(at(2), MARKER));
    writeFileSync(join(at(2), 'new'), 'data');
    await end();
    expect(await prepare(3)).toMatchObject({ restored: true });
    expect(readFileSync(join(at(3), 'new'), 'utf8')).toBe('data');
    expect(inode(3, 'new') === inode(2, 'new')).toBe(!copy);
  });

  it('are the same files while they are linked: writing in place changes both, replacing one does not', async () => {
    await markEnded(makeVersion(root, 3, 1, TREE));
    await prepare(2);
    writeFileSync(join(at(2), 'a'), 'in place', { flag: 'r+' });
    writeFileSync(join(at(2), 'new'), 'replaced');
    execFileSync('mv', [join(at(2), 'new'), join(at(2), 'd/b')]);
    expect([readFileSync(join(at(1), 'a'), 'utf8'), readFileSync(join(at(1), 'd/b'), 'utf8')]).toEqual([
      'in place',
      'two',
    ]);
  });
});

describe('a start is refused with the reason, and nothing is changed, because of:', () => {
  it.each<[string, RegExp, () => void]>([
    [
      'a newer valid version',
      /node-3\/v9 is newer than the version 5 of this tenure/,
      () => makeVersion(root, 3, 9, TREE),
    ],
    ['its own version, complete', /node-3\/v5 has been prepared before/, () => makeVersion(root, 3, 5, TREE)],
    [
      'a marker that is not JSON',
      /v4 has a marker directory-initialized.json that is not JSON/,
      () => makeVersion(root, 3, 4, TREE, 'oops'),
    ],
    [
      'its own version with such a marker',
      /v5 has a marker .* that is not JSON/,
      () => makeVersion(root, 3, 5, TREE, 'oops'),
    ],
    [
      'the marker of a higher version',
      /v4 has a marker .* is of version 9/,
      () => makeVersion(root, 3, 4, TREE, '{"version":9}'),
    ],
    ['an empty marker', /v4 has a marker .* that is not JSON/, () => makeVersion(root, 3, 4, TREE, '')],
    [
      'a damaged one above its own',
      /v8 has a marker .* that is not JSON/,
      () => makeVersion(root, 3, 8, TREE, 'oops'),
    ],
    [
      'the tree of another store',
      /nodelease.json says .*"s3:\/\/c".*: choose another/,
      () => writeTree(root, { 'nodelease.json': '{"store":"s3://c"}\n' }),
    ],
    [
      'a directory in place of the name of the store',
      /nodelease.json is a directory, and not the file of nodelease: move it away/,
      () => mkdirSync(join(root, 'nodelease.json')),
    ],
    [
      'a link in place of it',
      /nodelease.json is a symbolic link, and not the file/,
      () => writeTree(root, { other: '{"store":"file:/leases"}\n', 'nodelease.json': '-> other' }),
    ],
    [
      'a FIFO in place of it',
      /nodelease.json is a FIFO, and not the file/,
      () => execFileSync('mkfifo', [join(root, 'nodelease.json')]),
    ],
    [
      'a file of more than 4 KiB in place of it',
      /nodelease.json is a file of more than 4096 bytes, and not the file of nodelease/,
      () => writeTree(root, { 'nodelease.json': ' '.repeat(4_097) }),
    ],
    [
      'such a file in place of a marker',
      /v4 has a marker directory-initialized.json that is a file of more than 4096 bytes/,
      () => makeVersion(root, 3, 4, TREE, ' '.repeat(4_097)),
    ],
    [
      'a file in place of a version',
      /v4 is a file and no directory/,
      () => writeTree(root, { 'node-3/v4': '' }),
    ],
    [
      'a link in place of a version',
      /v4 is a symbolic link and no directory/,
      () => writeTree(root, { 'node-3/v4': '-> v1' }),
    ],
    [
      'a link out of the tree',
      /v4\/d\/l is a symbolic link that leads out of .*v4/,
      () => makeVersion(root, 3, 4, { 'd/l': '-> ../../v1/a' }),
    ],
    [
      'an absolute link',
      /v4\/l is a symbolic link that leads out/,
      () => makeVersion(root, 3, 4, { l: `-> ${at(4)}/a` }),
    ],
  ])('%s', async (_, problem, arrange) => {
    makeVersion(root, 3, 1, TREE);
    makeVersion(root, 3, 2, TREE, null);
    arrange();
    const before = manifest(root);
    await expect(prepare(5)).rejects.toMatchObject({
      code: 'DATA_DIR_FAILED',
      message: expect.stringMatching(problem),
    });
    expect(manifest(root)).toEqual(before);
  });

  it('a file in place of the directory of the node id', async () => {
    writeTree(root, { 'node-3': '' });
    await expect(prepare(5)).rejects.toThrow(/node-3 is not a directory/);
  });

  it('a name that is not UTF-8, unless it is excluded', async () => {
    const source = makeVersion(root, 3, 1, TREE);
    writeFileSync(Buffer.concat([Buffer.from(join(source, 'caf')), Buffer.from([0xe9])]), 'x');
    await expect(prepare(2)).rejects.toThrow(
      /v1\/caf\uFFFD is not the name of the file, which is not UTF-8: rename or exclude it$/,
    );
    expect(await prepare(3, { exclude: ['caf*'] })).toMatchObject({ restored: true });
  });

  it('too little space', async () => {
    const source = makeVersion(root, 3, 1, { big: '' });
    truncateSync(join(source, 'big'), 8e12);
    await expect(prepare(2)).rejects.toThrow(/v2 needs 8000000000000 bytes, and \d+ are free/);
    expect(existsSync(at(2))).toBe(false);
  });
});

describe('of other versions', () => {
  it('an old one whose marker is broken is neither used nor removed', async () => {
    makeVersion(root, 3, 1, TREE, 'oops');
    makeVersion(root, 3, 2, TREE);
    await prepare(5, { retention: 1 });
    expect([existsSync(at(1)), existsSync(at(2))]).toEqual([true, false]);
  });

  it('the newest valid ones are kept, and what ended tenures have left unfinished is removed', async () => {
    for (const version of [1, 2, 3]) makeVersion(root, 3, version, TREE);
    makeVersion(root, 3, 4, TREE, null);
    makeVersion(root, 3, 5, { half: 'of an earlier attempt' }, null);
    mkdirSync(join(root, 'node-3', 'v0.removed'));
    await prepare(5);
    expect(manifest(join(root, 'node-3')).flatMap((line) => /^v[^/ ]*(?= )/.exec(line) ?? [])).toEqual([
      'v3',
      'v5',
    ]);
    expect(contentOf(at(5))).toEqual(contentOf(at(3)));
    expect(events.map(({ type }) => type)).toEqual([
      'removed',
      'removed',
      'removed',
      'prepared',
      'removed',
      'removed',
    ]);
  });

  it('an unfinished one above its own is never touched: its maker may be at work', async () => {
    makeVersion(root, 3, 1, TREE);
    const above = makeVersion(root, 3, 7, TREE, null);
    const before = manifest(above);
    await prepare(5);
    expect(manifest(above)).toEqual(before);
  });

  it('all of one root are those of one store, the first one', async () => {
    const stores = Array.from({ length: 10 }, (_, id) => `s3://b/${id % 2}`);
    const ends = await Promise.allSettled(
      stores.map((store, id) => prepare(1, { store, lease: held(1, id) })),
    );
    const owner = (JSON.parse(readFileSync(join(root, 'nodelease.json'), 'utf8')) as { store: string }).store;
    expect(ends.map(({ status }) => status === 'fulfilled')).toEqual(stores.map((store) => store === owner));
    expect(readdirSync(root).filter((name) => name.startsWith('nodelease.json'))).toHaveLength(1);
  });

  it('one that cannot be removed is reported, and does not stop the start', async () => {
    makeVersion(root, 3, 1, TREE);
    makeVersion(root, 3, 2, TREE);
    writeTree(root, { 'node-3/v1.removed': 'in the way' });
    expect((await prepare(3)).path).toBe(at(3));
    expect(events.at(-1)).toMatchObject({ type: 'not-removed', path: at(1) });
  });
});

describe('a source that a stale holder begins to remove meanwhile', () => {
  it.each([
    ['its directory', 'v1', 'v1.removed'],
    // As another host sees it that still knows the directory by its old name.
    ['its marker', `v1/${MARKER}`, 'gone'],
  ])('makes no version, since the copy may be incomplete: %s', async (_, from, to) => {
    makeVersion(root, 3, 1, TREE);
    let checks = 0;
    const isValid = () => {
      checks += 1;
      if (checks === 24) renameSync(join(root, 'node-3', from), join(root, 'node-3', to));
      return true;
    };
    await expect(prepare(2, { lease: { ...held(2), isValid } })).rejects.toMatchObject({
      code: 'DATA_DIR_FAILED',
    });
    expect(checks).toBeGreaterThan(24);
    expect(existsSync(at(2))).toBe(false);
  });
});

describe('another user who replaces a directory by a symbolic link', () => {
  const SECRET = 'readable by root alone';
  let outside: string;
  let before: string[];
  beforeEach(() => {
    outside = newRoot(memory);
    writeTree(outside, { 'd/b': SECRET, 'd/e/c': SECRET, 'd/more': SECRET });
    before = manifest(outside);
  });
  afterEach(() => removeRoot(outside));

  function swap(directory: string) {
    if (!existsSync(directory)) return;
    renameSync(directory, `${directory}-aside`);
    symlinkSync(join(outside, 'd'), directory);
  }
  /** No link is followed. */
  const leaksIn = (tree: string) =>
    manifest(tree).filter((line) => line.endsWith(createHash('sha1').update(SECRET).digest('hex')));

  it.each([
    ['links', markEnded],
    ['copies', () => undefined],
  ])(
    'gets nothing from the target of the link, and changes nothing there, at any point: by %s',
    async (_, leave) => {
      let points = 0;
      for (let point = 1; points + 1 >= point; point += 1) {
        removeRoot(root);
        root = newRoot(memory);
        await leave(makeVersion(root, 3, 1, TREE));
        points = 0;
        const isValid = () => {
          points += 1;
          if (points === point) for (const version of [1, 2]) swap(join(at(version), 'd'));
          return true;
        };
        await prepare(2, { lease: { ...held(2), isValid } }).catch(() => undefined);
        expect([point, leaksIn(root), manifest(outside)]).toEqual([point, [], before]);
      }
      expect(points).toBeGreaterThan(20);
    },
  );

  it('gets no file that has replaced one of the scanned version', async () => {
    for (const leave of [markEnded, () => undefined]) {
      removeRoot(root);
      root = newRoot(memory);
      await leave(makeVersion(root, 3, 1, TREE));
      const isValid = () => {
        if (existsSync(at(2)) && existsSync(join(outside, 'd/b')))
          renameSync(join(outside, 'd/b'), join(at(1), 'd/b'));
        return true;
      };
      await expect(prepare(2, { lease: { ...held(2), isValid } })).rejects.toThrow(
        /v1\/d\/b was replaced while it was copied/,
      );
      expect(existsSync(at(2))).toBe(false);
      writeTree(outside, { 'd/b': SECRET });
    }
  });

  it('cannot have anything removed there', async () => {
    const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
    for (let turns = 0; turns < 60; turns += 1) {
      makeVersion(root, 3, 1, TREE);
      const removed = removeVersion(new HeldTree(root), 'node-3/v1').catch(() => undefined);
      for (let waited = 0; waited < turns; waited += 1) await turn();
      swap(join(`${at(1)}.removed`, 'd'));
      await removed;
      expect(manifest(outside)).toEqual(before);
      removeRoot(join(root, 'node-3'));
    }
  });
});

describe('at any point of the preparation', () => {
  const tree = { ...TREE, big: 'x'.repeat(5 * 2 ** 20) };
  const lost = new LeaseLostError(3, 5, 'taken', 0, 'another task has it');

  function expectCompleteOrNone(source: readonly string[]) {
    const isComplete = existsSync(join(at(5), MARKER));
    if (isComplete) expect(contentOf(at(5))).toEqual(source);
    else expect(contentOf(at(2))).toEqual(source);
  }

  /**
   * Arranges old versions and a leftover, and runs `act` at one of the points at which a preparation checks
   * its lease. Returns the number of points.
   */
  async function prepareWith(
    point: number,
    act: (lease: AbortController, interrupt: AbortController) => void,
  ) {
    // The last operations of an earlier preparation must not be taken for this one's.
    removeRoot(root);
    root = newRoot(memory);
    makeVersion(root, 3, 1, TREE);
    makeVersion(root, 3, 2, tree);
    makeVersion(root, 3, 4, { half: '' }, null);
    const [lease, interrupt] = [new AbortController(), new AbortController()];
    let points = 0;
    const isValid = () => {
      points += 1;
      if (points === point) act(lease, interrupt);
      return !lease.signal.aborted;
    };
    const source = contentOf(at(2));
    const result = await prepare(5, {
      lease: { id: 3, version: 5, signal: lease.signal, isValid },
      signal: interrupt.signal,
      retention: 1,
    }).catch((error: unknown) => error);
    return { points, result, source };
  }

  it('the loss of the lease ends it, and leaves a complete version or none', async () => {
    const { points } = await prepareWith(0, () => undefined);
    expect(points).toBeGreaterThan(30);
    for (let point = 1; point <= points; point += 4) {
      const { result, source } = await prepareWith(point, (lease) => lease.abort(lost));
      expect(result).toBe(lost);
      expectCompleteOrNone(source);
    }
  });

  it('an abort of the signal ends it without any wait, and leaves a complete version or one that is not marked', async () => {
    const interrupted = new Error('SIGTERM');
    const { points } = await prepareWith(0, () => undefined);
    for (let point = 2; point < points; point += 4) {
      const { result, source } = await prepareWith(point, (_, interrupt) => {
        interrupt.abort(interrupted);
        events = [];
      });
      expect(result).toBe(interrupted);
      expectCompleteOrNone(source);
      expect(events.filter(({ type }) => type !== 'prepared')).toEqual([]);
    }
  });

  it('nothing is changed for a lease that has expired by its clock before its loss is reported', async () => {
    makeVersion(root, 3, 1, TREE, null);
    const before = manifest(root);
    const lease = new AbortController();
    let checks = 0;
    const isValid = () => {
      checks += 1;
      if (checks > 1) lease.abort(lost);
      return false;
    };
    await expect(prepare(2, { lease: { id: 3, version: 2, signal: lease.signal, isValid } })).rejects.toBe(
      lost,
    );
    expect(manifest(root)).toEqual(before);
  });
});
