import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { packageRoot } from './support/package-root.js';

const folder = mkdtempSync(join(tmpdir(), 'nodelease-api-docs-'));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the API documentation', () => {
  it('is made without a complaint, so every export is documented and every link leads somewhere, for each way into the package', async () => {
    const json = join(folder, 'api.json');
    const out = join(folder, 'html');
    await promisify(execFile)(process.execPath, ['docs/make.js', 'api', '--out', out, '--json', json], {
      cwd: packageRoot,
    });
    const { exports } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>;
    };
    const ways = Object.keys(exports)
      .filter((path) => path !== './package.json')
      .map((path) => path.replace('.', 'nodelease'));
    const { children } = JSON.parse(readFileSync(json, 'utf8')) as {
      children: { name: string; children: unknown[] }[];
    };
    expect(children.map(({ name }) => name).sort()).toEqual(ways.sort());
    for (const { children: exported } of children) expect(exported.length).toBeGreaterThan(0);
    for (const page of ['index.html', 'functions/nodelease.acquire.html'])
      expect(existsSync(join(out, page)), page).toBe(true);
  });
});
