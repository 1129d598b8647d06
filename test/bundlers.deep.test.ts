import { execFile } from 'node:child_process';
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { awsEnvironment, createBucket } from './support/bucket.js';
import { type InstalledPackage, installPackage } from './support/installed-package.js';
import { uniqueChroot } from './support/zookeeper.js';

const run = promisify(execFile);
let installed: InstalledPackage;

beforeAll(async () => {
  installed = await installPackage();
});

afterAll(() => installed.remove());

it('is bundled by each command of the guide, and works on a file, a bucket and ZooKeeper', async () => {
  const { folder } = installed;
  await writeFile(
    join(folder, 'server.js'),
    `import { acquire } from 'nodelease';
     const [connect, file, bucket] = process.argv.slice(2);
     const service = { connect, service: 'bundled', address: '127.0.0.1', port: 1 };
     async function serve(options) {
       const lease = await acquire({ ...options, nodes: 1, zookeeper: service });
       await lease.discovery.ready;
       console.log(lease.id, lease.version);
       await lease.release();
     }
     serve({ store: file })
       .then(() => serve({ store: bucket }))
       .then(() => serve({ store: file, keeper: 'worker' }))
       .catch((error) => console.log(error.message));`,
  );
  for (const bundler of ['esbuild', 'rolldown'])
    await symlink(resolve(`node_modules/.bin/${bundler}`), join(folder, `node_modules/.bin/${bundler}`));
  const guide = await readFile(resolve('docs/guides/library.md'), 'utf8');
  for (const [, command = ''] of guide.slice(guide.indexOf('## In a bundle')).matchAll(/^\$ (.*)$/gm))
    await run('sh', ['-c', command], { cwd: folder });
  const s3 = inject('s3');
  const env = { ...process.env, ...awsEnvironment(s3), AWS_ENDPOINT_URL_S3: s3.endpoint };
  const connect = `${inject('zookeeper').connect}${uniqueChroot('bundles')}`;
  const printed: Record<string, string> = {};
  for (const output of await readdir(join(folder, 'out'))) {
    const { name } = await createBucket(s3);
    const args = [join('out', output), connect, `file:${output}`, `s3://${name}/leases`];
    printed[output] = (await run(process.execPath, args, { cwd: folder, env })).stdout;
  }
  const remedy =
    'keeper: expected \'inline\', or nodelease marked as external to this bundle (--external:nodelease), got "worker"';
  expect(printed).toEqual({
    'esbuild.cjs': `0 1\n0 1\n${remedy}\n`,
    'esbuild.mjs': `0 1\n0 1\n${remedy}\n`,
    'rolldown.cjs': `0 1\n0 1\n${remedy}\n`,
    'rolldown.mjs': `0 1\n0 1\n${remedy}\n`,
    'external.mjs': '0 1\n0 1\n0 2\n',
  });
}, 600_000);
