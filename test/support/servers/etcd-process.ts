import { join } from 'node:path';
import { installed } from '../installed.js';
import { freePorts } from './free-ports.js';
import { type LocalServer, localServer, started } from './local-server.js';

/** The versions of `install-etcd.sh`: that of PyPI, that of Debian, one that is built. */
export const ETCD_VERSIONS = ['3.5', 'debian', '3.6'] as const;
export type EtcdVersion = (typeof ETCD_VERSIONS)[number];

/** How to start a member of a cluster. */
export interface EtcdProcessOptions {
  /** @default '3.5' */
  readonly version?: EtcdVersion;
  /** Further options of its command line, such as `['--quota-backend-bytes', '1048576']`. @default none */
  readonly flags?: readonly string[];
  /** Whether clients are to use TLS; `flags` has with what. @default false */
  readonly tls?: boolean;
  /** Its name and ports, and all members. @default one that stands alone, on free ports */
  readonly member?: EtcdMember;
}

/** A member, as the others know it. */
export interface EtcdMember {
  readonly name: string;
  readonly clientPort: number;
  readonly peerPort: number;
  /** Where the others reach it: its peer port, or a proxy's before it. */
  readonly advertisedPort: number;
  /** `NAME=URL` of all members. */
  readonly cluster: string;
}

/** A server under a test's control. Its data is kept from `stop()` or `kill()` to `start()`. */
export interface EtcdProcess extends Omit<LocalServer, 'folder'> {
  /** `127.0.0.1:PORT`. */
  readonly address: string;
  /** `http://127.0.0.1:PORT`. */
  readonly endpoint: string;
  readonly description: string;
}

/** The path of the server of that version, installed at need. @throws Error when it cannot be installed */
export function findEtcd(version: EtcdVersion): Promise<string> {
  const otherwise =
    'install Python 3 with pip (for 3.6 Go 1.24 or later), or set NODELEASE_TEST_ETCD to HOST:PORT of an etcd of your own';
  return installed('install-etcd.sh', [version], otherwise);
}

/**
 * Starts a server on 127.0.0.1. A member of several is ready once it answers, which it does before there is a
 * leader.
 */
export async function startEtcdProcess(options: EtcdProcessOptions = {}): Promise<EtcdProcess> {
  return started(await prepareEtcd(options));
}

/** The same, not started yet. */
export async function prepareEtcd({
  version = '3.5',
  flags = [],
  tls = false,
  member,
}: EtcdProcessOptions): Promise<EtcdProcess> {
  const path = await findEtcd(version);
  const { name, clientPort, peerPort, advertisedPort, cluster } = member ?? (await aloneMember());
  const endpoint = `${tls ? 'https' : 'http'}://127.0.0.1:${clientPort}`;
  const server = await localServer({
    name: 'etcd',
    launch: (folder) => ({
      command: path,
      args: [
        ...['--name', name, '--data-dir', join(folder, 'data')],
        ...['--listen-client-urls', endpoint, '--advertise-client-urls', endpoint],
        ...[
          '--listen-peer-urls',
          `http://127.0.0.1:${peerPort}`,
          '--initial-advertise-peer-urls',
          `http://127.0.0.1:${advertisedPort}`,
        ],
        ...['--initial-cluster', cluster, '--initial-cluster-token', cluster],
        // The system's crash is not what is tested, so nothing is gained by waiting for the disk.
        ...['--unsafe-no-fsync', '--heartbeat-interval', '50', '--election-timeout', '500', ...flags],
      ],
    }),
    isReady: () => answers(endpoint),
  });
  const { start, stop, kill, pause, resume, dispose } = server;
  return {
    ...{ address: `127.0.0.1:${clientPort}`, endpoint, start, stop, kill, pause, resume, dispose },
    get pid() {
      return server.pid;
    },
    get description() {
      return `${endpoint}, process ${server.pid ?? '(ended)'} of etcd ${version}`;
    },
  };
}

async function aloneMember(): Promise<EtcdMember> {
  const [clientPort = 0, peerPort = 0] = await freePorts(2);
  return {
    name: 'alone',
    clientPort,
    peerPort,
    advertisedPort: peerPort,
    cluster: `alone=http://127.0.0.1:${peerPort}`,
  };
}

/** A server that wants certificates or passwords answers as well. */
async function answers(endpoint: string): Promise<boolean> {
  const reply = await fetch(`${endpoint}/version`, { signal: AbortSignal.timeout(1_000) }).catch(
    (error: { cause?: { code?: string } }) => error,
  );
  return 'status' in reply ? reply.status === 200 : !/^(ECONN|UND_ERR|$)/.test(reply.cause?.code ?? '');
}
