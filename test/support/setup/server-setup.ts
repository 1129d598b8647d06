import type { TestProject } from 'vitest/node';
import { type S3Access, startMinio } from '../servers/minio.js';
import { startZooKeeper, type ZooKeeperAccess } from '../zookeeper.js';
import { oncePerRun } from './once-per-run.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The S3 server of this run: `inject('s3')`. */
    s3: S3Access;
    /** The ZooKeeper server of this run: `inject('zookeeper')`. */
    zookeeper: ZooKeeperAccess;
  }
}

/** Starts the servers that the tests of a project need, once for all projects, and stops them after the last one. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [s3, zookeeper] = await Promise.allSettled([
    oncePerRun('minio', async () => {
      const server = await startMinio();
      process.stderr.write(`S3 server for this run: ${server.description}\n`);
      const { stop, ...access } = server;
      return { value: access, tearDown: stop };
    }),
    oncePerRun('zookeeper', async () => {
      const { connect, description, stop } = await startZooKeeper();
      process.stderr.write(`ZooKeeper server for this run: ${description}\n`);
      return { value: { connect }, tearDown: stop };
    }),
  ]);
  const giveUp = async () => {
    await Promise.all([s3, zookeeper].map((share) => (share.status === 'fulfilled' ? share.value.giveUp() : undefined)));
  };
  if (s3.status === 'rejected' || zookeeper.status === 'rejected') {
    await giveUp();
    throw s3.status === 'rejected' ? s3.reason : (zookeeper as PromiseRejectedResult).reason;
  }
  project.provide('s3', s3.value.value);
  project.provide('zookeeper', zookeeper.value.value);
  return giveUp;
}
