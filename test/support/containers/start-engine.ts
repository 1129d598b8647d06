import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../package-root.js';
import { type ContainerAccess, runCommand } from './container-engine.js';

/** What runs containers, and its end. */
export interface RunningEngine {
  readonly access: ContainerAccess;
  /** Where it came from, for people. */
  readonly description: string;
  /** Ends what still runs, and removes what this run has stored. Idempotent. */
  stop(): Promise<void>;
}

/** Podman allows its own folder 50 characters: so that of the temporary files may be too long. */
const SHORT_FOLDER = '/tmp';

/**
 * Finds what runs containers: Docker where it answers, else podman, which is installed where this may be
 * done, with images of its own making. `NODELEASE_TEST_CONTAINER_ENGINE`, `docker` or `podman`, insists on
 * one.
 *
 * @throws Error when there is neither; tests are never skipped for that
 */
export async function startEngine(): Promise<RunningEngine> {
  const kind = process.env.NODELEASE_TEST_CONTAINER_ENGINE || undefined;
  if (kind !== undefined && kind !== 'docker' && kind !== 'podman') {
    throw new Error(`NODELEASE_TEST_CONTAINER_ENGINE: expected docker or podman, got ${kind}`);
  }
  if (kind === 'podman') return startPodman();
  const version = await runCommand(['docker', 'version', '--format', '{{.Server.Version}}']).catch(
    () => undefined,
  );
  if (version?.exitCode === 0) {
    const access = { kind: 'docker', environment: {}, compose: ['docker', 'compose'] } as const;
    return { access, description: `Docker ${version.stdout.trim()}`, stop: async () => {} };
  }
  if (kind === 'docker')
    throw new Error(
      `NODELEASE_TEST_CONTAINER_ENGINE=docker: it does not answer: ${version?.stderr ?? 'no such command'}`,
    );
  return startPodman();
}

async function startPodman(): Promise<RunningEngine> {
  await script('test/support/install/install-podman.sh');
  const images = await script('test/support/containers/install-base-images.sh');
  const compose = await script('test/support/install/install-podman-compose.sh');
  const home = await mkdtemp(join(SHORT_FOLDER, 'nodelease-podman-'));
  // Elsewhere, since what is temporary may be kept in memory.
  const storage = await mkdtemp(
    join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nodelease-test', 'containers-'),
  );
  await script('test/support/containers/podman-home.sh', home, join(storage, 'graph'), images);
  const environment = {
    CONTAINERS_CONF: join(home, 'containers.conf'),
    CONTAINERS_STORAGE_CONF: join(home, 'storage.conf'),
    // That of OCI, podman's own default, knows no health checks.
    BUILDAH_FORMAT: 'docker',
  };
  const end = async () => {
    await runCommand(['podman', 'rm', '--all', '--force', '--time', '2'], environment);
    await runCommand(['podman', 'network', 'prune', '--force'], environment);
    // What podman has mounted there.
    await runCommand(['umount', join(storage, 'graph/overlay')]);
    await rm(storage, { recursive: true, force: true });
    await rm(home, { recursive: true, force: true });
  };
  const version = await runCommand(
    ['podman', 'info', '--format', '{{.Version.Version}}, storage {{.Store.GraphDriverName}}'],
    environment,
  );
  if (version.exitCode !== 0) {
    await end();
    throw new Error(`podman does not work here:\n${version.stderr}`);
  }
  let stopping: Promise<void> | undefined;
  return {
    access: { kind: 'podman', environment, compose: [compose] },
    description: `podman ${version.stdout.trim()}`,
    stop: () => {
      stopping ??= end();
      return stopping;
    },
  };
}

/**
 * Runs a script of the tests. Resolves to what it prints; its progress on the way, which may take minutes,
 * goes to standard error at once.
 */
async function script(path: string, ...args: string[]): Promise<string> {
  const child = spawn('bash', [join(packageRoot, path), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${path} ended with ${code}; the reason stands above`);
  return stdout.trim();
}
