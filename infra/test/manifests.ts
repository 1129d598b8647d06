import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

const require = createRequire(import.meta.url);
const infra = fileURLToPath(new URL('..', import.meta.url));
const folder = join(infra, 'kubernetes');

/** An object of a manifest: what every kind has. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/**
 * The objects of every file in `infra/kubernetes`, by the names of the files.
 * @throws Error for what is not YAML, a key that stands there twice included
 */
export async function readManifests(): Promise<ReadonlyMap<string, readonly Manifest[]>> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.yaml'));
  return new Map(
    await Promise.all(
      files.map(async (file) => [file, parseManifests(await readFile(join(folder, file), 'utf8'))] as const),
    ),
  );
}

/** @throws Error for what is not YAML, a key that stands there twice included */
export function parseManifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text).map((document) => {
    if (document.errors[0]) throw document.errors[0];
    return document.toJS() as Manifest;
  });
}

/**
 * Where the types and schemas of a kind are, as generated from the API of Kubernetes and from the definitions
 * of the Prometheus operator.
 */
function modelOf({ apiVersion, kind }: Manifest): string {
  const models = apiVersion.startsWith('monitoring.coreos.com/')
    ? '@kubernetes-models/prometheus-operator'
    : 'kubernetes-models';
  return `${models}/${apiVersion}/${kind}`;
}

/**
 * What the schema of its kind has to say against an object: missing fields, wrong types and values. Undefined
 * when nothing.
 */
export function schemaFault(manifest: Manifest): string | undefined {
  const model = require(modelOf(manifest)) as Readonly<
    Record<string, new (data: Manifest) => { validate(): void }>
  >;
  const Kind = model[manifest.kind];
  if (Kind === undefined) return `${manifest.apiVersion} has no kind ${manifest.kind}`;
  try {
    new Kind(manifest).validate();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * What the types of their kinds have to say against objects, above all of fields that they do not have: the
 * schemas let those pass. Every object is written down as a literal, of which the compiler takes no unknown
 * property. Resolves to the compiler's messages.
 */
export async function typeFaults(manifests: readonly Manifest[]): Promise<readonly string[]> {
  // In there, so that the models are found.
  const work = await mkdtemp(join(infra, 'node_modules', '.manifests-'));
  try {
    const lines = manifests.map((manifest, index) => {
      const { kind, metadata } = manifest;
      return `import type { I${kind} as Kind${index} } from '${modelOf(manifest)}';\n/* ${metadata.name} */ export const object${index}: Kind${index} = ${JSON.stringify(manifest)};`;
    });
    const file = join(work, 'manifests.ts');
    await writeFile(file, lines.join('\n'));
    const compiler = join(infra, 'node_modules', '.bin', 'tsc');
    const settings = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--ignoreConfig',
      '--module',
      'nodenext',
      '--types',
      '',
      '--pretty',
      'false',
    ];
    const output = await new Promise<string>((resolve, reject) => {
      execFile(compiler, [...settings, file], { cwd: work }, (error, stdout, stderr) => {
        if (error === null || (typeof error.code === 'number' && stdout.includes(basename(file))))
          resolve(stdout);
        else reject(new Error(`the compiler failed: ${stdout}${stderr}`, { cause: error }));
      });
    });
    return output.split('\n').filter((line) => line !== '');
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
