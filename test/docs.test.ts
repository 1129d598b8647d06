import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from './support/package-root.js';

const HIDDEN = new Set(['node_modules', 'dist', 'html', 'cdk.out', '.git', '.harness', '.nodelease']);

function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (HIDDEN.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(path, ending);
    return entry.name.endsWith(ending) ? [path] : [];
  });
}

const pages = new Map(filesBelow(packageRoot, '.md').map((file) => [file, readFileSync(file, 'utf8')]));

/** A page without what stands in blocks and spans of code. */
const prose = (text: string) => text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ +(.*)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  );
}

function deadLinks(file: string, text: string): string[] {
  return [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [path = '', anchor] = target.split('#');
    const page = path === '' ? file : join(dirname(file), path);
    if (!existsSync(page)) return [target];
    const linked = pages.get(page);
    return anchor !== undefined && linked !== undefined && !anchorsOf(linked).has(anchor) ? [target] : [];
  });
}

describe('the documentation', () => {
  it.each([...pages.keys()].map((file) => [relative(packageRoot, file), file] as const))(
    '%s leads nowhere that is not there',
    (_, file) => {
      expect(deadLinks(file, pages.get(file) ?? '')).toEqual([]);
    },
  );

  it('quotes in the failure table only what the program really says', () => {
    const guide = pages.get(join(packageRoot, 'docs/operations.md')) ?? '';
    const table = guide.slice(guide.indexOf('## Failure table'), guide.indexOf('### Exit codes'));
    const quoted = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text),
    );
    // What it says stands in the sources in pieces, with values between them; what the system says (ECONNREFUSED) does not stand there at all.
    const sources = filesBelow(join(packageRoot, 'src'), '.ts')
      .filter((file) => !file.endsWith('.test.ts'))
      .map((file) => readFileSync(file, 'utf8').replace(/' \+\n\s*['`]|` \+\n\s*['`]/g, ''))
      .join('\n');
    const pieces = quoted.flatMap((text) => text.split('…').map((piece) => piece.trim())).filter((piece) => piece !== '');
    expect(pieces.length).toBeGreaterThan(30);
    const system = ['connect ECONNREFUSED', 'nodelease health', 'lease-guard'];
    expect(pieces.filter((piece) => !system.includes(piece) && !sources.includes(piece))).toEqual([]);
  });
});
