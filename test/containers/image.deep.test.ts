import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { untilDead } from '../integration/app/cli/run-support.js';
import { ContainerEngine } from '../support/containers/container-engine.js';
import { TEST_IMAGE } from '../support/containers/container-setup.js';
import { packageRoot } from '../support/package-root.js';

const README = join(packageRoot, 'infra/docker/README.md');
const DOCKERFILE = join(packageRoot, 'infra/docker/Dockerfile');
/** What the README advises to take away from a container that has no need of it. */
const HARDENED = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
/** Prints the command lines of the container's processes, each with its process id; the image has no `ps`. */
const PROCESSES = 'cd /proc && for p in [0-9]*; do echo "$p $(tr "\\0" " " <"$p/cmdline")"; done';
/** Succeeds when the program `sleep 1000` has ended, within half a minute. */
const PROGRAM_GONE = `for n in $(seq 300); do ${PROCESSES} 2>/dev/null | grep -q "^[0-9]* sleep 1000 $" || exit 0; sleep 0.1; done; exit 1`;

describe('the image', () => {
  let engine: ContainerEngine;
  /** What gives a container the file store of the test. */
  let store: readonly string[];

  beforeEach(async () => {
    engine = new ContainerEngine(inject('containers'));
    store = [
      '--volume',
      `${await engine.volume()}:/var/lib/nodelease`,
      '--env',
      'NODELEASE_STORE=file:/var/lib/nodelease',
    ];
  });

  afterEach(async () => {
    await engine[Symbol.asyncDispose]();
  });

  it('runs a program as an unprivileged user, with a node id', async () => {
    const { stdout, stderr, exitCode } = await engine.run(TEST_IMAGE, store, [
      'run',
      '--',
      'sh',
      '-c',
      'echo "$NODE_ID at $NODE_ID_VERSION, user $(id -u):$(id -g)"; exit 7',
    ]);
    expect({ stdout, exitCode }, stderr).toEqual({ stdout: '0 at 1, user 1000:1000\n', exitCode: 7 });
    // Kubernetes takes a number only for proof that it is not root.
    expect(await engine.command('image', 'inspect', '--format', '{{.Config.User}}', TEST_IMAGE)).toBe(
      '1000:1000',
    );
  });

  it('is as large as the README says, and has what it needs and nothing else', async () => {
    const base = /^ARG NODE_IMAGE=(\S+)$/m.exec(await readFile(DOCKERFILE, 'utf8'))?.[1] ?? '';
    const size = async (image: string) =>
      Number(await engine.command('image', 'inspect', '--format', '{{.Size}}', image)) / 1e6;
    const stated = Number(/adds \*\*(\d+) MB\*\*/.exec(await readFile(README, 'utf8'))?.[1]);
    const { stdout } = await engine.run(
      TEST_IMAGE,
      ['--entrypoint', 'sh'],
      ['-c', 'cd /opt/nodelease && find . -type f -printf "%s\\n" && ls && find . -type f'],
    );
    const lines = stdout.trim().split('\n');
    const bytes = lines.filter((line) => /^\d+$/.test(line)).reduce((sum, line) => sum + Number(line), 0);
    expect(bytes / 1e6).toBeGreaterThan(stated * 0.9);
    expect(bytes / 1e6).toBeLessThan(stated * 1.1);
    // Engines count differently, some with what archives need in addition to the files. At any rate, no file
    // is in two layers.
    expect((await size(TEST_IMAGE)) - (await size(base))).toBeLessThan(stated * 1.6);
    const files = lines.filter((line) => !/^\d+$/.test(line));
    expect(files.slice(0, 5)).toEqual(['LICENSE', 'bin', 'dist', 'node_modules', 'package.json']);
    expect(
      files.filter((file) =>
        /\.test\.|\.d\.[cm]?ts$|\.map$|node_modules\/(typescript|vitest|@types)\//.test(file),
      ),
    ).toEqual([]);
  });

  it('says what it is', async () => {
    const labels: unknown = JSON.parse(
      await engine.command('image', 'inspect', '--format', '{{json .Config.Labels}}', TEST_IMAGE),
    );
    const { version, license } = JSON.parse(
      await readFile(join(packageRoot, 'package.json'), 'utf8'),
    ) as Record<string, string>;
    expect(labels).toMatchObject({
      'org.opencontainers.image.title': 'nodelease',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': license,
    });
    const { stdout } = await engine.run(TEST_IMAGE, [], ['--version']);
    expect(stdout).toBe(`${version}\n`);
  });

  it('has the bytecode of a start, made once, and nobody can change it there', async () => {
    const files = (form: string) => `find /opt/nodelease/dist/cli/compile-cache ${form}`;
    // Root may write there, and would replace what V8 refuses.
    const { stdout } = await engine.run(
      TEST_IMAGE,
      [...store, '--user', '0:0', '--entrypoint', 'sh'],
      ['-c', `${files('-type f -ls')}; nodelease run -- true; echo; ${files('-type f -ls')}`],
    );
    const [before = '', after] = stdout.trimEnd().split('\n\n');
    expect(after).toBe(before);
    for (const file of ['base.js', 'run.js', 'file-lease-store.js', 's3.js'])
      expect(before).toMatch(new RegExp(`/${file}-v`));
    const { stdout: writable } = await engine.run(
      TEST_IMAGE,
      [...store, '--entrypoint', 'sh'],
      ['-c', files('-writable')],
    );
    expect(writable).toBe('');
  });

  it('is copied into a volume again by an init container that runs a second time, as after a restart of the machine', async () => {
    const guide = await readFile(join(packageRoot, 'docs/guides/ecs.md'), 'utf8');
    const [, copy = ''] = /command: \[(cp, .*), \/injected\]/.exec(guide) ?? [];
    const command = `${copy.replaceAll(',', '')} /tmp/injected`;
    const { exitCode, stderr } = await engine.run(
      TEST_IMAGE,
      ['--entrypoint', 'sh'],
      [
        '-c',
        `mkdir /tmp/injected && ${command} && ${command} && /tmp/injected/nodelease/dist/cli/nodelease.js --version`,
      ],
    );
    expect(exitCode, stderr).toBe(0);
  });

  it('adds less than a second to the start of a container, the program being given its id from a file store', {
    timeout: 300_000,
  }, async () => {
    const took = async (options: readonly string[], args: readonly string[]) => {
      const begun = performance.now();
      const { exitCode, stderr } = await engine.run(TEST_IMAGE, options, args);
      expect(exitCode, stderr).toBe(0);
      return performance.now() - begun;
    };
    const bare: number[] = [];
    const node: number[] = [];
    const leased: number[] = [];
    const added = (times: readonly number[]) => Math.round(Math.min(...times) - Math.min(...bare));
    // In turns, so that whatever else the machine does hits all of them; and it only ever adds. So the longer
    // it takes a busy one, the more turns.
    for (let round = 0; round < 5 || (round < 20 && added(leased) >= 1_000); round += 1) {
      bare.push(await took([...store, '--entrypoint', 'true'], []));
      node.push(await took([...store, '--entrypoint', 'node'], ['-e', '0']));
      leased.push(await took(store, ['run', '--', 'true']));
    }
    process.stderr.write(
      `${Math.round(Math.min(...bare))} ms a bare container, Node.js ${added(node)} ms more, nodelease ${added(leased)} ms more\n`,
    );
    // Where the machine is so busy that even Node.js alone takes several times as long as it should, that is
    // the yardstick.
    expect(added(leased)).toBeLessThan(Math.max(1_000, 10 * added(node)));
  });

  it('is stopped in order: the program gets SIGTERM, and the lease is released', async () => {
    const program = 'trap "echo asked to end; exit 0" TERM; echo begun; while :; do sleep 0.1; done';
    const name = await engine.start(TEST_IMAGE, store, ['run', '--', 'sh', '-c', program]);
    await engine.untilLogged(name, 'begun');
    expect(await holders(engine, store)).toMatchObject([{ state: 'held', version: 1 }]);
    await engine.command('stop', '--time', '30', name);
    expect((await engine.state(name)).exitCode).toBe(0);
    expect(await engine.command('logs', name)).toContain('asked to end');
    expect(await holders(engine, store)).toMatchObject([{ state: 'released', version: 1 }]);
  });

  it('leaves no process when process 1 is killed', async () => {
    // Longer than what follows takes: the id is looked at before it expires.
    const options = [...store, '--env', 'NODELEASE_DURATION=2m'];
    const name = await engine.start(TEST_IMAGE, options, [
      'run',
      '--',
      'sh',
      '-c',
      'sleep 1000 & echo begun; wait',
    ]);
    await engine.untilLogged(name, 'begun');
    const processes = await engine.processIds(name);
    // The launcher, nodelease, its guard, the shell and what that has started.
    expect(processes.length).toBeGreaterThanOrEqual(5);
    await engine.command('kill', '--signal', 'KILL', name);
    expect(await engine.untilEnded(name)).toBe(137);
    await untilDead(processes, 30_000);
    // The id was not given back: it has to expire.
    expect(await holders(engine, store)).toMatchObject([{ state: 'held', version: 1 }]);
  });

  it('leaves no process when nodelease itself is killed', async () => {
    const name = await engine.start(TEST_IMAGE, store, [
      'run',
      '--',
      'sh',
      '-c',
      'sleep 1000 & echo begun; wait',
    ]);
    await engine.untilLogged(name, 'begun');
    const processes = await engine.processIds(name);
    await signal(engine, name, 'KILL', await processIn(engine, name, /^node /));
    expect(await engine.untilEnded(name)).toBe(137);
    await untilDead(processes, 30_000);
  });

  it('collects the processes that have lost their parents, as process 1 has to', async () => {
    const orphans = 'for i in 1 2 3; do (sleep 0.1 &); done; echo begun; exec sleep 1000';
    const name = await engine.start(TEST_IMAGE, store, ['run', '--', 'sh', '-c', orphans]);
    await engine.untilLogged(name, 'begun');
    // Next to the program there is the guard's own sleep, and another one for a moment: the three have to be
    // over, and nothing left of them.
    const collected =
      'for n in $(seq 100); do grep -q "^State:.Z" /proc/[0-9]*/status || [ $(grep -lx "Name:.sleep" /proc/[0-9]*/status | wc -l) -gt 3 ] || exit 0; sleep 0.1; done; exit 1';
    await engine.command('exec', name, 'sh', '-c', collected);
  });

  it('guards the program also with a read-only root, without any capability: a paused nodelease loses it in time', async () => {
    const options = [...HARDENED, ...store, '--env', 'NODELEASE_DURATION=3s'];
    const name = await engine.start(TEST_IMAGE, options, [
      'run',
      '--',
      'sh',
      '-c',
      'echo begun; exec sleep 1000',
    ]);
    await engine.untilLogged(name, 'begun');
    // Below a shell: the parent of what is executed from outside may be gone at once.
    await engine.command('exec', name, 'sh', '-c', 'setpriv --pdeathsig KILL -- true; exit $?');
    await engine.untilHealth(name, 'healthy');
    expect((await engine.attempt(['exec', name, 'touch', '/there'])).stderr).toContain(
      'Read-only file system',
    );
    const nodelease = await processIn(engine, name, /^node /);
    await signal(engine, name, 'STOP', nodelease);
    await engine.command('exec', name, 'sh', '-c', PROGRAM_GONE);
    expect((await engine.state(name)).running).toBe(true);
    await signal(engine, name, 'CONT', nodelease);
    expect(await engine.untilEnded(name)).toBe(76);
  });

  it('is healthy while it holds a lease, and not while it waits for one or has lost it', async () => {
    const options = [
      ...store,
      '--env',
      'NODELEASE_NODES=1',
      '--env',
      'NODELEASE_DURATION=5s',
      ...healthFromTheStart(),
    ];
    const program = ['run', '--', 'sh', '-c', 'echo begun; exec sleep 1000'];
    const first = await engine.start(TEST_IMAGE, options, program);
    await engine.untilLogged(first, 'begun');
    await engine.untilHealth(first, 'healthy');
    const second = await engine.start(TEST_IMAGE, options, program);
    await engine.untilHealth(second, 'unhealthy');
    await engine.command('stop', '--time', '30', first);
    await engine.untilHealth(second, 'healthy');
    const nodelease = await processIn(engine, second, /^node /);
    await signal(engine, second, 'STOP', nodelease);
    await engine.untilHealth(second, 'unhealthy');
    // Until the deadline it may still be renewed: what the guard has ended shows that it has passed.
    await engine.command('exec', second, 'sh', '-c', PROGRAM_GONE);
    await signal(engine, second, 'CONT', nodelease);
    expect(await engine.untilEnded(second)).toBe(76);
    // Taken away by force: there is no health left to ask for.
    const third = await engine.start(TEST_IMAGE, options, program);
    await engine.untilHealth(third, 'healthy');
    await engine.command('exec', third, 'nodelease', 'release', '0', '--force');
    expect(await engine.untilEnded(third)).toBe(76);
  });

  it('does not take a node id for its own without a store that others see', async () => {
    const { exitCode, stderr } = await engine.run(TEST_IMAGE, [], ['run', '--', 'true']);
    expect(exitCode).toBe(64);
    expect(stderr).toMatch(/^nodelease: no store given: .*in a container \(/m);
  });

  it('can be built upon in both ways that the README shows', async () => {
    const readme = await readFile(README, 'utf8');
    const examples = [...readme.matchAll(/```dockerfile\n(.*?)```/gs)].map(([, text = '']) => text);
    expect(examples).toHaveLength(2);
    const folder = await mkdtemp(join(tmpdir(), 'nodelease-app-'));
    try {
      await writeFile(
        join(folder, 'server.js'),
        'console.log("I am node", process.env.NODE_ID, "in", process.cwd());\n',
      );
      for (const [index, example] of examples.entries()) {
        const tag = `${engine.prefix}-app-${index}`;
        await writeFile(
          join(folder, 'Dockerfile'),
          example.replaceAll('registry.example.com/nodelease:0.1.0', TEST_IMAGE),
        );
        await engine.command('build', '--tag', tag, folder);
        const { stdout, stderr } = await engine.run(tag, store, []);
        expect(stdout, stderr).toBe('I am node 0 in /app\n');
        await engine.command('image', 'rm', tag);
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  /** Docker does not count what fails in the first minute, as the image has it. */
  function healthFromTheStart(): string[] {
    if (inject('containers').kind === 'podman') return [];
    return ['--health-interval', '1s', '--health-start-period', '0s', '--health-retries', '1'];
  }
});

/** What `nodelease status` reports of the node ids that were ever held. */
async function holders(engine: ContainerEngine, store: readonly string[]): Promise<unknown[]> {
  const { stdout, stderr, exitCode } = await engine.run(TEST_IMAGE, store, ['status', '--json']);
  expect(exitCode, stderr).toBe(0);
  const { nodes } = JSON.parse(stdout) as { nodes: { state: string }[] };
  return nodes.filter(({ state }) => state !== 'vacant' && state !== 'absent');
}

/** The id that a process has within its container. */
async function processIn(engine: ContainerEngine, name: string, commandLine: RegExp): Promise<string> {
  const lines = (await engine.command('exec', name, 'sh', '-c', PROCESSES)).split('\n');
  const [id] = lines.flatMap((line) => {
    const [pid = '', ...words] = line.split(' ');
    return commandLine.test(words.join(' ')) ? [pid] : [];
  });
  if (id === undefined) throw new Error(`no process ${commandLine} in\n${lines.join('\n')}`);
  return id;
}

async function signal(
  engine: ContainerEngine,
  name: string,
  signalName: string,
  processId: string,
): Promise<void> {
  await engine.command('exec', name, 'sh', '-c', `kill -${signalName} ${processId}`);
}
