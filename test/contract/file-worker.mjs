// One process of the tests in file-processes.test.ts, on the built package: count DIRECTORY NAME TIMES
// [naive] | scribble DIRECTORY
import { createHash } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock as clock, systemRandom as random } from '../../dist/core/base/system.js';
import { FileLeaseStore } from '../../dist/core/store/file/file-lease-store.js';

const [, , task, directory, name, times, kind] = process.argv;

/** What the file store would be without its chain of decisions: look, write a second file, rename it. */
const naive = {
  async read(key) {
    const body = await readFile(join(directory, key), 'utf8').catch(() => undefined);
    return body === undefined ? undefined : { body, etag: createHash('sha256').update(body).digest('hex') };
  },
  async replace(key, body, _metadata, etag) {
    if ((await this.read(key))?.etag !== etag) return { status: 'conflict' };
    const scratch = join(directory, `.${name}`);
    const file = await open(scratch, 'w');
    await file.writeFile(body);
    await file.sync();
    await file.close();
    await rename(scratch, join(directory, key));
    return { status: 'written' };
  },
};

const store = kind === 'naive' ? naive : new FileLeaseStore({ directory, clock, random });

/**
 * Adds to this process's own entry and to the sum, the given number of times or until SIGTERM, only by read
 * and replace.
 */
async function count() {
  let reported = false;
  process.once('SIGTERM', () => {
    reported = true;
  });
  for (let done = 0; done < Number(times) && !reported; ) {
    const object = await store.read('0.json');
    const { sum, by } = JSON.parse(object.body);
    const body = JSON.stringify({ sum: sum + 1, by: { ...by, [name]: (by[name] ?? 0) + 1 } });
    const result = await store.replace('0.json', body, {}, object.etag).catch((error) => {
      if (error.outcome !== 'unknown') throw error;
      return { status: 'unknown' };
    });
    // Rule 5: an unknown outcome is settled by reading back.
    const readBack =
      result.status === 'unknown' && JSON.parse((await store.read('0.json')).body).by[name] === done + 1;
    if (result.status === 'written' || readBack) {
      done += 1;
      process.stdout.write('.');
    } else await clock.sleep(random.next() * 500);
  }
}

/** Writes bodies that show whether they are whole, until it is killed. */
async function scribble() {
  for (let turn = 0; ; turn += 1) {
    const object = await store.read('0.json');
    const text = `${process.pid} ${turn} `.padEnd(20_000 + Math.floor(random.next() * 100_000), 'x');
    const body = `${createHash('sha256').update(text).digest('hex')} ${text}`;
    if (object === undefined) await store.create('0.json', body, { turn: `${turn}` });
    else await store.replace('0.json', body, { turn: `${turn}` }, object.etag);
    process.stdout.write('.');
  }
}

await (task === 'count' ? count() : scribble());
