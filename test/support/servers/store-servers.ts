import { randomBytes } from 'node:crypto';
import type { TestBucket } from '../bucket.js';
import { azuriteBucket, DEVELOPMENT_KEY } from './azurite-bucket.js';
import { containerOrProcess } from './container-or-process.js';
import { dynaliteTable, LOCAL_AWS } from './dynalite-table.js';
import { gcsBucket } from './gcs-bucket.js';
import type { Launch } from './local-server.js';
import { findServer, type ServerProcess, startServerProcess } from './server-process.js';

/** The servers of other kinds than S3 that can be had from package registries. */
export type StoreServerName = keyof typeof KINDS;

/** A bucket or container of one test, and the store in it. */
export interface StoreBucket extends TestBucket {
  /** The store of the whole bucket. */
  readonly url: string;
}

/** A server that stores other than S3 are kept on. */
export interface StoreServer {
  readonly endpoint: string;
  /** With these a process reaches the server, and needs no `--endpoint`. */
  readonly env: Readonly<Record<string, string>>;
  /** Creates a bucket or container that no other test uses. It goes with the server. */
  createBucket(): Promise<StoreBucket>;
  /** Stops what was started. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Azurite closes a connection that is idle for five seconds, which a check may be that pauses. A request that
 * is sent just then fails, and nothing is known of its outcome. Only the whole of Azurite 3.37 heeds the
 * option: its `azurite-blob` takes it, and goes on closing after five.
 */
const KEEPS_CONNECTIONS = ['--blobKeepAliveTimeout', '600', '--queuePort', '0', '--tablePort', '0'];

/** How each of them is had: given by the user, as a container, as a local process. */
const KINDS = {
  azurite: {
    variable: 'NODELEASE_TEST_AZURE_ENDPOINT',
    image: 'mcr.microsoft.com/azure-storage/azurite:3.37.0',
    port: 10_000,
    args: [
      'azurite',
      '--blobHost',
      '0.0.0.0',
      ...KEEPS_CONNECTIONS,
      '--inMemoryPersistence',
      '--skipApiVersionCheck',
    ],
    bucket: azuriteBucket,
    env: connectionString,
    launch: async (path: string, port: number): Promise<Launch> => {
      const args = [
        '--blobHost',
        '127.0.0.1',
        '--blobPort',
        String(port),
        ...KEEPS_CONNECTIONS,
        '--inMemoryPersistence',
      ];
      return {
        command: process.execPath,
        args: [path, ...args, '--skipApiVersionCheck', '--silent', '--disableTelemetry'],
      };
    },
  },
  'fake-gcs-server': {
    variable: 'NODELEASE_TEST_GCS_ENDPOINT',
    image: 'fsouza/fake-gcs-server:1.56.1',
    port: 4443,
    args: ['-scheme', 'http', '-backend', 'memory'],
    bucket: gcsBucket,
    env: emulatorHost,
    launch: async (path: string, port: number): Promise<Launch> => {
      const args = ['-host', '127.0.0.1', '-port', String(port), '-public-host', `127.0.0.1:${port}`];
      return { command: path, args: ['-scheme', 'http', '-backend', 'memory', ...args] };
    },
  },
  dynalite: {
    variable: undefined,
    image: undefined,
    bucket: dynaliteTable,
    env: (endpoint: string) => ({ ...LOCAL_AWS, AWS_ENDPOINT_URL_DYNAMODB: endpoint }),
    launch: async (path: string, port: number): Promise<Launch> => {
      const args = ['--host', '127.0.0.1', '--port', String(port), '--createTableMs', '0'];
      return { command: process.execPath, args: [path, ...args] };
    },
  },
  'gcp-storage-emulator': {
    variable: undefined,
    image: undefined,
    bucket: gcsBucket,
    env: emulatorHost,
    launch: async (path: string, port: number): Promise<Launch> => {
      const args = [
        '-m',
        'gcp_storage_emulator',
        'start',
        '--host=127.0.0.1',
        `--port=${port}`,
        '--in-memory',
      ];
      return { command: 'python3', args, env: { ...process.env, PYTHONPATH: path } };
    },
  },
} as const;

function connectionString(endpoint: string): Record<string, string> {
  const account = `AccountName=devstoreaccount1;AccountKey=${DEVELOPMENT_KEY}`;
  const BlobEndpoint = `${endpoint}/devstoreaccount1`;
  return {
    AZURE_STORAGE_CONNECTION_STRING: `DefaultEndpointsProtocol=http;${account};BlobEndpoint=${BlobEndpoint};`,
  };
}

function emulatorHost(endpoint: string): Record<string, string> {
  return { STORAGE_EMULATOR_HOST: endpoint };
}

/**
 * Starts, or finds, a server: the one that its variable names, else a container where a Docker API is
 * reachable, else a local process, which is installed where it is missing.
 *
 * @throws Error when there is none
 */
export async function startStoreServer(name: StoreServerName): Promise<StoreServer> {
  const { bucket, env } = KINDS[name];
  const { endpoint, stop } = await started(name);
  return {
    endpoint,
    env: env(endpoint),
    createBucket: () => bucket(endpoint, `nodelease-test-${randomBytes(6).toString('hex')}`),
    stop,
  };
}

async function started(name: StoreServerName): Promise<ServerProcess> {
  const kind = KINDS[name];
  const given = kind.variable && process.env[kind.variable];
  if (given) return { endpoint: given, stop: async () => undefined };
  const startProcess = async () => {
    const path = await findServer(name);
    return startServerProcess(name, (_, port) => kind.launch(path, port));
  };
  if (kind.image === undefined) return startProcess();
  return containerOrProcess(name, undefined, {
    container: () => startContainer(kind),
    process: startProcess,
  });
}

async function startContainer(kind: {
  image: string;
  port: number;
  args: readonly string[];
}): Promise<ServerProcess> {
  const { GenericContainer } = await import('testcontainers');
  const container = await new GenericContainer(kind.image)
    .withCommand([...kind.args])
    .withExposedPorts(kind.port)
    .start();
  let stopping: Promise<unknown> | undefined;
  return {
    endpoint: `http://${container.getHost()}:${container.getMappedPort(kind.port)}`,
    async stop() {
      stopping ??= container.stop();
      await stopping;
    },
  };
}
