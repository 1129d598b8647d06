import { describe, expect, it } from 'vitest';
import { runCli } from '../../support/processes.js';

async function call(args: readonly string[], env: Record<string, string> = {}) {
  const command = runCli(args, { env });
  const { code } = await command.exit;
  return { code, answer: command.stdout(), complaints: command.stderr() };
}

describe('a command that is called wrongly', () => {
  it.each<[string, string[], RegExp]>([
    ['init with --nodes 0', ['init', '--nodes', '0'], /--nodes: expected a whole number from 1 to 65528, got "0"/],
    ['init with --duration 10ms', ['init', '--duration', '10ms'], /--duration: expected at least 1s/],
    ['init with --above-version alone', ['init', '--above-version', '3'], /--above-version is of use with --repair only/],
    ['init with a bad --above-version', ['init', '--repair', '--above-version', 'x'], /--above-version: expected a whole number .*got "x"/],
    ['status with an unknown option', ['status', '--verbose'], /unknown option '--verbose'/],
    ['status with an option of another command', ['status', '--nodes', '3'], /unknown option '--nodes'/],
    ['status with a malformed store', ['status', '--store', 's3:/bucket'], /--store: expected .*got "s3:\/bucket"/],
    ['status with an argument', ['status', '3'], /too many arguments/],
    ['release without --force', ['release', '3'], /node id 3 .*next renewal.*not a way to stop a task.*--force/],
    ['release without an id', ['release', '--force'], /missing required argument 'id'/],
    ['release of something else than an id', ['release', 'x', '--force'], /node id: expected a whole number from 0 to 65527, got "x"/],
    [
      'doctor with an endpoint for a folder',
      ['doctor', '--store', 'file:x', '--endpoint', 'http://127.0.0.1:1'],
      /--endpoint: expected no endpoint/,
    ],
    [
      'doctor with a server without http://',
      ['doctor', '--store', 's3://bucket', '--endpoint', 'minio:9000'],
      /--endpoint: expected an http/,
    ],
    [
      'run with a server without http://',
      ['run', '--zookeeper', 'zk', '--endpoint', 'minio.test', '--', 'true'],
      /--endpoint: expected an http/,
    ],
    ['demo with an unknown option', ['demo', '--twice'], /unknown option '--twice'/],
  ])('answers %s with one line and exit code 64', async (_, args, line) => {
    const { code, answer, complaints } = await call(args);
    expect(complaints).toMatch(new RegExp(`^nodelease: .*${line.source}.*\n$`));
    expect({ code, answer }).toEqual({ code: 64, answer: '' });
  });

  it.each([
    'run -- true',
    'serve --http 127.0.0.1:0',
    'init',
    'status',
    'scale 3',
    'release 0 --force',
    'doctor',
    'console --http 127.0.0.1:0',
    'id',
  ])('does not learn its credentials from what %s answers to a server with some in its URL', async (line) => {
    const [name = '', ...rest] = line.split(' ');
    const url = 'https://user:HIDDEN@127.0.0.1:1';
    const store = ['--store', 's3://bucket'];
    const answers = [
      await call([name, ...store, '--endpoint', url, ...rest]),
      await call([name, ...store, ...rest], { NODELEASE_ENDPOINT: url }),
      await call([name, `--endpont=${url}`, ...rest]),
    ];
    for (const { code, answer, complaints } of answers) {
      expect(code).toBe(64);
      expect(complaints).toMatch(/^nodelease: .*…@127|\[redacted\]@127/m);
      expect(answer + complaints).not.toContain('HIDDEN');
    }
  });

  it('is not one for variables that are another command’s business', async () => {
    const env = { NODELEASE_NODES: 'many', NODELEASE_TASK_ID: ' ', NODELEASE_NODE_ID: '3', NODELEASE_STORE: 'memory:' };
    expect(await call(['status'], env)).toMatchObject({ code: 0, complaints: '' });
  });
});

describe('a service that no client can use', () => {
  const run = (...options: string[]) =>
    call(['run', '--store', 'memory:', '--zookeeper', '127.0.0.1:1', '--service', 'orders', ...options, '--', 'true']);
  const warning = /the service orders is announced without a port/g;

  it('is announced as it is, and the log says once what is missing', async () => {
    const { code, complaints } = await run();
    expect(complaints.match(warning)).toHaveLength(1);
    expect(code).toBe(0);
    expect((await run('--port', '80')).complaints).not.toMatch(warning);
  });
});

describe('a command whose store cannot be used', () => {
  it.each(['init', 'status', 'status --watch', 'release 0 --force', 'doctor'])(
    '%s ends with 69 and one line, and a stack trace only for who asks',
    async (line) => {
      const args = [...line.split(' '), '--store', 'file:package.json'];
      const { code, complaints } = await call(args);
      expect(code).toBe(69);
      expect(complaints).toMatch(/^nodelease: .*package\.json.*\n$/);
      const detailed = await call([...args, '--log-level', 'debug']);
      // The failures of the store are what a doctor looks for: they are findings, not its own.
      if (line !== 'doctor') expect(detailed.complaints).toMatch(/\n {4}at /);
    },
  );
});
