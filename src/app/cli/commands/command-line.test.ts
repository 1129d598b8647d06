import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { systemClock, systemRandom } from '../../../core/base/system.js';
import { optionsOf } from '../../kit/command-row.js';
import type { Io } from '../../kit/io.js';
import { runCommandLine } from './command-line.js';
import { COMMANDS } from './commands.js';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** A call of every command. */
const CALLS = COMMANDS.map(({ name, arguments: words = [], runs }) => {
  const args = [...name.split(' '), ...words.map(() => '3')];
  return [name, args, runs ? ['--', 'true'] : []] as const;
});
const settingsOf = (command: string): readonly string[] =>
  COMMANDS.find(({ name }) => name === command)?.settings ?? [];

async function run(args: string[], env: Record<string, string> = {}, own: Partial<Io> = {}) {
  const io = capturedIo();
  const code = await runCommandLine(args, { ...io, ...own, env }, '1.2.3');
  return { code, stdout: io.answer(), stderr: io.complaints() };
}

describe('the command line', () => {
  it.each<[string, string[], RegExp]>([
    ['an unknown command', ['walk'], /unknown command 'walk'/],
    ['the help of an unknown command', ['help', 'walk'], /unknown command 'walk'/],
    ['an unknown option', ['run', '--wait', '--', 'true'], /unknown option '--wait'/],
    [
      'an unknown option before the command',
      ['--wait', 'run', '--', 'true'],
      /unknown option '--wait': options follow the command/,
    ],
    ['an option without its value', ['run', '--nodes'], /--nodes needs a value/],
    ['a short option without its value', ['id', '-n'], /--count needs a value/],
    [
      'an option in place of a value',
      ['run', '--store', '--nodes', '5', '--', 'true'],
      /--store needs a value, and is followed by --nodes/,
    ],
    [
      'an option with its own value in place of a value',
      ['id', '--store', '--etcd-auth=root:secret'],
      /--store needs a value, and is followed by --etcd-auth(?!=)/,
    ],
    ['a short option in place of a value', ['id', '--store', '-n', '5'], /--store needs a value/],
    ['-- after a group', ['zk', '--'], /no command given: see nodelease zk --help/],
    ['-- in front of the command', ['--', 'status'], /no command before --/],
    ['-- within the name of the command', ['zk', '--', 'lock'], /no command before --/],
    ['no command after --', ['run', '--store', 'memory:', '--'], /no command given: expected one after --/],
    ['no --', ['run', '--store', 'memory:'], /no command given: expected one after --/],
    ['a command without --', ['run', 'true'], /too many arguments/],
    [
      '--nodes 0',
      ['run', '--nodes', '0', '--', 'true'],
      /--nodes: expected a whole number from 1 to 65528, got "0"/,
    ],
    [
      '--duration 10ms',
      ['run', '--duration', '10ms', '--', 'true'],
      /--duration: expected at least 1s .*, got "10ms"/,
    ],
    [
      'a line end of Windows in an option of the command itself',
      ['serve', '--store', 'memory:', '--wait-file', '/shared/node-id\r'],
      /--wait-file: expected no carriage return/,
    ],
    [
      'a blank at the end of a path of ZooKeeper',
      ['zk', 'lock', '/locks/a ', '--zookeeper', '127.0.0.1:1', '--', 'true'],
      /path: expected no blank at its start or end/,
    ],
    [
      'a malformed store URL',
      ['run', '--store', 's3:/bucket', '--', 'true'],
      /--store: expected .*, got "s3:\/bucket"/,
    ],
    [
      'init with --nodes 0',
      ['init', '--nodes', '0'],
      /--nodes: expected a whole number from 1 to 65528, got "0"/,
    ],
    ['init with --duration 10ms', ['init', '--duration', '10ms'], /--duration: expected at least 1s/],
    [
      'init with --above-version alone',
      ['init', '--above-version', '3'],
      /--above-version is of use with --repair only/,
    ],
    ...['init', 'scale 4', 'id'].map((line): [string, string[], RegExp] => {
      const [name = '', ...rest] = line.split(' ');
      return [
        `${name} in the place of a lock`,
        [name, '--store', 'file:absent/locks/report', ...rest],
        /store: expected a store for node ids and locks, whose path does not end in locks\/NAME: .*lock report, got "file:absent\/locks\/report"/,
      ];
    }),
    ['status with an unknown option', ['status', '--verbose'], /unknown option '--verbose'/],
    ['status with an option of another command', ['status', '--nodes', '3'], /unknown option '--nodes'/],
    [
      'status with a malformed store',
      ['status', '--store', 's3:/bucket'],
      /--store: expected .*got "s3:\/bucket"/,
    ],
    ['status with an argument', ['status', '3'], /too many arguments/],
    [
      'status --limit 0',
      ['status', '--limit', '0'],
      /--limit: expected a whole number from 1 to 10000, got "0"/,
    ],
    [
      'release without --force',
      ['release', '3'],
      /node id 3 .*next renewal.*not a way to stop a task.*--force/,
    ],
    ['release without an id', ['release', '--force'], /missing required argument 'id'/],
    [
      'release of something else than an id',
      ['release', 'x', '--force'],
      /node id: expected a whole number from 0 to 65527, got "x"/,
    ],
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
    ['completion of an unknown shell', ['completion', 'csh'], /shell: expected bash, zsh or fish, got "csh"/],
    ['demo with an unknown option', ['demo', '--twice'], /unknown option '--twice'/],
    ...(
      [
        ['id -n 0', /--count: expected a whole number from 1 to 1000000000, got "0"/],
        ['id -n -1', /--count: expected a whole number .*, got "-1"/],
        ['id --count 1e3', /--count: expected a whole number .*, got "1e3"/],
        ['id -n 1.5', /--count: expected a whole number .*, got "1.5"/],
        ['id -n 1000000001', /--count: expected a whole number .*, got "1000000001"/],
        ['id --format base64', /--format: expected one of decimal, base32, hex, got "base64"/],
        ['id --layout ulid', /--layout: expected cluster16 or snowflake, got "ulid"/],
        ['id --layout snowflake --epoch x', /--epoch: expected a whole number .*, got "x"/],
        ['id --epoch 5', /--epoch: expected --layout snowflake with it .*, got "5"/],
        ['decode 1 --width 7', /--width: expected a whole number from 8 to 16, got "7"/],
        ['decode 1 --width x', /--width: expected a whole number from 8 to 16, got "x"/],
        ['decode 1 --layout ulid', /--layout: expected cluster16 or snowflake, got "ulid"/],
        ['decode 1 --layout snowflake --epoch -1', /--epoch: expected a whole number .*, got "-1"/],
        [
          'decode 1 --layout snowflake --epoch 281474976710656',
          /--epoch: expected .* to 281474976710655, got/,
        ],
        [
          'run --help zoo -- true',
          /--help: expected all, lease, shards, store, data, zookeeper, announced, .*, logging, got "zoo"/,
        ],
        ['help run tsl', /--help: expected all, lease, .*, got "tsl"/],
        ['decode --help store', /--help: expected all, got "store"/],
      ] as const
    ).map(([line, expected]): [string, string[], RegExp] => [line, line.split(' '), expected]),
    ['id --node-id 3', ['id', '--node-id', '3'], /unknown option '--node-id'/],
    ['id --ecs-protect held', ['id', '--ecs-protect', 'held'], /unknown option '--ecs-protect'/],
    ['a switch with a value', ['status', '--watch=1'], /option '--watch' takes no value/],
    ['discovery alone', ['discovery'], /no command given: see nodelease discovery --help/],
    ['an unknown command of discovery', ['discovery', 'lss'], /unknown command 'lss'.*Did you mean ls/],
    [
      'discovery without ZooKeeper',
      ['discovery', 'ls'],
      /no ZooKeeper given: expected --zookeeper HOST:PORT/,
    ],
    [
      'status with half of the settings of ZooKeeper',
      ['status', '--zookeeper-auth', 'digest:a:b'],
      /--zookeeper-auth: expected --zookeeper with it/,
    ],
    ...['run', 'status', 'doctor', 'release', 'init', 'id'].map((name): [string, string[], RegExp] => [
      `${name} with the provider zookeeper and no servers`,
      [
        name,
        ...(name === 'release' ? ['3', '--force'] : []),
        '--provider',
        'zookeeper',
        ...(name === 'run' ? ['--', 'true'] : []),
      ],
      /--provider: expected --zookeeper with it, with the servers that give out the node ids, got "zookeeper"/,
    ]),
    ...['--nodes=3', '--duration=20s', '--grace=2s', '--store=memory:'].map(
      (flag): [string, string[], RegExp] => [
        `init with the provider zookeeper and ${flag}`,
        ['init', '--provider', 'zookeeper', '--zookeeper', 'zk:1', flag],
        new RegExp(`${flag.split('=')[0]}: expected no --provider zookeeper with it`),
      ],
    ),
    [
      'init with the provider zookeeper and --repair',
      ['init', '--provider', 'zookeeper', '--zookeeper', 'zk:1', '--repair'],
      /--repair is about a store: there is none with the provider zookeeper/,
    ],
    ...(
      [
        ['0', /number of node ids: expected a whole number from 1 to 65528, got "0"/],
        ['abc', /number of node ids: expected a whole number from 1 to 65528, got "abc"/],
        ['65529', /number of node ids: expected .*, got "65529"/],
        ['-5', /number of node ids: expected .*, got "-5"/],
        ['5 --wait-timeout 1', /--wait-timeout: expected a time such as .*, got "1"/],
        ['5 --wait-timeout 25h', /--wait-timeout: expected at most 24h, got "25h"/],
        ['5 6', /too many arguments/],
        ['5 --nodes 6', /unknown option '--nodes'/],
        ['5 --drain-timeout 1', /--drain-timeout: expected a time such as .*, got "1"/],
        ['5 --drain-timeout 25h', /--drain-timeout: expected at most 24h, got "25h"/],
        ['5 --zookeeper zk:0', /--zookeeper: expected .*, got "zk:0"/],
        [
          '5 --provider zookeeper --zookeeper zk:1',
          /with the provider zookeeper node ids grow in number by themselves/,
        ],
      ] as const
    ).map(([line, expected]): [string, string[], RegExp] => [
      `scale ${line}`,
      ['scale', ...line.split(' ')],
      expected,
    ]),
    ['scale without a number', ['scale'], /missing required argument 'n'/],
    ...['', '-1', '1.5', 'x', '1e3', '9999999999999999'].map((text): [string, string[], RegExp] => [
      `init --repair --above-version "${text}"`,
      ['init', '--repair', `--above-version=${text}`],
      /--above-version: expected a whole number from 0 to 4503595332403200/,
    ]),
    ...['', '-1', '1.0', 'x', '65528', '100000'].map((text): [string, string[], RegExp] => [
      `release of "${text}"`,
      ['release', text, '--force'],
      /node id: expected a whole number from 0 to 65527/,
    ]),
    ['release of the highest id without --force', ['release', '65527'], /release takes node id 65527 away/],
    ['status --locks --from 0', ['status', '--locks', '--from', '0'], /--locks shows all locks, and none/],
    ['status --held --free', ['status', '--held', '--free'], /--held and --free cannot be combined/],
    [
      'status --all --from 3',
      ['status', '--all', '--from', '3'],
      /--all shows everything: --from and --limit cannot be combined/,
    ],
    ...['--from=1', '--limit=1', '--held', '--free'].map((flag): [string, string[], RegExp] => [
      `status with the provider zookeeper and ${flag}`,
      ['status', '--provider', 'zookeeper', '--zookeeper', 'zk:1', flag],
      new RegExp(`${flag.split('=')[0]} is about a store: there is none with the provider zookeeper`),
    ]),
    [
      'doctor with the provider zookeeper and --accept',
      ['doctor', '--provider', 'zookeeper', '--zookeeper', 'zk:1', '--accept'],
      /--accept is about a store: there is none with the provider zookeeper/,
    ],
    [
      'release without the provider zookeeper for an id of ZooKeeper',
      ['release', '3', '--force', '--zookeeper', 'zk:1'],
      /--zookeeper: expected --provider zookeeper with it \(nodelease release looks at the store otherwise\), got "zk:1"/,
    ],
    [
      'release with the provider zookeeper and without --force',
      ['release', '3', '--provider', 'zookeeper', '--zookeeper', 'zk:1'],
      /others get it when the holder's session has ended\..* Add --force to do it/,
    ],
    [
      'a payload that is not JSON',
      ['run', '--zookeeper', 'zk', '--service', 'a', '--payload', '{', '--', 'true'],
      /--payload: expected a JSON object/,
    ],
    [
      'one endpoint of several that cannot be',
      ['run', '--zookeeper', 'zk', '--announce', 'a', '--announce', 'b/c', '--', 'true'],
      /--announce: expected NAME\[:KEY\] .* a name .*, got "b\/c"/,
    ],
    [
      'a token file without HTTP',
      ['run', '--bearer-token-file', 'x', '--', 'true'],
      /--bearer-token-file: expected --http with it/,
    ],
    [
      'an address that is none',
      ['run', '--http', '7070', '--', 'true'],
      /--http: expected HOST:PORT .*, got "7070"/,
    ],
    [
      'an address that is none, for serve',
      ['serve', '--http', '7070'],
      /--http: expected HOST:PORT .*, got "7070"/,
    ],
    [
      'a log format that is none',
      ['run', '--log-format', 'xml', '--', 'true'],
      /--log-format: expected json or pretty, got "xml"/,
    ],
    [
      'a variable without a name',
      ['run', '--env', '=x', '--', 'true'],
      /--env: expected NAME=TEMPLATE with a name of letters/,
    ],
    [
      '{url} without HTTP',
      ['run', '--env', 'A={url}', '--', 'true'],
      /--env: expected --http with it.*, got "A=…"/,
    ],
    ['a command for serve', ['serve', 'true'], /too many arguments/],
    ['a wait file in no folder', ['serve', '--wait-file', '/no/such/file'], /--wait-file: expected .*ENOENT/],
    [
      'a wait file that is a folder',
      ['serve', '--wait-file', '/tmp'],
      /--wait-file: expected .*something else is there/,
    ],
    [
      'health of no URL',
      ['health', '--url', 'x'],
      /--url: expected the URL of a running instance.*, got "x"/,
    ],
    [
      'health of a URL with a query',
      ['health', '--url', 'http://a/?b'],
      /--url: expected the URL of a running instance/,
    ],
    [
      'health of a URL with credentials',
      ['health', '--url', 'http://a:b@c'],
      /--url: expected .*\(without credentials\), got "http:\/\/…"/,
    ],
    ['health without patience', ['health', '--timeout', '0s'], /--timeout: expected more than 0s, got "0s"/],
    ...['resolve', 'services', 'serve'].map((name): [string, string[], RegExp] => [
      `discovery ${name} without ZooKeeper`,
      ['discovery', name, ...(name === 'resolve' ? ['orders'] : [])],
      /no ZooKeeper given: expected --zookeeper HOST:PORT/,
    ]),
    [
      'doctor with a malformed connect string',
      ['doctor', '--zookeeper', 'zk:0'],
      /--zookeeper: expected .*, got "zk:0"/,
    ],
  ])('answers %s with one line and exit code 64', async (_, args, line) => {
    const { code, stdout, stderr } = await run(args);
    expect(stderr).toMatch(new RegExp(`^nodelease: .*${line.source}.*\n$`));
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  });

  it('answers a bad variable with one line and exit code 64', async () => {
    expect(await run(['run', '--', 'true'], { NODELEASE_GRACE: 'long' })).toEqual({
      code: 64,
      stdout: '',
      stderr:
        'nodelease: NODELEASE_GRACE: expected a time such as 500ms, 15s, 2m or 1h, got "long" [CONFIG_INVALID]\n',
    });
  });

  describe('in a container', () => {
    const inContainer = { containerSign: () => 'there is /.dockerenv' };
    const commands = CALLS.filter(([name]) => settingsOf(name).includes('store') && name !== 'dns');

    it.each(commands)(
      'asks for the store instead of making the container a separate cluster: %s',
      async (_, args, end) => {
        expect(await run([...args, ...end], {}, inContainer)).toEqual({
          code: 64,
          stdout: '',
          stderr:
            'nodelease: no store given: expected --store s3://bucket/prefix, or NODELEASE_STORE (in a container (there is /.dockerenv) the default, file:.nodelease, would be a cluster of its own: name it if you want that) [USAGE]\n',
        });
      },
    );

    it('names the variable that is misspelt', async () => {
      const { code, stderr } = await run(
        ['run', '--', 'true'],
        { NODELEASE_STOR: 's3://bucket/prefix' },
        inContainer,
      );
      expect(stderr).toMatch(
        /no store given: .*NODELEASE_STOR is no setting, and has no effect: the nearest is NODELEASE_STORE\) \[USAGE\]\n$/,
      );
      expect(code).toBe(64);
    });

    it('takes a folder that is named, and needs none for a fixed id or where ZooKeeper gives it', async () => {
      const { code, stderr } = await run(['status', '--store', 'file:/no/such/folder'], {}, inContainer);
      expect(stderr).not.toContain('no store given');
      expect(code).not.toBe(64);
      // Found wanting before anything is asked for: the store is not it.
      for (const options of ['--node-id 3', '--provider zookeeper --zookeeper 127.0.0.1:1'])
        expect(
          (await run(['run', ...options.split(' '), '--', 'no-such-command'], {}, inContainer)).code,
        ).toBe(127);
    });

    it('needs none for DNS from ZooKeeper', async () => {
      const line = ['dns', '--zookeeper', '127.0.0.1:1', '--listen', 'nowhere'];
      expect((await run(line, {}, inContainer)).stderr).toMatch(/^nodelease: --listen: expected HOST:PORT/);
    });
  });

  it('names the flag and the variable of the region of a bucket', async () => {
    for (const name of ['AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3'])
      vi.stubEnv(name, undefined);
    for (const name of ['AWS_CONFIG_FILE', 'AWS_SHARED_CREDENTIALS_FILE']) vi.stubEnv(name, '/no/such/file');
    expect(await run(['status', '--store', 's3://bucket'])).toEqual({
      code: 64,
      stdout: '',
      stderr:
        'nodelease: --region: expected the region of the store: set it, or AWS_REGION (for a server that is not AWS, set an endpoint) [CONFIG_INVALID]\n',
    });
  });

  it('warns of a variable that is no setting, and says which one is near', async () => {
    const { code, stderr } = await run(['status', '--store', 'memory:'], { NODELEASE_ZOOKEPER: 'zk:1' });
    expect(stderr).toBe(
      'nodelease: warning: NODELEASE_ZOOKEPER is no setting, and has no effect: the nearest is NODELEASE_ZOOKEEPER\n',
    );
    expect(code).toBe(69);
  });

  it('leaves the endpoints that the surroundings want announced to the command that announces', async () => {
    const { code, stderr } = await run(['status', '--store', 'memory:'], {
      NODELEASE_ANNOUNCE: 'pay:,',
      NODELEASE_PAYLOAD: '{',
    });
    expect(stderr).not.toMatch(/NODELEASE_ANNOUNCE|NODELEASE_PAYLOAD/);
    expect(code).not.toBe(64);
  });

  it('takes nothing amiss in variables that are another command’s business', async () => {
    const env = {
      NODELEASE_NODES: 'many',
      NODELEASE_TASK_ID: ' ',
      NODELEASE_NODE_ID: '3',
      NODELEASE_STORE: 'memory:',
    };
    const { code, stdout, stderr } = await run(['status'], env);
    expect(stdout).toMatch(/^There is no cluster/);
    expect({ code, stderr }).toEqual({ code: 69, stderr: '' });
  });

  it.each(['init', 'status', 'status --watch', 'release 0 --force', 'doctor'])(
    'answers %s with 69 and one line where the store cannot be used, and with a stack trace only for who asks',
    async (line) => {
      const args = [...line.split(' '), '--store', 'file:package.json'];
      const { code, stderr } = await run(args);
      expect(code).toBe(69);
      expect(stderr).toMatch(/^nodelease: .*package\.json.*\n$/);
      const detailed = await run([...args, '--log-level', 'debug']);
      // The failures of the store are what a doctor looks for: they are findings, not its own.
      if (line !== 'doctor') expect(detailed.stderr).toMatch(/\n {4}at /);
    },
  );

  it('heeds no sticky key in the data directory of another command, unless an option wants that', async () => {
    const system = { clock: systemClock, random: systemRandom };
    const words = ['id', '--store', 'memory:'];
    const env = { NODELEASE_STICKY: 'file', NODELEASE_DATA_DIR: '/data' };
    const { code, stdout } = await run(words, env, system);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^\d+\n$/)]);
    expect((await run([...words, '--sticky', 'file'], {}, system)).code).toBe(64);
  });

  it('reads them for the command that announces', async () => {
    const env = { NODELEASE_ANNOUNCE: 'pay:', NODELEASE_ZOOKEEPER: '127.0.0.1:1' };
    const { code, stderr } = await run(['run', '--store', 'memory:', '--', 'true'], env);
    expect(stderr).toMatch(
      /^nodelease: NODELEASE_ANNOUNCE: expected NAME\[:KEY\] .*, got "pay:" \[CONFIG_INVALID\]\n$/,
    );
    expect(code).toBe(64);
  });

  it('gives its help and its version on standard output', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, stdout: '1.2.3\n', stderr: '' });
    const help = await run(['run', '--help', 'all']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const name of ['--store', 'NODELEASE_STORE', '--task-id', 'NODELEASE_TASK_ID'])
      expect(help.stdout).toContain(name);
    for (const name of ['http(s)://HOST:PORT', '--announce <name[:key]>', '[NODELEASE_ENDPOINT]'])
      expect(help.stdout).toContain(name);
  });

  it.each([[], ['--']])(
    'shows its help where no command is given, as the complaint that it is: %j',
    async (...args) => {
      const { code, stdout, stderr } = await run(args);
      expect(stderr).toMatch(
        /^Usage: nodelease .*\n {2}run .*\nnodelease: no command given: see nodelease --help \[USAGE\]\n$/s,
      );
      expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    },
  );

  describe('shows in its help', () => {
    const screen = (columns: number) => ({ screen: () => ({ columns, rows: 24, color: false }) });
    const helpOf = async (line: string, own: Partial<Io> = {}) => {
      const { code, stdout, stderr } = await run(line.split(' '), {}, own);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return stdout;
    };
    const headingsOf = (help: string) => help.match(/^\S.*(?=:$)/gm);
    /** The options and commands that a help lists. */
    const termsOf = (help: string) => [...help.matchAll(/^ {2}(?:-\w, )?([\w-]+)/gm)].map(([, term]) => term);
    const longest = (text: string) => Math.max(...text.split('\n').map((line) => line.length));

    it('lines that fit the terminal, and 100 characters at the most', async () => {
      for (const line of ['help', 'run --help', 'run --help all']) {
        expect(longest(await helpOf(line, screen(76)))).toBeLessThanOrEqual(76);
        expect(longest(await helpOf(line, screen(300)))).toBeLessThanOrEqual(100);
        expect(longest(await helpOf(line, screen(300)))).toBeGreaterThan(90);
      }
    });

    it('the four doors of the README first, in its order, and what needs ZooKeeper last', async () => {
      const help = await helpOf('--help');
      const readme = readFileSync('README.md', 'utf8');
      const doors = [...readme.matchAll(/^\*\*\[(.*)\]\(/gm)].map(([, door]) => door);
      expect(doors).toHaveLength(4);
      expect(headingsOf(help)).toEqual([
        ...doors,
        'Look and operate',
        'Try it, and learn',
        'With ZooKeeper',
        'Examples',
      ]);
      expect(help).toMatch(
        /task:\n {2}run .*time:\n {2}lock .*Shards:\n {2}shards .*Unique ids:\n {2}id .*operate:\n {2}init /s,
      );
      const names = new Set(COMMANDS.map(({ name }) => name.split(' ')[0]));
      expect(termsOf(help.replace(/Examples:.*/s, '')).sort()).toEqual([...names, 'help'].sort());
      expect(await helpOf('help')).toBe(help);
    });

    it('the examples before the options, and these in groups: its own first, and then the settings', async () => {
      expect(headingsOf(await helpOf('run --help all'))).toEqual([
        'Examples',
        'Options',
        'Lease',
        'Shards',
        'Store',
        'Data directory',
        'ZooKeeper',
        'Announced in ZooKeeper',
        'Configuration in ZooKeeper',
        'TLS to ZooKeeper',
        'HTTP',
        'Logging',
        'Help',
      ]);
      expect(headingsOf(await helpOf('zk counter --help'))).toEqual([
        'Examples, with NODELEASE_ZOOKEEPER=zk1:2181,zk2:2181',
        'Arguments',
        'Options',
        'ZooKeeper',
        'TLS to ZooKeeper',
        'Logging',
        'Help',
      ]);
    });

    it('the twenty options that a node id needs most, and how to see the others', async () => {
      const help = await helpOf('run --help');
      expect(termsOf(help)).toEqual(
        `--env --cluster --nodes --duration --task-id --acquire-timeout --sticky --on-retire --node-id --shards
         --store --endpoint --region --data-dir --zookeeper --http --bearer-token-file --log-level --log-format
         --help`.split(/\s+/),
      );
      expect(help.replace(/\s+/g, ' ')).toContain(
        'More options: -h, --help [group] which options to show: all, lease, shards, store, data, zookeeper, announced, configuration, tls, http, logging',
      );
    });

    it('the options of a group, and with zookeeper those of all four', async () => {
      const asked = async (line: string) => headingsOf((await helpOf(line)).replace(/Examples.*/, ''));
      expect(await asked('run --help data')).toEqual(['Data directory', 'Help']);
      expect(await asked('zk lock --help tls')).toEqual(['Arguments', 'TLS to ZooKeeper', 'Help']);
      expect(await asked('run --help zookeeper')).toEqual([
        'ZooKeeper',
        'Announced in ZooKeeper',
        'Configuration in ZooKeeper',
        'TLS to ZooKeeper',
        'Help',
      ]);
    });

    it.each([
      ['run --help', 'run -h', 'help run', 'run --help -- node x', 'run --store memory: --help -- node x'],
      ['run --help', 'run --help --store memory: -- node x', 'run x --nodes 3 --help', 'help run -- node x'],
      ['run --help all', 'help run all', 'run --nodes 3 -h all --store memory: -- node x'],
      ['zk --help', 'help zk', 'zk help', 'zk --help lock'],
      ['zk lock --help', 'zk help lock', 'zk lock /x --help -- node x'],
    ])('the same, and runs no command, as %s and with other words', async (line, ...others) => {
      const help = await helpOf(line);
      expect(help).toMatch(new RegExp(`^Usage: nodelease ${line.replace(/ -.*/, '')} `));
      for (const other of others) expect(await helpOf(other)).toBe(help);
    });

    it.each(COMMANDS.map((row) => [row.name, row] as const))(
      'lines of 80 characters at the most where there is no terminal, and two examples that the command takes: %s',
      async (name, row) => {
        const help = await helpOf(`${name} --help`);
        const all = await helpOf(`${name} --help all`);
        for (const each of [help, all]) {
          expect(longest(each)).toBeLessThanOrEqual(80);
          expect(each).toMatch(/^Usage: nodelease .*\n\n(\S.*\n)+\nExamples/);
        }
        // Twenty and --help: all of its own, and of its settings at least the most used.
        const own = optionsOf(row).filter(([, , { setting } = {}]) => !setting);
        const flags = (options: typeof own) => options.map(([text]) => /--[\w-]+/.exec(text)?.[0]);
        expect(help.match(/^ {2}-/gm)?.length).toBeLessThanOrEqual(21);
        for (const flag of flags(own)) expect(help).toMatch(new RegExp(`^ .*${flag}\\b`, 'm'));
        expect(termsOf(all)).toEqual(expect.arrayContaining(flags(optionsOf(row))));
        const env: Record<string, string> =
          row.zookeeper === 'required' ? { NODELEASE_ZOOKEEPER: 'zk1:2181,zk2:2181' } : {};
        // The command line up to its command, which would need servers.
        const load = vi.spyOn(row, 'load').mockResolvedValue(() => 0);
        for (const example of row.examples) {
          expect(help).toContain(`  $ nodelease ${example}\n`);
          expect(example).toMatch(new RegExp(`^${name}( |$)`));
          expect(await run(example.replace(/ [<>] .*/, '').split(' '), env)).toEqual({
            code: 0,
            stdout: '',
            stderr: '',
          });
        }
        expect(load).toHaveBeenCalledTimes(2);
      },
    );
  });

  it('knows before it acquires anything that a command cannot be started', async () => {
    expect(await run(['run', '--', 'no-such-command'])).toEqual({
      code: 127,
      stdout: '',
      stderr: 'nodelease: no-such-command: command not found [COMMAND_NOT_FOUND]\n',
    });
    expect(await run(['run', '--', '/'])).toEqual({
      code: 126,
      stdout: '',
      stderr: 'nodelease: /: not executable [COMMAND_NOT_EXECUTABLE]\n',
    });
  });
});

describe('credentials in the wrong place', () => {
  const commands = CALLS.filter(([name]) =>
    settingsOf(name).some((setting) => /^(store|zookeeper)$/.test(setting)),
  );
  const given: readonly (readonly [flag: string, value: string])[] = [
    ['--store', 's3://KEY:HIDDEN@bucket'],
    ['--store', 's3://KEY:HID/HIDDEN@bucket/prefix'],
    ['--store', 's3://KEY:HIDDEN@HIDDEN@bucket'],
    ['--store', '"s3://KEY:HIDDEN@bucket"'],
    ['--store', ' s3://KEY:HIDDEN@bucket'],
    ['--store', 'KEY:HIDDEN@bucket'],
    ['--zookeeper', 'user:HIDDEN@host'],
    ['--zookeeper', 'user:HIDDEN@host:2181/chroot'],
    ['--zookeeper', 'user:HID/HIDDEN@host:2181'],
    ['--zookeeper', 'zk1:2181,user:HIDDEN@zk2:2181'],
    ['--zookeeper', 'zk://user:HIDDEN@host'],
    ['--zookeeper', 'digest:user:HIDDEN'],
    ['--zookeeper-auth', 'digest:HIDDEN'],
    ['--zookeeper-auth', 'user:HIDDEN'],
    ['--etcd-auth', "root:HIDDEN@'HIDDEN"],
    ['--endpoint', 'user:HIDDEN@host.test'],
    ['--endpoint', 's3://user:HIDDEN@host'],
    ['--stor', 's3://KEY:HIDDEN@bucket'],
    ['--endpont', 'https://user:HIDDEN@127.0.0.1:1'],
    ['--check', 'ftp://user:HIDDEN@host'],
    ['--env', 'DB=postgres://user:HIDDEN@host/{}'],
  ];

  // `run` and `serve` read the endpoint only once they have begun:
  // test/integration/app/cli/command-usage.test.ts.
  it.each(commands.filter(([name]) => !['run', 'serve'].includes(name)))(
    'are not shown by %s in the URL of a server',
    async (_, args) => {
      const url = 'https://user:HIDDEN@127.0.0.1:1';
      const store = { NODELEASE_STORE: 's3://bucket', AWS_REGION: 'us-east-1' };
      for (const answer of [
        await run([...args, `--endpoint=${url}`], store),
        await run([...args], { ...store, NODELEASE_ENDPOINT: url }),
      ]) {
        expect(answer).toMatchObject({ code: 64, stdout: '' });
        expect(answer.stderr).not.toContain('HIDDEN');
      }
    },
  );

  const variables = ['--store', '--zookeeper', '--zookeeper-auth', '--endpoint'];

  it.each(commands)(
    'are not shown by %s, whether they come as options, as variables or as arguments',
    async (command, args, end) => {
      const read = settingsOf(command);
      for (const [flag, value] of given) {
        const env = {
          ...(flag === '--endpoint' && { NODELEASE_STORE: 's3://bucket', AWS_REGION: 'us-east-1' }),
          ...(['--zookeeper-auth', '--check'].includes(flag) && { NODELEASE_ZOOKEEPER: 'zk:1' }),
        };
        const name = `NODELEASE${flag.slice(1).replaceAll('-', '_').toUpperCase()}`;
        const answers = [
          await run([...args, `${flag}=${value}`, ...end], env),
          await run([...args, value, ...end], { NODELEASE_STORE: 'x' }),
        ];
        if (variables.includes(flag) && read.includes(flag.slice(2)))
          answers.push(await run([...args, ...end], { ...env, [name]: value }));
        for (const answer of answers) {
          expect({ flag, value, ...answer }).toMatchObject({ code: 64, stdout: '' });
          expect(answer.stderr).not.toContain('HIDDEN');
        }
      }
    },
  );
});
