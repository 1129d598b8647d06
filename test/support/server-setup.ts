import type { TestProject } from 'vitest/node';
import { type S3Access, startMinio } from './minio.js';
import { oncePerRun } from './once-per-run.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The S3 server of this run: `inject('s3')`. */
    s3: S3Access;
  }
}

/** Starts the servers that the tests of a project need, once for all projects, and stops them after the last one. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { value, giveUp } = await oncePerRun('minio', async () => {
    const server = await startMinio();
    process.stderr.write(`S3 server for this run: ${server.description}\n`);
    const { stop, ...access } = server;
    return { value: access, tearDown: stop };
  });
  project.provide('s3', value);
  return giveUp;
}
