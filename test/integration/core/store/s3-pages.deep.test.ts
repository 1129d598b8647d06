import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';

// A thousand objects take their time. How pages follow each other is in s3-replies.test.ts, too.

const s3 = inject('s3');

beforeAll(() => {
  for (const [name, value] of Object.entries(awsEnvironment(s3))) vi.stubEnv(name, value);
});

afterAll(() => {
  vi.unstubAllEnvs();
});

it('a store on S3 lists more objects than fit on one page, and any part of them', async () => {
  const bucket = await createBucket(s3);
  const ids = Array.from({ length: 1_010 }, (_, id) => id);
  const put = async (lane: number) => {
    for (const id of ids) if (id % 8 === lane) await bucket.putRaw(`p/${id}.json`, 'x');
  };
  await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(put));
  await bucket.putRaw('p/', 'x');
  await bucket.putRaw('p/deeper/0.json', 'x');
  await bucket.putRaw('p2/0.json', 'x');
  const { endpoint } = s3;
  const store = await openStore(`s3://${bucket.name}/p`, {
    clock,
    random,
    endpoint,
    requestTimeoutMs: 10_000,
  });
  const sorted = ids.map((id) => `${id}.json`).sort();
  expect((await store.list()).objects.map(({ key }) => key)).toEqual(sorted);
  // In parts as well, from any key on, in the order of the keys.
  for (const from of [0, 5, 10, 900]) {
    const page = await store.listPage?.(from === 0 ? undefined : sorted[from - 1]);
    const shown = page?.objects.map(({ key }) => key) ?? [];
    expect(shown).toEqual(sorted.slice(from, from + shown.length));
    // What follows may be a folder alone.
    expect(page?.more || from + shown.length === sorted.length).toBe(true);
    expect(shown.length).toBeGreaterThan(100);
  }
  await store.close();
});
