import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';
import { packageRoot } from '../../../support/package-root.js';
import { killAll, runProcess, type TestProcess } from '../../../support/processes.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';

// Real processes with shards, some of them killed. They append what they do to one file, whose order is that
// of their acts.

const s3 = inject('s3');
const COUNT = 12;
let folder: string;

beforeEach(() => {
  folder = newFolder();
});
afterEach(async () => {
  await killAll();
  removeFolders();
});

/** Owners of shards on one store. */
function owners(store: string, endpoint: string) {
  const file = join(folder, 'acts');
  const program = join(packageRoot, 'test/fixtures/programs/shard-owner.mjs');
  const all: TestProcess[] = [];
  const start = (keeper: 'inline' | 'worker') => {
    const args = [program, store, endpoint, keeper, '10000', String(COUNT), file];
    const owner = runProcess(process.execPath, args, { env: awsEnvironment(s3) });
    all.push(owner);
    return owner;
  };
  const owned = (owner: TestProcess) =>
    Number([...owner.stdout().matchAll(/^owned (\d+)\.$/gm)].at(-1)?.[1] ?? 0);
  /** Resolves when these, and no others, own all shards, with as many as each other. */
  const share = async (...living: readonly TestProcess[]) => {
    const fair = Math.floor(COUNT / living.length);
    await expect.poll(() => living.map(owned), { timeout: 60_000 }).toEqual(living.map(() => fair));
  };
  const acts = () =>
    readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => {
        const [shard = '', token = '', what = '', pid = ''] = line.split(' ');
        return { shard: Number(shard), token: Number(token), what, pid: Number(pid) };
      });
  return { start, share, acts, all };
}

describe.each([
  ['S3', async () => [`s3://${(await createBucket(s3)).name}/p`, s3.endpoint] as const],
  ['a folder', async () => [`file:${folder}/store`, '-'] as const],
])('shards on %s', (_, place) => {
  it('have one owner at a time, and a greater token with each, while owners come, leave and are killed', async () => {
    const [store, endpoint] = await place();
    const { start, share, acts, all } = owners(store, endpoint);
    const first = start('inline');
    await share(first);
    const second = start('worker');
    await share(first, second);
    const third = start('inline');
    await share(first, second, third);
    first.kill('SIGKILL');
    await share(second, third);
    second.kill('SIGTERM');
    expect((await second.exit).code).toBe(0);
    await share(third);
    const fourth = start('worker');
    await share(third, fourth);
    fourth.kill('SIGKILL');
    await share(third);
    third.kill('SIGTERM');
    expect((await third.exit).code).toBe(0);

    const last = new Map<number, { token: number; what: string; pid: number }>();
    const killed = new Set([first.pid, fourth.pid]);
    let moves = 0;
    for (const act of acts()) {
      const before = last.get(act.shard);
      last.set(act.shard, act);
      if (act.what !== 'start') expect(act).toMatchObject({ token: before?.token, pid: before?.pid });
      else {
        expect(act.token).toBeGreaterThan(before?.token ?? 0);
        // The owner before it had stopped, or had been killed.
        if (before !== undefined && !killed.has(before.pid)) expect(before.what).toBe('end');
        moves += 1;
      }
    }
    expect(last.size).toBe(COUNT);
    expect(moves).toBeGreaterThan(3 * COUNT);
    expect(all.flatMap((owner) => owner.stdout().match(/^(failed|damaged) .*/gm) ?? [])).toEqual([]);
  });
});
