import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packageRoot } from '../package-root.js';

describe('the search for a Chromium', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodelease-chromium-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const find = async () => {
    const { stdout } = await promisify(execFile)(
      '/bin/sh',
      [join(packageRoot, 'test/support/install/install-chromium.sh'), '--find'],
      {
        env: { PATH: folder },
      },
    );
    return stdout.trim();
  };

  it.each(['chromium', 'chromium-browser', 'google-chrome'])(
    'finds %s, as some distribution calls it',
    async (name) => {
      const program = join(folder, name);
      await writeFile(program, '#!/bin/sh\n');
      await chmod(program, 0o755);
      expect(await find()).toBe(program);
    },
  );

  it('fails where there is none', async () => {
    await mkdir(join(folder, 'chromium'));
    await expect(find()).rejects.toThrow();
  });
});
