import { existsSync, readFileSync } from 'node:fs';
import { homedir, hostname, type NetworkInterfaceInfo, networkInterfaces } from 'node:os';

// What a process asks its system for, also where Node throws instead of an answer.

/** The name of this host; empty where the system has none. */
export function hostName(ask = hostname): string {
  try {
    return ask();
  } catch {
    return '';
  }
}

/**
 * Gives a process a home directory, `/` as in containers, where its user has none: without HOME, and without
 * an entry in /etc/passwd. The SDKs of clouds look for their files there, and fail if there is no home, even
 * if they need none.
 */
export function ensureHome(env: NodeJS.ProcessEnv, ask = homedir): void {
  try {
    if (!env.HOME) ask();
  } catch {
    env.HOME = '/';
  }
}

/**
 * The address under which others most likely reach this host: its first that is neither internal nor
 * link-local, IPv4 before IPv6; 127.0.0.1 if there is none. Not guaranteed: that it is the right one of
 * several, or reachable from outside, as behind a container's published ports.
 */
export function hostAddress(
  interfaces: () => NodeJS.Dict<readonly NetworkInterfaceInfo[]> = networkInterfaces,
): string {
  const all = Object.values(interfaces()).flatMap((each) => each ?? []);
  const reachable = all.filter(({ internal, address }) => !internal && !isLinkLocal(address));
  const first = reachable.find(({ family }) => family === 'IPv4') ?? reachable[0];
  return first?.address ?? '127.0.0.1';
}

/** 169.254.0.0/16 and fe80::/10. */
function isLinkLocal(address: string): boolean {
  return address.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/i.test(address);
}

/** Set by Amazon ECS, Kubernetes, and the other container services of AWS. */
const VARIABLES = [
  'ECS_CONTAINER_METADATA_URI_V4',
  'ECS_CONTAINER_METADATA_URI',
  'KUBERNETES_SERVICE_HOST',
  'AWS_EXECUTION_ENV',
];
/** Made by Docker and by podman. */
const FILES = ['/.dockerenv', '/run/.containerenv'];
/**
 * Also shows a launcher or an init that has started this program: on a host, process 1 is never a user's
 * program.
 */
const PROCESS_1 = '/proc/1/cmdline';

/** The sources that can show a container. */
export interface ContainerSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly processId: number;
  /** Where the files are looked for. @default the root of the file system */
  readonly root?: string;
}

/** The sign that this process runs in a container, as a phrase for messages; undefined without one. */
export function containerSign({ env, processId, root = '' }: ContainerSources): string | undefined {
  const variable = VARIABLES.find((name) => env[name]);
  if (variable !== undefined) return `${variable} is set`;
  const file = FILES.find((path) => existsSync(`${root}${path}`));
  if (file !== undefined) return `there is ${file}`;
  return processId === 1 || commandOfProcess1(root).includes('nodelease') ? 'it is process 1' : undefined;
}

function commandOfProcess1(root: string): string {
  try {
    return readFileSync(`${root}${PROCESS_1}`, 'utf8');
  } catch {
    return '';
  }
}
