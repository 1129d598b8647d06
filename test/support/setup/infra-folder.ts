import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

// CDK writes each app that is synthesised into a new temporary folder, and leaves it there.
const { TMPDIR } = process.env;
const folder = mkdtempSync(join(tmpdir(), 'nodelease-infra-'));
process.env.TMPDIR = folder;

afterAll(() => {
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  rmSync(folder, { recursive: true, force: true });
});
