import { execFileSync } from 'node:child_process';
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { systemRandom } from '../../base/system.js';
import { StoreError, type WriteResult } from '../lease-store.js';
import { CasLog } from './cas-log.js';
import { FileLeaseStore } from './file-lease-store.js';
import type { BootClock } from './object-ages.js';

let directory: string;
let clock: VirtualClock;
let boot: BootClock;
let store: FileLeaseStore;

const open = (at = directory) => new FileLeaseStore({ directory: at, clock, random: systemRandom, boot });
const path = (key: string) => join(directory, key);
const etagOf = (result: WriteResult) => (result.status === 'written' ? result.etag : 'not written');
const unknownAge = { min: 0, max: Number.POSITIVE_INFINITY };

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelease-file-'));
  clock = new VirtualClock();
  boot = { id: 'boot', resolutionMs: 10, now: () => clock.monotonic() };
  store = open();
});

afterEach(async () => {
  await store.close();
  await rm(directory, { recursive: true, force: true });
});

it('names the clock that a program in JavaScript left out', () => {
  expect(() => new FileLeaseStore({ directory } as never)).toThrow('clock: expected a clock');
});

describe('a lease file', () => {
  it('holds exactly the body, for people to read', async () => {
    const etag = etagOf(await store.create('0.json', '{"a":1}', { version: '1' }));
    expect(await readFile(path('0.json'), 'utf8')).toBe('{"a":1}');
    await store.replace('0.json', '', {}, etag);
    expect(await readFile(path('0.json'), 'utf8')).toBe('');
  });

  it('keeps its age when the wall clock is set, and across processes', async () => {
    await store.create('0.json', 'x', {});
    await clock.advance(60_000);
    clock.wallOffset += 3_600_000;
    expect((await open().read('0.json'))?.age).toEqual({ min: 59_990, max: 60_010 });
    clock.wallOffset -= 10 * 3_600_000;
    expect((await open().list()).objects[0]?.age).toEqual({ min: 59_990, max: 60_010 });
  });

  it('has an unknown age after a restart of the machine: only what this instance has seen counts', async () => {
    await store.create('0.json', 'x', {});
    await clock.advance(60_000);
    boot = { ...boot, id: 'next boot' };
    const restarted = open();
    expect((await restarted.read('0.json'))?.age).toEqual(unknownAge);
    await clock.advance(20_000);
    expect((await restarted.list()).objects[0]?.age).toEqual({ min: 20_000, max: Number.POSITIVE_INFINITY });
  });

  it('leaves no history behind that grows', async () => {
    let etag = etagOf(await store.create('0.json', '0', {}));
    for (let i = 1; i <= 20; i += 1) etag = etagOf(await store.replace('0.json', `${i}`, {}, etag));
    expect((await readdir(path('.cas/0.json'))).length).toBe(3);
    expect((await readdir(directory)).sort()).toEqual(['.cas', '0.json']);
  });
});

describe('a file that people have touched', () => {
  it('is read as it is when it was made by hand, and can be replaced but not created', async () => {
    await writeFile(path('0.json'), 'by hand');
    const found = await store.read('0.json');
    expect(found).toMatchObject({ body: 'by hand', metadata: {}, age: unknownAge });
    expect((await store.list()).objects).toMatchObject([{ key: '0.json', size: 7, etag: found?.etag }]);
    expect((await store.create('0.json', 'x', {})).status).toBe('conflict');
    expect((await store.replace('0.json', 'replaced', { version: '2' }, found?.etag ?? '')).status).toBe(
      'written',
    );
    expect(await store.read('0.json')).toMatchObject({ body: 'replaced', metadata: { version: '2' } });
  });

  it('gets another etag with every change by hand, so that a writer who has not seen it is refused', async () => {
    const etag = etagOf(await store.create('0.json', 'x', { version: '1' }));
    await writeFile(path('0.json'), 'edited');
    expect((await store.replace('0.json', 'y', {}, etag)).status).toBe('conflict');
    const edited = await store.read('0.json');
    // Of what an older copy replaces, the version is still known.
    expect(edited).toMatchObject({ body: 'edited', metadata: { version: '1' }, age: unknownAge });
    await writeFile(path('0.json'), 'edited again');
    expect((await store.replace('0.json', 'y', {}, edited?.etag ?? '')).status).toBe('conflict');
    expect(await readFile(path('0.json'), 'utf8')).toBe('edited again');
    expect((await store.replace('0.json', 'y', {}, (await store.read('0.json'))?.etag ?? '')).status).toBe(
      'written',
    );
    expect(await readFile(path('0.json'), 'utf8')).toBe('y');
  });

  it('is absent when it was removed by hand, and a creation gives it an etag that it never had', async () => {
    const first = etagOf(await store.create('0.json', 'x', {}));
    await unlink(path('0.json'));
    expect(await store.read('0.json')).toBeUndefined();
    expect((await store.list()).objects).toEqual([]);
    expect((await store.replace('0.json', 'y', {}, first)).status).toBe('conflict');
    const second = etagOf(await store.create('0.json', 'x', {}));
    expect(second).not.toBe(first);
    expect((await store.replace('0.json', 'y', {}, first)).status).toBe('conflict');
    expect(await store.read('0.json')).toMatchObject({ body: 'x', etag: second });
  });

  it('stays usable when its whole history was removed by hand', async () => {
    const etag = etagOf(await store.create('0.json', 'x', {}));
    await rm(path('.cas'), { recursive: true });
    expect((await store.replace('0.json', 'y', {}, etag)).status).toBe('conflict');
    const found = await store.read('0.json');
    expect(found).toMatchObject({ body: 'x', age: unknownAge });
    expect((await store.replace('0.json', 'y', {}, found?.etag ?? '')).status).toBe('written');
  });

  it('is not taken for a lease when its name cannot be a key', async () => {
    await writeFile(path('.hidden'), 'x');
    await writeFile(path('0.json~'), 'x');
    await mkdir(path('folder'));
    await store.create('0.json', 'x', {});
    expect((await store.list()).objects.map(({ key }) => key)).toEqual(['0.json']);
  });
});

describe('an object of which something is damaged', () => {
  /** Puts something that is no file of ours at a path; what it leads to, or holds, must stay. */
  const intruders: readonly (readonly [string, (at: string) => Promise<unknown>])[] = [
    ['a directory', (at) => mkdir(at).then(() => writeFile(join(at, 'mine'), 'precious'))],
    ['a FIFO', async (at) => execFileSync('mkfifo', [at])],
    ['a link to a file', (at) => symlink(path('.precious'), at)],
    ['a link to an endless device', (at) => symlink('/dev/zero', at)],
    ['a link to a directory', (at) => symlink('/', at)],
    ['a link to nothing', (at) => symlink('/nonexistent/nodelease', at)],
    ['a file that says something else', (at) => writeFile(at, 'null')],
    ['a sparse file of 8 TiB', (at) => writeFile(at, '').then(() => truncate(at, 8 * 2 ** 40))],
  ];
  const places: readonly (readonly [string, (seat: string) => string])[] = [
    ['its place', () => '1.json'],
    ['the place of its history', () => '.cas/1.json'],
    ['the place of its seat', (seat) => `.cas/1.json/${seat}`],
    ['the place of its record', (seat) => `.cas/1.json/${seat}/record`],
    ['the place of its body', (seat) => `.cas/1.json/${seat}/body`],
    ['the place of another seat', () => '.cas/1.json/7-0123456789abcdef'],
    ['the place of the first seat', () => '.cas/1.json/0'],
    ['the place of the decision', () => '.cas/1.json/0/next'],
  ];

  it.each(intruders.flatMap(([what, put]) => places.map(([place, at]) => ({ what, put, place, at }))))(
    'concerns no other object and is mended by a write: $what in $place',
    async ({ put, at }) => {
      await writeFile(path('.precious'), 'precious');
      await store.create('0.json', 'other', {});
      const there = path(at(etagOf(await store.create('1.json', 'first', { version: '7' }))));
      await rm(there, { recursive: true, force: true });
      await put(there);

      const found = await store.read('1.json');
      expect((await store.list()).objects.map(({ key, etag }) => [key, etag]).sort()[1]).toEqual([
        '1.json',
        found?.etag,
      ]);
      expect((await store.replace('1.json', 'mended', { version: '8' }, found?.etag ?? '')).status).toBe(
        'written',
      );
      const mended = await open().read('1.json');
      expect(mended).toMatchObject({ body: 'mended', metadata: { version: '8' } });
      expect(await readFile(path('1.json'), 'utf8')).toBe('mended');
      expect((await store.replace('1.json', 'next', {}, mended?.etag ?? '')).status).toBe('written');
      expect((await store.read('0.json'))?.body).toBe('other');
      expect(await readFile(path('.precious'), 'utf8')).toBe('precious');
    },
  );

  it.each(['a directory', 'nothing', 'a file'])(
    'is no store where .cas is a link to %s: no lease is read or written',
    async (target) => {
      await store.create('0.json', 'x', {});
      const elsewhere = path('.elsewhere');
      if (target === 'a directory') await rename(path('.cas'), elsewhere);
      else await rm(path('.cas'), { recursive: true });
      if (target === 'a file') await writeFile(elsewhere, '');
      await symlink(elsewhere, path('.cas'));
      const refused = {
        fault: 'rejected',
        message: expect.stringContaining('.cas is a symbolic link, and has to be a directory'),
      };
      await expect(open().read('0.json')).rejects.toMatchObject(refused);
      await expect(open().list()).rejects.toMatchObject(refused);
      await expect(store.create('1.json', 'x', {})).rejects.toMatchObject(refused);
    },
  );

  it.each(['trash-0123', 'seat'])('follows no link when it tidies up: %s', async (name) => {
    await mkdir(path('.precious'));
    for (const file of ['mine', 'body', 'record', 'next'])
      await writeFile(path(`.precious/${file}`), 'precious');
    let etag = etagOf(await store.create('1.json', '0', {}));
    if (name === 'seat') await rm(path(`.cas/1.json/${etag}`), { recursive: true });
    await symlink(path('.precious'), path(`.cas/1.json/${name === 'seat' ? etag : name}`));
    for (let i = 1; i <= 4; i += 1) {
      etag = (await store.read('1.json'))?.etag ?? '';
      expect((await store.replace('1.json', `${i}`, {}, etag)).status).toBe('written');
    }
    expect((await readdir(path('.precious'))).sort()).toEqual(['body', 'mine', 'next', 'record']);
    expect((await readdir(path('.cas/1.json'))).filter((each) => each.startsWith('trash-'))).toEqual([]);
  });

  it('says in its body what there is instead, keeps the last known version, and can be replaced only by a writer that has seen it', async () => {
    const etag = etagOf(await store.create('1.json', 'x', { version: '7' }));
    await rm(path('1.json'));
    await mkdir(path('1.json'));
    await writeFile(path('1.json/mine'), 'precious');
    expect(await store.read('1.json')).toMatchObject({
      body: '<1.json: directory>',
      metadata: { version: '7' },
      age: unknownAge,
    });
    expect((await store.replace('1.json', 'y', {}, etag)).status).toBe('conflict');
    expect((await store.create('1.json', 'y', {})).status).toBe('conflict');
    const kept = async () => (await readdir(directory)).filter((name) => name.startsWith('1.json~'));
    expect(await kept()).toEqual([]);
    await store.replace('1.json', 'y', {}, (await store.read('1.json'))?.etag ?? '');
    expect(await readFile(path(`${(await kept())[0]}/mine`), 'utf8')).toBe('precious');
    expect((await store.list()).objects.map(({ key }) => key)).toEqual(['1.json']);
  });

  it.each([
    '',
    'not JSON',
    'null',
    '{"seat":"../../etc"}',
    '{"seat":"0","sha256":"","metadata":{},"stamp":{"clock":"","ms":0}}',
  ])('says which record is damaged: %j', async (record) => {
    await store.create('0.json', 'x', { version: '7' });
    await writeFile(path('.cas/0.json/0/next'), record);
    expect(await store.read('0.json')).toMatchObject({
      body: '<.cas/0.json/0/next: damaged>',
      age: unknownAge,
    });
  });
});

describe('a folder that cannot be used', () => {
  it('is named in the error when it is a file', async () => {
    await writeFile(path('file'), '');
    const broken = open(path('file'));
    const failed = {
      code: 'STORE_REJECTED',
      fault: 'rejected',
      outcome: 'not-applied',
      message: expect.stringContaining(path('file')),
    };
    await expect(broken.read('0.json')).rejects.toMatchObject(failed);
    await expect(broken.list()).rejects.toMatchObject(failed);
    await expect(broken.create('0.json', 'x', {})).rejects.toMatchObject(failed);
  });

  it('is denied where no process may write, and holds nothing', async () => {
    // Not even root can make files in /proc.
    const sealed = open('/proc/sys/nodelease');
    expect(await sealed.read('0.json')).toBeUndefined();
    await expect(sealed.create('0.json', 'x', {})).rejects.toMatchObject({
      code: expect.stringMatching(/^STORE_(DENIED|MISSING)$/),
      outcome: 'not-applied',
    });
  });

  it.each(['', '.', '..', '.cas', '../0.json', 'a/b/c', 'a/.cas', 'a\\b', 'a\0', 'x'.repeat(300)])(
    'refuses the key %j',
    async (key) => {
      await expect(store.read(key)).rejects.toMatchObject({ fault: 'rejected', outcome: 'not-applied' });
      await expect(store.create(key, 'x', {})).rejects.toMatchObject({
        fault: 'rejected',
        outcome: 'not-applied',
      });
      expect(await readdir(directory)).toEqual([]);
    },
  );
});

it('shows what lies in folders where it is asked for, and writes nothing there', async () => {
  await store.create('0.json', 'own', {});
  await open(path('a')).create('0.json', 'in a', {});
  const keys = async (folders?: boolean) => (await store.list({ folders })).objects.map(({ key }) => key);
  expect([await keys(), await keys(true)]).toEqual([['0.json'], ['0.json', 'a/0.json']]);
  const [, listed] = (await store.list({ folders: true })).objects;
  expect(await store.read('a/0.json')).toMatchObject({ body: 'in a', etag: listed?.etag });
  await expect(store.create('a/b', 'x', {})).rejects.toMatchObject({ fault: 'rejected' });
  expect(await readdir(path('a'))).toEqual(['.cas', '0.json']);
});

describe('giving up', () => {
  it('ends a call at once and decides nothing afterwards when the signal aborts before the decision', async () => {
    const etag = etagOf(await store.create('0.json', 'first', {}));
    const given = new AbortController();
    const call = store.replace('0.json', 'second', {}, etag, { signal: given.signal });
    given.abort(new Error('given up'));
    await expect(call).rejects.toThrow('given up');
    // The next writer finds the old state, or a conflict, but never loses its own write.
    expect(etagOf(await store.replace('0.json', 'third', {}, etag))).not.toBe('not written');
    expect((await store.read('0.json'))?.body).toBe('third');
  });

  it('leaves nothing of a write behind that has timed out before the decision', async () => {
    const log = new CasLog(directory, '0.json', systemRandom);
    const outOfTime = new StoreError('out of time', { fault: 'unavailable', outcome: 'unknown' });
    const about = { sha256: '', metadata: {}, stamp: { clock: boot.id, ms: 0 } };
    const call = log.succeed(await log.head(), Buffer.from('1'), about, AbortSignal.abort(outOfTime));
    await expect(call).rejects.toBe(outOfTime);
    expect(await readdir(path('.cas/0.json'))).toEqual(['0']);
  });
});
