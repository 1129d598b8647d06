import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { ALL_PLANTS } from './all-plants.js';
import { type Exhibit, MUSEUM } from './museum.js';
import { MUSEUM_PLANTS } from './museum-plants.js';

const page = (name: string) => readFileSync(join(packageRoot, 'docs/design', name), 'utf8');

/** `https://github.com/denoland/celld/issues/132` is celld#132. */
const linked = (link: string) => {
  const [, project, number] = /\/([^/]+)\/(?:issues|pull)\/(\d+)$/.exec(link) ?? [];
  return `[${project}#${number}](${link})`;
};

function row({ links, there, plant, here, foundBy, seed }: Exhibit): string {
  const cells = [links.map(linked).join(', '), there, `\`${plant}\`: ${here}`, foundBy, seed];
  return `| ${cells.join(' | ')} |`;
}

describe('the museum of bugs of other projects', () => {
  it('shows on its page what the simulator has', () => {
    const rows = page('museum.md').match(/^\| \[.*$/gm);
    expect(rows).toEqual(MUSEUM.map(row));
  });

  it('has each of its planted bugs on show, and each within 5,000 seeds', () => {
    const shown = MUSEUM.map(({ plant }) => plant);
    expect(MUSEUM_PLANTS.map(({ name }) => name).filter((name) => !shown.includes(name))).toEqual([]);
    const known = [...ALL_PLANTS, ...MUSEUM_PLANTS].map(({ name }) => name);
    expect(new Set(known).size).toBe(known.length);
    expect(shown.filter((name) => !known.includes(name))).toEqual([]);
    expect(MUSEUM.filter(({ seed }) => !(seed < 5_000))).toEqual([]);
  });

  it('gives the seed of a planted bug that the engine has anyway as its own table does', () => {
    const own = new Set(MUSEUM_PLANTS.map(({ name }) => name));
    const others = MUSEUM.filter(({ plant }) => !own.has(plant));
    const table = page('simulation.md');
    const wrong = others.filter(
      ({ plant, foundBy, seed }) =>
        !table.match(new RegExp(`^\\| \`${plant}\` \\| .* \\| ${foundBy} \\| ${seed} \\|$`, 'm')),
    );
    expect(wrong).toEqual([]);
  });
});
