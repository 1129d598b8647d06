import { afterEach, describe, expect, it } from 'vitest';
import { killAll, runCli } from '../../../support/processes.js';

afterEach(killAll);

async function call(args: readonly string[], env: Record<string, string> = {}) {
  const command = runCli(args, { env });
  const { code } = await command.exit;
  return { code, answer: command.stdout(), complaints: command.stderr() };
}

describe('a command that is called wrongly', () => {
  it('answers with one line and exit code 64', async () => {
    expect(await call(['init', '--nodes', '0'])).toEqual({
      code: 64,
      answer: '',
      complaints: expect.stringMatching(
        /^nodelease: .*--nodes: expected a whole number from 1 to 65528, got "0" \[CONFIG_INVALID\]\n$/,
      ),
    });
  });

  it.each([
    ['run', '--', 'true'],
    ['serve', '--http', '127.0.0.1:0'],
  ])(
    'does not learn its credentials from what %s answers to a server with some in its URL',
    async (name, ...rest) => {
      const url = 'https://user:HIDDEN@127.0.0.1:1';
      const store = ['--store', 's3://bucket'];
      const answers = await Promise.all([
        call([name, ...store, '--endpoint', url, ...rest]),
        call([name, ...store, ...rest], { NODELEASE_ENDPOINT: url }),
        call([name, `--endpont=${url}`, ...rest]),
      ]);
      for (const { code, answer, complaints } of answers) {
        expect(code).toBe(64);
        expect(complaints).toMatch(
          /^nodelease: .*(?:…@127|\[redacted\]@127|unknown option '--endpont' \(Did you mean --endpoint\?\) \[USAGE\]$)/m,
        );
        expect(answer + complaints).not.toContain('HIDDEN');
      }
    },
  );
});

it.each(['help', 'help run', 'help zk', 'run --help', '--help'])(
  'nodelease %s shows the help, and ends with 0',
  async (words) => {
    expect(await call(words.split(' '))).toEqual({
      code: 0,
      answer: expect.stringMatching(/^Usage: nodelease /),
      complaints: '',
    });
  },
);

describe('a service that no client can use', () => {
  const run = (...options: string[]) =>
    call([
      'run',
      '--store',
      'memory:',
      '--zookeeper',
      '127.0.0.1:1',
      '--service',
      'orders',
      ...options,
      '--',
      'true',
    ]);
  const warning = /the service orders is announced without a port/g;

  it('is announced as it is, and the log says once what is missing', async () => {
    const { code, complaints } = await run();
    expect(complaints.match(warning)).toHaveLength(1);
    expect(code).toBe(0);
    expect((await run('--port', '80')).complaints).not.toMatch(warning);
  });
});

describe('a command whose store cannot be used', () => {
  it('ends with 69 and one line, and a stack trace only for who asks', async () => {
    const args = ['init', '--store', 'file:package.json'];
    const [plain, detailed] = await Promise.all([call(args), call([...args, '--log-level', 'debug'])]);
    expect(plain.code).toBe(69);
    expect(plain.complaints).toMatch(/^nodelease: .*package\.json.*\n$/);
    expect(detailed.complaints).toMatch(/\n {4}at /);
  });
});
