import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { costReport } from '../src/app/cli/doctor/diagnosis.js';
import { S3_STANDARD_PRICES } from '../src/core/lease/session/renewal-cost.js';
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

/** A page without its blocks and spans of code. */
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
    '%s has no dead link',
    (_, file) => {
      expect(deadLinks(file, pages.get(file) ?? '')).toEqual([]);
    },
  );

  it('has no comment after a command that a reader copies: to an interactive zsh it is arguments', () => {
    const commented = [...pages].flatMap(([file, text]) =>
      [...text.matchAll(/^```(?:console.*|sh)\n(?!#!)([\s\S]*?)^```$/gm)]
        .flatMap(([, block = '']) => block.split('\n'))
        .filter((line) => / # /.test(line.replace(/'[^']*'|"[^"]*"/g, '')))
        .map((line) => `${relative(packageRoot, file)}: ${line}`),
    );
    expect(commented).toEqual([]);
  });

  it('answers in a README of 800 words at most what it is, how to start and whether to trust it', () => {
    expect(pages.get(join(packageRoot, 'README.md'))?.match(/\S+/g)?.length).toBeLessThanOrEqual(800);
  });

  it('maps in CONTRIBUTING every room of src, within 15 KB and with cells that can be read', () => {
    const text = pages.get(join(packageRoot, 'CONTRIBUTING.md')) ?? '';
    const map = text.slice(text.indexOf('## The map'), text.indexOf('Outside `src`'));
    const rooms = ['core', 'zookeeper', 'node', 'app'].flatMap((wing) =>
      readdirSync(join(packageRoot, 'src', wing)).filter((name) => !name.includes('.')),
    );
    expect(rooms.length).toBeGreaterThan(20);
    expect(rooms.filter((room) => !map.includes(`\`${room}\``))).toEqual([]);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(15 * 1024);
    const cells = text.split('\n').flatMap((line) => (line.startsWith('|') ? line.split(' | ') : []));
    expect(cells.filter((cell) => cell.length > 200)).toEqual([]);
  });

  it('lists all entry points of the package', () => {
    const { exports } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>;
    };
    const library = pages.get(join(packageRoot, 'docs/guides/library.md')) ?? '';
    const table = library.slice(library.indexOf('## Entry points'));
    const names = Object.keys(exports).filter((name) => name !== './package.json');
    const missing = names.filter(
      (name) => !table.includes(`\`nodelease${name.slice(1)}\``) && !table.includes(`\`${name.slice(1)}\``),
    );
    expect(missing).toEqual([]);
  });

  describe('on what it costs', () => {
    const DURATIONS = { '5s': 5_000, '15s': 15_000, '60s': 60_000, '5m': 300_000 };
    const RARELY_MS = 600_000;
    const costOf = (size: number, durationMs: number, settingsIntervalMs?: number) =>
      costReport({ size, durationMs }, { settingsIntervalMs });
    const written = (dollars: number) =>
      dollars.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    const COSTS = 'docs/operate/costs.md';
    const text = (page: string) => pages.get(join(packageRoot, page)) ?? '';
    /** The cells of all rows of a page that begin with one of these. */
    const rows = (page: string, first: readonly string[]) =>
      [...text(page).matchAll(/^\| (.*) \|$/gm)]
        .map(([, row = '']) => row.replaceAll('**', '').split(' | '))
        .filter(([name = '']) => first.includes(name));

    it('says of a lease on each cloud what the formula says', () => {
      const stores = ['s3://BUCKET/prefix', 'azblob://ACCOUNT/CONTAINER/prefix', 'gs://BUCKET/prefix'].map(
        (url) => `\`${url}\``,
      );
      const price = `$${written(costOf(1, 15_000).dollarsPerMonth)}`;
      expect(rows('docs/guides/stores.md', stores).map(([, dollars]) => dollars)).toEqual([
        price,
        price,
        price,
      ]);
    });

    it('says of one lease what the formula says', () => {
      const expected = Object.entries(DURATIONS).map(([name, durationMs]) => {
        const { putsPerMonth, getsPerMonth, dollarsPerMonth } = costOf(1, durationMs);
        expect(getsPerMonth).toBe(putsPerMonth);
        const rarely = costOf(1, durationMs, RARELY_MS).dollarsPerMonth;
        return [name, putsPerMonth.toLocaleString('en-US'), written(dollarsPerMonth), written(rarely)];
      });
      expect(rows(COSTS, Object.keys(DURATIONS)).map((cells) => cells.slice(0, 4))).toEqual(expected);
      const [short, long] = [15_000, 60_000].map(
        (durationMs) => `$${written(costOf(1, durationMs).dollarsPerMonth)}`,
      );
      expect(text('README.md')).toContain(
        `costs ${short} a month at the default duration of 15 s, and ${long} at 60 s`,
      );
      expect(text('docs/operate/operations.md')).toContain(
        `a held lease of 15 s costs ${short} a month, one of 60 s ${long}`,
      );
    });

    it('says of clusters and of waiting tasks what the formula says', () => {
      const sizes = [1, 10, 100, 1_000, 10_000];
      const expected = sizes.map((nodes) => [
        nodes.toLocaleString('en-US'),
        ...Object.values(DURATIONS).map((durationMs) => {
          const rarely = costOf(nodes, durationMs, RARELY_MS).dollarsPerMonth;
          return `${written(costOf(nodes, durationMs).dollarsPerMonth)} (${written(rarely)})`;
        }),
      ]);
      const names = expected.map(([name = '']) => name);
      expect(rows(COSTS, names)).toEqual(expected);
      // After a long wait a scan every third of the duration.
      const month = (((30 * 86_400_000) / 5_000) * S3_STANDARD_PRICES.put) / 1_000;
      const [one] = rows(COSTS, ['one waiting task, at 15 s']);
      expect(one?.at(-1)).toBe(`${(month / 720).toFixed(3)} an hour, ${written(month)} a month`);
      const [hundred] = rows(COSTS, ['100 waiting tasks, at 15 s']);
      expect(hundred?.at(-1)).toBe(
        `${((100 * month) / 720).toFixed(2)} an hour, ${(100 * month).toFixed(0)} a month`,
      );
    });
  });

  it('quotes in the failure table only what the program really says', () => {
    const table = pages.get(join(packageRoot, 'docs/operate/failure-table.md')) ?? '';
    // The first cell of a row, or what is before the cause in a list.
    const quoted = [...table.matchAll(/^(?:\| (.*?) \||\* ((?:`[^`]+`|[^`:])*):)/gm)].flatMap(
      ([, cell, item]) => [...(cell ?? item ?? '').matchAll(/`([^`]+)`/g)].map(([, text = '']) => text),
    );
    // The sources have its messages in pieces, with values between them, and no messages of the system
    // (ECONNREFUSED).
    const sources = filesBelow(join(packageRoot, 'src'), '.ts')
      .filter((file) => !file.endsWith('.test.ts'))
      .map((file) => readFileSync(file, 'utf8').replace(/' \+\n\s*['`]|` \+\n\s*['`]/g, ''))
      .join('\n');
    const pieces = quoted
      .flatMap((text) => text.split('…').map((piece) => piece.trim()))
      .filter((piece) => piece !== '');
    expect(pieces.length).toBeGreaterThan(100);
    const system = ['connect ECONNREFUSED', 'nodelease health', 'lease-guard'];
    expect(pieces.filter((piece) => !system.includes(piece) && !sources.includes(piece))).toEqual([]);
  });
});

describe('the notes of a release', () => {
  const notes = (version: string) =>
    spawnSync('sh', [join(packageRoot, '.github', 'release-notes.sh'), version], { encoding: 'utf8' });
  const { version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
    version: string;
  };

  it('are refused for a version that the package does not have, or the changelog', () => {
    expect(notes('99.0.0')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: `package.json has version ${version}, not 99.0.0\n`,
    });
    const changelog = pages.get(join(packageRoot, 'CHANGELOG.md')) ?? '';
    const section = new RegExp(`^## \\[${version}\\].*\\n([^]*?)(?=^## \\[|(?![^]))`, 'm').exec(
      changelog,
    )?.[1];
    const { status, stdout } = notes(version);
    expect([status, stdout.trim()]).toEqual(section === undefined ? [1, ''] : [0, section.trim()]);
  });
});
