import { afterEach, describe, expect, it } from 'vitest';
import { simulate } from '../../../simulation/simulation.js';
import { harnessFile } from '../../../support/package-root.js';
import { killAll, runProcess } from '../../../support/processes.js';

// The command as `npm run simulate` starts it, on the compiled engine.

afterEach(killAll);

const start = (line: string) =>
  runProcess(process.execPath, [harnessFile('test/simulation/main.ts'), ...line.split(' ')]);

async function run(line: string) {
  const command = start(line);
  const { code } = await command.exit;
  return { code, out: command.stdout(), err: command.stderr() };
}

describe('npm run simulate', () => {
  it('exits with 0 and its report when the engine keeps its promises', async () => {
    const { code, out, err } = await run('--seeds 40 --from 100');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/\nseeds +40\ntenures +[1-9]/);
    expect(out).toMatch(/\nno violation in 40 seeds from 100\n$/);
  });

  it('counts the same with one thread and with three', async () => {
    const [one, three] = await Promise.all(
      [1, 3].map((jobs) => run(`--seeds 30 --from 100 --json --jobs ${jobs}`)),
    );
    const counts = (text = '{}') => {
      const { seeds, tenures, takeOvers, requests, faults } = JSON.parse(text);
      return { seeds, tenures, takeOvers, requests, faults };
    };
    expect(counts(one?.out)).toMatchObject({ seeds: 30, faults: { pause: { times: expect.any(Number) } } });
    expect(counts(three?.out)).toEqual(counts(one?.out));
  });

  it('gives a seed the same history to the byte in every process, compiled or not, whatever runs at the same time', async () => {
    const histories = async (line: string) => {
      const { histories } = JSON.parse((await run(`${line} --history --json`)).out) as {
        histories: { seed: number; lines: string[] }[];
      };
      return histories;
    };
    const [together, alone] = await Promise.all([
      histories('--seeds 12 --from 700 --jobs 2'),
      histories('--seeds 1 --from 704 --jobs 1'),
    ]);
    expect(together.map(({ seed }) => seed)).toEqual(Array.from({ length: 12 }, (_, index) => 700 + index));
    expect(alone).toEqual(together.filter(({ seed }) => seed === 704));
    for (const { seed, lines } of together) {
      const { history } = await simulate(seed, { recording: true });
      expect(lines.join('\n')).toBe(history.join('\n'));
    }
  });

  it('finds a planted bug, exits with 1, and shows the same shortest history again when it is replayed', async () => {
    const first = await run('--seeds 5000 --from 1 --plant delete-on-release');
    expect(first.code).toBe(1);
    expect(first.out).toMatch(/\nVIOLATION in seed \d+, [\d.]+ s: objects\n/);
    const [, kept, all] = /it still happens with (\d+) of (\d+) hosts/.exec(first.out) ?? [];
    expect(Number(kept)).toBeLessThan(Number(all));
    const story = (text: string) =>
      text.slice(text.indexOf('VIOLATION in seed')).replace(/\(\d+ more in seeds[^\n]*\n/, '');
    expect(story(first.out)).toMatch(/s {2}VIOLATION {2}objects: /);
    const [, replay = ''] = /npm run simulate -- (.*)\n$/.exec(first.out) ?? [];
    const second = await run(replay);
    expect(second.code).toBe(1);
    expect(story(second.out)).toBe(story(first.out));
  });

  it('reports so far on Ctrl-C, and exits with 130', async () => {
    const command = start('--seconds 100 --from 3');
    await command.waitForOutput(/^seeds for 100 s from 3 /);
    // A seed takes some hundredths of a second.
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    command.kill('SIGINT');
    expect(await command.exit).toEqual({ code: 130, signal: null });
    expect(command.stdout()).toMatch(/\nseeds +[1-9][\d,]*\n/);
    expect(command.stdout()).toContain('interrupted');
  });

  it('answers a wrong call with one line and exit code 64', async () => {
    const { code, out, err } = await run('--seeds many');
    expect({ code, out }).toEqual({ code: 64, out: '' });
    expect(err).toMatch(/^simulate: .*--seeds.*got "many"\n$/);
  });

  it('stops without a complaint when its reader has gone', async () => {
    const main = harnessFile('test/simulation/main.ts');
    const piped = runProcess('sh', [
      '-c',
      `"${process.execPath}" "${main}" --seeds 20 --from 1 --history | head -1`,
    ]);
    await piped.exit;
    expect(piped.stdout()).toMatch(/^20 seeds from 1 [^\n]*\n$/);
    expect(piped.stderr()).toBe('');
  });
});
