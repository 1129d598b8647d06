import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { packageRoot } from '../package-root.js';
import { type ContainerEngine, runCommand, succeeded } from './container-engine.js';

/**
 * Copies what is under version control, or would be, to a new folder: nothing that was built, installed, or
 * left there by anybody.
 *
 * @throws Error outside of a clone
 */
export async function cleanCopy(): Promise<string> {
  const command = [
    'git',
    '-C',
    packageRoot,
    'ls-files',
    '--cached',
    '--others',
    '--exclude-standard',
    '-z',
  ] as const;
  const files = succeeded(command, await runCommand(command))
    .split('\0')
    .filter((file) => file !== '' && !file.startsWith('docs/') && !file.startsWith('test/'));
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-image-'));
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    // One that is listed may have been deleted, or not yet have been written, where somebody is at work.
    await cp(join(packageRoot, file), join(folder, file)).catch(() => undefined);
  }
  return folder;
}

/**
 * Builds an image with a Dockerfile, as its users do.
 *
 * @param tag what it is called
 * @throws Error with the end of its log when it cannot be built
 */
export async function buildImage(
  engine: ContainerEngine,
  tag: string,
  context: string,
  file: string,
): Promise<void> {
  await using registry = await registrySettings(engine);
  await engine.command('build', ...registry.options, '--tag', tag, '--file', join(context, file), context);
}

/** What lets npm in a build reach the registry that npm on this machine uses. */
async function registrySettings(
  engine: ContainerEngine,
): Promise<AsyncDisposable & { readonly options: readonly string[] }> {
  const setting = async (name: string) => (await runCommand(['npm', 'config', 'get', name])).stdout.trim();
  const [userConfig, cache, caFile] = await Promise.all([
    setting('userconfig'),
    setting('cache'),
    setting('cafile'),
  ]);
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-npmrc-'));
  const npmrc = join(folder, 'npmrc');
  const authorities = [caFile, process.env.NODE_EXTRA_CA_CERTS].find((path) => path?.startsWith('/'));
  const lines = [await readFile(userConfig, 'utf8').catch(() => '')];
  // A build by Docker has what its Docker has. Podman's gets this machine's network and authorities, and what
  // npm has fetched before; it keeps no step of the build, since nothing is built a second time.
  const isPodman = engine.access.kind === 'podman';
  if (isPodman && authorities !== undefined) lines.push(`cafile=${authorities}`);
  await writeFile(npmrc, `${lines.join('\n')}\n`, { mode: 0o600 });
  const mounts = [
    `${cache}:/root/.npm`,
    ...(authorities === undefined ? [] : [`${authorities}:${authorities}:ro`]),
  ];
  return {
    options: [
      '--secret',
      `id=npmrc,src=${npmrc}`,
      ...(isPodman
        ? ['--layers=false', '--network', 'host', ...mounts.flatMap((mount) => ['--volume', mount])]
        : []),
    ],
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
