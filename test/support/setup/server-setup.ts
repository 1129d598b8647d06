import type { TestProject } from 'vitest/node';
import { type EtcdServers, startEtcd } from '../etcd.js';
import { type S3Access, startMinio } from '../servers/minio.js';
import { startZooKeeper, type ZooKeeperAccess } from '../zookeeper.js';
import { npmBuild } from './npm-build.js';
import { oncePerRun } from './once-per-run.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The S3 server of this run: `inject('s3')`. */
    s3: S3Access;
    /** The ZooKeeper server of this run: `inject('zookeeper')`. */
    zookeeper: ZooKeeperAccess;
    /** The etcd server of this run: `inject('etcd')`. */
    etcd: EtcdServers;
  }
}

/**
 * Starts the servers that the tests of a project need, once for all projects, and stops them after the last
 * one. Meanwhile it builds `dist/`: some tests run the command as its users do.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [build, s3, zookeeper, etcd] = await Promise.allSettled([
    oncePerRun('build', async () => {
      // Within another run the build is there, and that run's tests are using it.
      if (process.env.NODELEASE_TEST_BUILT === undefined) await npmBuild('build');
      return { value: undefined, tearDown: async () => {} };
    }),
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
    oncePerRun('etcd', async () => {
      const { address, description, stop } = await startEtcd();
      process.stderr.write(`etcd server for this run: ${description}\n`);
      return { value: { address }, tearDown: stop };
    }),
  ]);
  const shares = [build, s3, zookeeper, etcd];
  const giveUp = async () => {
    await Promise.all(
      shares.map((share) => (share.status === 'fulfilled' ? share.value.giveUp() : undefined)),
    );
  };
  const [failed] = shares.filter((share) => share.status === 'rejected');
  if (
    failed ||
    s3.status !== 'fulfilled' ||
    zookeeper.status !== 'fulfilled' ||
    etcd.status !== 'fulfilled'
  ) {
    await giveUp();
    throw failed?.reason;
  }
  project.provide('s3', s3.value.value);
  project.provide('zookeeper', zookeeper.value.value);
  project.provide('etcd', etcd.value.value);
  return giveUp;
}
