import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runInProcess } from '../../../support/in-process.js';
import { installed } from '../../../support/installed.js';

const run = promisify(execFile);

let folder: string;
let zsh: string;
let fish: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-test-'));
  const paths = await installed('install-shells.sh', [], 'put zsh and fish on the PATH');
  [zsh = '', fish = ''] = paths.split('\n');
  for (const shell of ['zsh', 'fish'])
    await writeFile(join(folder, shell), (await runInProcess(['completion', shell])).answer);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('nodelease completion', () => {
  it('has fish offer commands, options with their meaning, and values that are names', async () => {
    const offered = async (line: string) => {
      const { stdout } = await run(fish, [
        '-c',
        'source $argv[1]; complete -C $argv[2]',
        join(folder, 'fish'),
        line,
      ]);
      return stdout.trim().split('\n');
    };
    expect(await offered('nodelease rel')).toEqual(['release\ttake a node id away from its holder']);
    expect(await offered('nodelease zk ba')).toEqual([expect.stringMatching(/^barrier\t/)]);
    expect(await offered('nodelease zk barrier w')).toEqual([expect.stringMatching(/^wait\t/)]);
    expect(await offered('nodelease run --log-f')).toEqual([
      '--log-format\thow log lines look; pretty is for people',
    ]);
    expect((await offered('nodelease run --log-format ')).map((line) => line.split('\t')[0])).toEqual([
      'json',
      'pretty',
    ]);
    expect(await offered('nodelease run --service run --nod')).toHaveLength(2);
    expect(await offered('nodelease run -- --log-f')).toEqual(['']);
  });

  it.each([
    ['nodelease rel', 'nodelease release'],
    ['nodelease zk barrier w', 'nodelease zk barrier wait'],
    ['nodelease run --log-format j', 'nodelease run --log-format json'],
  ])('has zsh complete %j on its terminal', async (typed, completed) => {
    // The echo of what is typed has the completed words only if they were completed.
    const script = [
      'zmodload zsh/zpty',
      'zpty shell $1 -f -i',
      'zpty -w shell "PROMPT=; HOME=$3; autoload -Uz compinit; compinit -u; source $2; print ready"\'-now\'',
      "zpty -r -m shell answer '*ready-now*'",
      'zpty -w -n shell "$4"$\'\\t\'',
      'zpty -r -m shell answer "*$5*"',
      'zpty -d shell',
    ];
    const paths = [zsh, join(folder, 'zsh'), folder];
    const done = run(zsh, ['-f', '-c', script.join(' && '), 'zsh', ...paths, typed, completed], {
      timeout: 60_000,
    });
    await expect(done).resolves.toBeDefined();
  });
});
