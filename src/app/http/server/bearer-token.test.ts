import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HttpProblem } from '../problem.js';
import { BearerTokenFile } from './access.js';

const TOKEN = 'c2VjcmV0LXRva2VuLW9mLXRlc3Rz';
let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-token-'));
  path = join(folder, 'token');
});

afterEach(() => rm(folder, { recursive: true }));

describe('a token in a file', () => {
  it('admits the token and nothing else', async () => {
    await writeFile(path, `${TOKEN}\n`);
    const token = await BearerTokenFile.open(path, '--bearer-token-file');
    expect(await token.admits(TOKEN)).toBe(true);
    for (const wrong of ['', TOKEN.slice(1), `${TOKEN}x`, TOKEN.toLowerCase(), `${TOKEN}\n`])
      expect(await token.admits(wrong)).toBe(false);
  });

  it('is another one from the moment that the file is', async () => {
    await writeFile(path, TOKEN);
    const token = await BearerTokenFile.open(path, '--bearer-token-file');
    await writeFile(path, 'another-token-of-tests');
    expect(await token.admits(TOKEN)).toBe(false);
    expect(await token.admits('another-token-of-tests')).toBe(true);
  });

  it('lets no client in while the file is empty, damaged, or gone', async () => {
    await writeFile(path, TOKEN);
    const token = await BearerTokenFile.open(path, '--bearer-token-file');
    for (const text of ['', '\n', 'short', `${TOKEN} ${TOKEN}`]) {
      await writeFile(path, text);
      for (const given of [TOKEN, text.trim()])
        await expect(token.admits(given)).rejects.toMatchObject({ error: 'unavailable' });
    }
    await rm(path);
    await expect(token.admits(TOKEN)).rejects.toThrow(HttpProblem);
  });

  it('keeps no client waiting when a pipe has come in place of the file, at the start or later', async () => {
    await writeFile(path, TOKEN);
    const token = await BearerTokenFile.open(path, '--bearer-token-file');
    await rm(path);
    execFileSync('mkfifo', [path]);
    await expect(token.admits(TOKEN)).rejects.toMatchObject({ error: 'unavailable' });
    await expect(BearerTokenFile.open(path, '--bearer-token-file')).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    });
  });

  it.each([
    ['', 'it is empty'],
    [' \n', 'it is empty'],
    [`${TOKEN}\n${TOKEN}\n`, 'it holds more than one word'],
    ['fifteen-letters', 'its token is too short, too long, or has other characters'],
    ['a'.repeat(1_025), 'its token is too short'],
    ['a'.repeat(1_000_000), 'file of more than 4096 bytes'],
    ['schlüssel-schlüssel', 'its token is too short'],
    [`\u0000${TOKEN}`, 'its token is too short'],
  ])(
    'refuses a file with %j at the start, naming the setting, and never the token',
    async (text, problem) => {
      await writeFile(path, text);
      const error = await BearerTokenFile.open(path, '--bearer-token-file').catch((thrown: Error) => thrown);
      expect(error).toMatchObject({
        code: 'CONFIG_INVALID',
        message: expect.stringContaining(`--bearer-token-file: expected a file that holds one token`),
      });
      expect(String(error)).toContain(problem);
      expect(String(error)).not.toContain(TOKEN);
    },
  );

  it.each(['absent', '.'])('refuses what cannot be read: %s', async (name) => {
    await expect(BearerTokenFile.open(join(folder, name), '--bearer-token-file')).rejects.toThrow(
      'it cannot be read',
    );
  });
});
