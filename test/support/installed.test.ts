import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { installed } from './installed.js';

let folder: string;
let shown: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-installed-'));
  vi.stubEnv('XDG_CACHE_HOME', folder);
  shown = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    shown += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const script = (body: string) => {
  const file = join(folder, 'install-thing.sh');
  writeFileSync(file, body);
  return file;
};
const cached = (name: string) => readFileSync(join(folder, 'nodelease-test', name), 'utf8');

describe('an installation of the tests', () => {
  it('shows what it does and how long it took last time, and keeps the output of its tools for a log', async () => {
    const file = script('echo "Building thing." >&2; echo "downloading a" >&2; echo /cache/thing');
    expect(await installed(file, ['3.5'], 'install Go')).toBe('/cache/thing');
    expect(shown).toMatch(/^Building thing\.\nthing-3\.5: installed in \d+ s\.\n$/);
    expect(cached('thing-3.5.log')).toBe('Building thing.\ndownloading a\n');
    writeFileSync(join(folder, 'nodelease-test', 'thing-3.5.seconds'), '173');
    await installed(file, ['3.5'], 'install Go');
    expect(shown).toContain('Building thing. It took 173 s last time.\n');
  });

  it('shows nothing where everything is in its place', async () => {
    expect(await installed(script('echo /cache/thing'), [], 'install Go')).toBe('/cache/thing');
    expect(shown).toBe('');
  });

  it('ends with one line that says what to install, where a download is refused', async () => {
    const failing = installed(
      script('echo "Building thing." >&2; echo "dial tcp: refused" >&2; exit 7'),
      [],
      'install Go, or start Docker',
    );
    await expect(failing).rejects.toThrow(
      /^thing could not be installed \(exit code 7 after \d+ s: dial tcp: refused; all of its output is in .*thing\.log\)\. Install Go, or start Docker\.$/,
    );
  });
});
