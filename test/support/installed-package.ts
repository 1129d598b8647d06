import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from './package-root.js';

const run = promisify(execFile);

/** A project of ES modules that has installed the built package, and no optional one. */
export interface InstalledPackage {
  readonly folder: string;
  readonly tarball: string;
  /** The files of the package. */
  readonly files: readonly string[];
  remove(): Promise<void>;
}

/** Packs what the set-up of the tests has built, and installs it. */
export async function installPackage(): Promise<InstalledPackage> {
  const place = await mkdtemp(join(tmpdir(), 'nodelease-package-'));
  const folder = join(place, 'project');
  await mkdir(folder);
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', place], {
    cwd: packageRoot,
  });
  const listing: unknown = JSON.parse(stdout);
  const [packed] = (Array.isArray(listing) ? listing : Object.values(listing as object)) as [
    { filename: string; files: { path: string }[] },
  ];
  const tarball = join(place, packed.filename);
  await writeFile(join(folder, 'package.json'), '{"name":"consumer","private":true,"type":"module"}');
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], { cwd: folder });
  // prom-client has it as a dependency. Moved there, it is not installed for anything else.
  const nested = join(folder, 'node_modules/prom-client/node_modules');
  await mkdir(nested, { recursive: true });
  await rename(join(folder, 'node_modules/@opentelemetry'), join(nested, '@opentelemetry'));
  return {
    ...{ folder, tarball, files: packed.files.map(({ path }) => path) },
    remove: () => rm(place, { recursive: true, force: true }),
  };
}
