import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lookUpCommand } from './command-lookup.js';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-lookup-'));
  mkdirSync(join(folder, 'a/tool'), { recursive: true });
  mkdirSync(join(folder, 'b'));
  writeFileSync(join(folder, 'b/tool'), '');
  chmodSync(join(folder, 'b/tool'), 0o755);
  writeFileSync(join(folder, 'b/data'), '');
  chmodSync(join(folder, 'b/data'), 0o644);
});

afterAll(() => rmSync(folder, { recursive: true }));

describe('looking up a command', () => {
  it('finds the first file on PATH that can be executed, past folders of that name', () => {
    expect(lookUpCommand('tool', `${folder}/a:${folder}/b`)).toBe('executable');
  });

  it('distinguishes what exists but cannot be executed from what does not exist', () => {
    expect(lookUpCommand('data', `${folder}/a:${folder}/b`)).toBe('not-executable');
    expect(lookUpCommand('nothing', `${folder}/a:${folder}/b`)).toBe('not-found');
    expect(lookUpCommand('tool', undefined)).toBe('not-found');
    expect(lookUpCommand('', `${folder}/a`)).toBe('not-found');
  });

  it('does not search PATH for a name with a slash', () => {
    expect(lookUpCommand(`${folder}/b/tool`, '')).toBe('executable');
    expect(lookUpCommand(`${folder}/b/data`, '')).toBe('not-executable');
    expect(lookUpCommand(`${folder}/b`, '')).toBe('not-executable');
    expect(lookUpCommand('./tool', `${folder}/b`)).toBe('not-found');
  });
});
