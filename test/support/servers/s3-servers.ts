import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Launch } from './local-server.js';
import type { S3Server } from './minio.js';
import { findMinio, startMinioProcess } from './minio-process.js';
import { findServer, startServerProcess } from './server-process.js';

/** The S3 servers that can be had from package registries. */
export const S3_SERVERS = [
  'minio',
  'gofakes3',
  'versitygw',
  'rclone',
  's3s-fs',
  's3mock',
  'moto',
  's3rver',
  's3proxy',
] as const;
/** One of them. */
export type S3ServerName = (typeof S3_SERVERS)[number];

const KEY = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' } as const;

/**
 * Installs an S3 server where it is missing, and starts it on 127.0.0.1 with a folder of its own.
 *
 * @throws Error when it cannot be findServer, or does not answer
 */
export async function startS3Server(name: S3ServerName): Promise<S3Server> {
  if (name === 'minio')
    return { ...(await startMinioProcess(await findMinio())), bucketPrefix: 'nodelease-test-' };
  const { endpoint, stop } = await startServerProcess(name, (folder, port) => launchOf(name, folder, port));
  return {
    endpoint,
    region: 'us-east-1',
    ...KEY,
    bucketPrefix: 'nodelease-test-',
    description: `${endpoint}, ${name}`,
    stop,
  };
}

async function launchOf(name: Exclude<S3ServerName, 'minio'>, folder: string, port: number): Promise<Launch> {
  const path = await findServer(name);
  const data = join(folder, 'data');
  await mkdir(data);
  switch (name) {
    case 's3mock':
      // Its second connector, on a port of its choice, cannot be bound to one address.
      return java(
        path,
        folder,
        '--server.address=127.0.0.1',
        `--server.port=${port}`,
        '--server.ssl.enabled=false',
        '--com.adobe.testing.s3mock.httpPort=0',
      );
    case 's3proxy': {
      const properties = join(folder, 's3proxy.conf');
      const lines = [
        `s3proxy.endpoint=http://127.0.0.1:${port}`,
        's3proxy.authorization=none',
        'jclouds.provider=filesystem-nio2',
        'jclouds.identity=unused',
        'jclouds.credential=unused',
      ];
      await writeFile(properties, [...lines, `jclouds.filesystem.basedir=${data}`, ''].join('\n'));
      return java(path, folder, '--properties', properties);
    }
    case 'moto':
      return {
        command: 'python3',
        args: ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)],
        env: { ...process.env, PYTHONPATH: path },
      };
    case 'gofakes3':
      return { command: path, args: ['-host', `127.0.0.1:${port}`, '-backend', 'memory'] };
    case 'versitygw': {
      const env = { ...process.env, ROOT_ACCESS_KEY: KEY.accessKeyId, ROOT_SECRET_KEY: KEY.secretAccessKey };
      return { command: path, args: ['--port', `127.0.0.1:${port}`, 'posix', data], env };
    }
    case 'rclone': {
      const key = `${KEY.accessKeyId},${KEY.secretAccessKey}`;
      return { command: path, args: ['serve', 's3', '--auth-key', key, '--addr', `127.0.0.1:${port}`, data] };
    }
    case 's3s-fs': {
      const keys = ['--access-key', KEY.accessKeyId, '--secret-key', KEY.secretAccessKey];
      return { command: path, args: ['--host', '127.0.0.1', '--port', String(port), ...keys, data] };
    }
    case 's3rver':
      return {
        command: process.execPath,
        args: [path, '-s', '-a', '127.0.0.1', '-p', String(port), '-d', data],
      };
  }
}

/**
 * Temporary files go into the folder: one of these servers leaves one behind for each object that it ever
 * stored.
 */
function java(jar: string, folder: string, ...args: string[]): Launch {
  const options = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', `-Djava.io.tmpdir=${folder}`];
  return { command: 'java', args: [...options, '-jar', jar, ...args] };
}
