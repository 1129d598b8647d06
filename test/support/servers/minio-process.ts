import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { installed } from '../installed.js';
import { freePort } from './free-ports.js';
import { localServer, started } from './local-server.js';
import type { RunningServer } from './minio.js';

/**
 * Finds a MinIO binary: the cached one, else one on the PATH, else it builds one into the cache, which takes
 * minutes.
 *
 * @throws Error when there is none and it cannot be built
 */
export function findMinio(): Promise<string> {
  const otherwise =
    'start Docker, install Go 1.24 or later, or set NODELEASE_TEST_S3_ENDPOINT to an S3 server of your own';
  return installed('install-minio.sh', [], otherwise);
}

/**
 * Starts a MinIO binary on 127.0.0.1 with a folder and credentials of its own. It ends with this process,
 * whatever ends that.
 *
 * @throws Error with the end of its log when it does not get ready
 */
export async function startMinioProcess(binary: string): Promise<RunningServer> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const accessKeyId = randomBytes(8).toString('hex');
  const secretAccessKey = randomBytes(16).toString('hex');
  const server = await started(
    await localServer({
      name: 'MinIO',
      launch: (folder) => ({
        command: binary,
        args: ['server', '--address', `127.0.0.1:${port}`, join(folder, 'data')],
        env: {
          PATH: process.env.PATH,
          HOME: folder,
          MINIO_ROOT_USER: accessKeyId,
          MINIO_ROOT_PASSWORD: secretAccessKey,
          MINIO_BROWSER: 'off',
          MINIO_UPDATE: 'off',
        },
      }),
      isReady: async () =>
        (await fetch(`${endpoint}/minio/health/ready`).catch(() => undefined))?.ok === true,
    }),
  );
  const description = `${endpoint}, process ${server.pid} of ${binary}`;
  return { endpoint, region: 'us-east-1', accessKeyId, secretAccessKey, description, stop: server.dispose };
}
