import { createHash } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * A tree by the paths of its files: their contents, or `-> target` for a symbolic link; a path that ends in a
 * slash is an empty directory.
 */
export type Tree = Readonly<Record<string, string>>;

/** A new folder, to be removed by the caller. */
export function newRoot(at = tmpdir()): string {
  return mkdtempSync(join(at, 'nodelease-data-dir-'));
}

export function removeRoot(root: string): void {
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
}

export function writeTree(at: string, tree: Tree): void {
  for (const [path, content] of Object.entries(tree)) {
    const to = join(at, path);
    mkdirSync(path.endsWith('/') ? to : dirname(to), { recursive: true });
    if (content.startsWith('-> ')) symlinkSync(content.slice(3), to);
    else if (!path.endsWith('/')) writeFileSync(to, content);
  }
}

/** The bytes of the marker as Camunda 8.9 writes them. */
export function camundaMarker(version: number, from: number | null): string {
  return `{"initializedAt":1795351126653,"version":${version},"initializedFrom":${from}}`;
}

/** Makes a version as its maker leaves it: complete, unless `marker` is null. */
export function makeVersion(
  root: string,
  id: number,
  version: number,
  tree: Tree,
  marker: string | null = camundaMarker(version, null),
) {
  const path = join(root, `node-${id}`, `v${version}`);
  mkdirSync(path, { recursive: true });
  writeTree(path, tree);
  if (marker !== null) writeFileSync(join(path, 'directory-initialized.json'), marker);
  return path;
}

/**
 * All that is below a folder, one line each: path, kind, mode, time and content. Two equal ones are equal
 * trees.
 */
export function manifest(at: string): string[] {
  const lines: string[] = [];
  const visit = (path: string) => {
    for (const name of readdirSync(join(at, path)).sort()) {
      const below = join(path, name);
      const full = join(at, below);
      const stats = lstatSync(full);
      const facts = `${below} ${stats.mode.toString(8)}`;
      if (stats.isDirectory()) {
        lines.push(facts);
        visit(below);
      } else if (stats.isSymbolicLink()) lines.push(`${facts} -> ${readlinkSync(full)}`);
      else if (!stats.isFile()) lines.push(facts);
      else
        lines.push(
          `${facts} ${Math.round(stats.mtimeMs)} ${createHash('sha1').update(readFileSync(full)).digest('hex')}`,
        );
    }
  };
  visit('');
  return lines;
}

/**
 * What a version keeps, without its marker and its end, and without times: Node sets those of a copy to a
 * microsecond, which may round to another millisecond.
 */
export function contentOf(version: string): string[] {
  const files = manifest(version).filter((line) => !/^directory-(initialized|ended)\.json /.test(line));
  return files.map((line) => line.replace(/ \d+( [0-9a-f]{40})$/, '$1'));
}
