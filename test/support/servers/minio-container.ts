import { randomBytes } from 'node:crypto';
import type { RunningServer } from './minio.js';

/**
 * The image; `test/support/containers/run.sh` builds one of this very name where no registry can be reached.
 */
export const MINIO_IMAGE = 'minio/minio:RELEASE.2025-09-07T16-13-09Z';

const PORT = 9000;

/**
 * Starts MinIO in a container through the Docker API.
 *
 * @throws Error when no Docker API answers, or the image cannot be had
 */
export async function startMinioContainer(): Promise<RunningServer> {
  // Loaded only here: it is slow to load, and most runs on a developer's machine without Docker do not need
  // it.
  const { GenericContainer, Wait } = await import('testcontainers');
  const accessKeyId = randomBytes(8).toString('hex');
  const secretAccessKey = randomBytes(16).toString('hex');
  const container = await new GenericContainer(MINIO_IMAGE)
    .withEnvironment({
      MINIO_ROOT_USER: accessKeyId,
      MINIO_ROOT_PASSWORD: secretAccessKey,
      MINIO_BROWSER: 'off',
    })
    .withCommand(['server', '/data'])
    .withExposedPorts(PORT)
    .withWaitStrategy(Wait.forHttp('/minio/health/ready', PORT))
    .withStartupTimeout(120_000)
    .start();
  let stopping: Promise<unknown> | undefined;
  return {
    endpoint: `http://${container.getHost()}:${container.getMappedPort(PORT)}`,
    region: 'us-east-1',
    accessKeyId,
    secretAccessKey,
    description: `container ${container.getId().slice(0, 12)} of ${MINIO_IMAGE}`,
    async stop() {
      stopping ??= container.stop();
      await stopping;
    },
  };
}
