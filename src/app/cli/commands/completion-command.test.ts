import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { runInProcess } from '../../../../test/support/in-process.js';
import { optionsOf } from '../../kit/command-row.js';
import { COMMANDS } from './commands.js';

describe('nodelease completion bash', () => {
  let script: string;
  beforeAll(async () => {
    script = (await runInProcess(['completion', 'bash'])).answer;
  });

  /** What bash offers for each line, whose last word is the one to complete. */
  async function offered(...lines: string[]): Promise<string[][]> {
    const calls = lines.map((line) => {
      const words = ['nodelease', ...line.split(' ')].map((word) => `'${word}'`);
      return `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); _nodelease; echo "\${COMPREPLY[*]}"`;
    });
    const { stdout } = await promisify(execFile)('bash', ['-c', [script, ...calls].join('\n')]);
    return stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split(' ').filter((word) => word !== ''));
  }

  it('offers every command and every option of the table', async () => {
    const given = await offered(...COMMANDS.map(({ name }) => `${name} --`));
    expect(given).toEqual(
      COMMANDS.map((row) => [...optionsOf(row).map(([flags]) => /--[\w-]+/.exec(flags)?.[0]), '--help']),
    );
    const siblings = await offered(...COMMANDS.map(({ name }) => name.replace(/[^ ]*$/, '')));
    for (const [at, { name }] of COMMANDS.entries()) expect(siblings[at]).toContain(name.split(' ').at(-1));
  });

  it('offers what begins as the word does, values where they are names, and else files, as for the command that is run', async () => {
    expect(
      await offered(
        'rel',
        'zk ba',
        'zk barrier w',
        'run --log-f',
        'run --log-format j',
        'id --format ',
        'config export --format ',
        'decode 3 --layout ',
        'run --nodes 3 --cluster ',
        'run --config-snapshot ',
        'run --service run --no',
        'run -- --no',
        'no-such-command ',
      ),
    ).toEqual([
      ['release'],
      ['barrier'],
      ['wait'],
      ['--log-format'],
      ['json'],
      ['decimal', 'base32', 'hex'],
      ['properties', 'json', 'env'],
      ['cluster16', 'snowflake'],
      ['any', 'existing'],
      [],
      ['--nodes', '--node-id'],
      [],
      expect.arrayContaining(['run', 'status']),
    ]);
  });
});
