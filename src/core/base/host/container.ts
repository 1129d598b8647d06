import { existsSync, readFileSync } from 'node:fs';

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
