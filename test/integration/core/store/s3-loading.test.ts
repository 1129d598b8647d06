import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

// As built, in a process of its own: what is in memory here is known.
const dist = new URL('../../../../dist/', import.meta.url);
const program = `
  import { createRequire } from 'node:module';
  const { openStore } = await import('${new URL('core/store/open-store.js', dist)}');
  const { systemClock: clock, systemRandom: random } = await import('${new URL('core/base/system.js', dist)}');
  const store = await openStore(process.argv[1], { clock, random, requestTimeoutMs: 1000 });
  await store.close();
  console.log(Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes('@aws-sdk')));
  console.error(JSON.stringify(process.env));
`;

async function run(url: string): Promise<{ stdout: string; stderr: string }> {
  // Without what these tests have set for their own S3 clients.
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('AWS_'));
  const env = { ...Object.fromEntries(own), AWS_REGION: 'eu-west-1' };
  return promisify(execFile)(process.execPath, ['--input-type=module', '-e', program, url], { env });
}

describe('the AWS SDK', () => {
  it.each([
    ['memory:', 'false'],
    ['file:no-such-folder', 'false'],
    ['s3://leases/prod', 'true'],
  ])('is loaded for %s: %s', async (url, loaded) => {
    expect((await run(url)).stdout.trim()).toBe(loaded);
  });

  it('neither writes to standard error nor leaves anything in the environment that a child would inherit', async () => {
    const { stderr } = await run('s3://leases/prod');
    const lines = stderr.trim().split('\n');
    expect(lines).toHaveLength(1);
    expect(Object.keys(JSON.parse(lines[0] ?? '')).filter((name) => name.startsWith('AWS_SDK'))).toEqual([]);
  });
});
