import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** How to reach what runs containers. Plain data, so that it can be handed to test workers. */
export interface ContainerAccess {
  /** Docker's command line, or podman's, which takes the same arguments. */
  readonly kind: 'docker' | 'podman';
  /** Variables that the commands need in addition to this process' own. */
  readonly environment: Readonly<Record<string, string>>;
  /** What runs compose files: a command, and its first arguments. */
  readonly compose: readonly [command: string, ...args: string[]];
}

/** How a command ended, and what it said. */
export interface CommandEnd {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a container is doing. */
export interface ContainerState {
  readonly running: boolean;
  /** Of its first process; of no meaning while it runs. */
  readonly exitCode: number;
}

const HEALTH_POLL_MS = 200;
const POLL_MS = 50;

/** Runs containers, and removes its own, with their volumes, at its end. */
export class ContainerEngine implements AsyncDisposable {
  /** What the names of all that is made here begin with: no other run has it. */
  readonly prefix = `nodelease-test-${randomBytes(4).toString('hex')}`;
  readonly #containers: string[] = [];
  readonly #volumes: string[] = [];
  #count = 0;

  constructor(readonly access: ContainerAccess) {}

  /** Runs a command of the engine, whatever it answers. */
  async attempt(args: readonly string[]): Promise<CommandEnd> {
    return runCommand([this.access.kind, ...args], this.access.environment);
  }

  /**
   * Runs a command of the engine. Resolves to its standard output, without spaces around it.
   *
   * @throws Error with what it said when it fails
   */
  async command(...args: string[]): Promise<string> {
    return succeeded([this.access.kind, ...args], await this.attempt(args));
  }

  /**
   * Runs a command on a compose file. Resolves to its standard output.
   *
   * @param environment what the file's variables stand for
   * @throws Error with what it said when it fails
   */
  async compose(
    file: string,
    project: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
  ): Promise<string> {
    const command = [...this.access.compose, '--file', file, '--project-name', project, ...args] as [
      string,
      ...string[],
    ];
    return succeeded(command, await runCommand(command, { ...this.access.environment, ...environment }));
  }

  /** The name of a volume that is new, and of this run alone. */
  async volume(): Promise<string> {
    const name = this.#name();
    await this.command('volume', 'create', name);
    this.#volumes.push(name);
    return name;
  }

  /** Starts a container in the background. Resolves to its name. */
  async start(image: string, options: readonly string[], args: readonly string[]): Promise<string> {
    const name = this.#name();
    this.#containers.push(name);
    await this.command('run', '--detach', '--name', name, ...options, image, ...args);
    return name;
  }

  /** Runs a container to its end. */
  async run(image: string, options: readonly string[], args: readonly string[]): Promise<CommandEnd> {
    const name = this.#name();
    this.#containers.push(name);
    return this.attempt(['run', '--rm', '--name', name, ...options, image, ...args]);
  }

  async state(name: string): Promise<ContainerState> {
    const [running, code] = (
      await this.command('inspect', '--format', '{{.State.Running}} {{.State.ExitCode}}', name)
    ).split(' ');
    return { running: running === 'true', exitCode: Number(code) };
  }

  /** Resolves, with its exit code, when the container has ended. */
  async untilEnded(name: string, limitMs = 60_000): Promise<number> {
    for (const begun = performance.now(); ; ) {
      const { running, exitCode } = await this.state(name);
      if (!running) return exitCode;
      if (performance.now() - begun > limitMs)
        throw new Error(`container ${name} still runs after ${limitMs} ms`);
      await sleep(POLL_MS);
    }
  }

  /** What the container's own health check says: with Docker the last one that it has made by itself. */
  async health(name: string): Promise<string> {
    if (this.access.kind === 'docker')
      return this.command('inspect', '--format', '{{.State.Health.Status}}', name);
    // Podman leaves the repeating to systemd; where there is none, somebody has to ask for each check.
    const { exitCode, stdout, stderr } = await this.attempt(['healthcheck', 'run', name]);
    if (exitCode === 0 || exitCode === 1) return exitCode === 0 ? 'healthy' : 'unhealthy';
    throw new Error(`the health check of ${name} ended with ${exitCode}:\n${stdout}${stderr}`);
  }

  /**
   * Resolves when the container's own health check says so.
   *
   * @throws Error when it does not in time
   */
  async untilHealth(name: string, wanted: 'healthy' | 'unhealthy', limitMs = 60_000): Promise<void> {
    for (const begun = performance.now(); ; ) {
      const health = await this.health(name);
      if (health === wanted) return;
      if (performance.now() - begun > limitMs) {
        const { stdout, stderr } = await this.attempt(['logs', name]);
        throw new Error(
          `container ${name} is ${health} and not ${wanted} after ${limitMs} ms:\n${stdout}${stderr}`,
        );
      }
      await sleep(HEALTH_POLL_MS);
    }
  }

  /** Resolves when the container has printed `text`. */
  async untilLogged(name: string, text: string, limitMs = 60_000): Promise<void> {
    for (const begun = performance.now(); ; ) {
      const { stdout, stderr } = await this.attempt(['logs', name]);
      if (`${stdout}${stderr}`.includes(text)) return;
      if (performance.now() - begun > limitMs)
        throw new Error(`container ${name} has not printed ${text} in ${limitMs} ms:\n${stdout}${stderr}`);
      await sleep(POLL_MS);
    }
  }

  /** The ids that the container's processes have on this machine. */
  async processIds(name: string): Promise<number[]> {
    const columns = this.access.kind === 'podman' ? ['hpid'] : ['-eo', 'pid'];
    const [, ...ids] = (await this.command('top', name, ...columns)).split('\n');
    return ids.map(Number);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#containers.length > 0) await this.attempt(['rm', '--force', '--volumes', ...this.#containers]);
    if (this.#volumes.length > 0) await this.attempt(['volume', 'rm', '--force', ...this.#volumes]);
  }

  #name(): string {
    this.#count += 1;
    return `${this.prefix}-${this.#count}`;
  }
}

/** Runs a command to its end; its output is kept as text. */
export async function runCommand(
  [file, ...args]: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<CommandEnd> {
  const child = spawn(file, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return {
    exitCode: code ?? 128,
    stdout: Buffer.concat(stdout).toString(),
    stderr: Buffer.concat(stderr).toString(),
  };
}

/** @throws Error with what the command said when it failed */
export function succeeded(command: readonly string[], { exitCode, stdout, stderr }: CommandEnd): string {
  if (exitCode !== 0)
    throw new Error(
      `${command.join(' ')} ended with ${exitCode}:\n${stdout.slice(-4_000)}${stderr.slice(-8_000)}`,
    );
  return stdout.trim();
}
