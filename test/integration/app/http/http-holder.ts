import { fileURLToPath } from 'node:url';
import { expect, inject } from 'vitest';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';
import { runProcess, type TestProcess } from '../../../support/processes.js';
import { newFolder } from '../cli/run-support.js';

/** A line of the holder's output. */
interface HolderLine {
  readonly type: string;
  readonly at: number;
  readonly tookMs: number;
  readonly url: string;
  readonly bytes: number;
}

/** Where the leases are: arguments for the holder and its environment. */
interface Place {
  readonly store: string;
  readonly more: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Clients give way to the server, as if they ran on machines of their own. */
export function clients(name: string, args: readonly (string | number)[]): TestProcess {
  return runProcess('nice', ['-n', '10', process.execPath, fileOf(name), ...args.map(String)]);
}

function fileOf(name: string): string {
  return fileURLToPath(new URL(`../../../fixtures/programs/${name}.mjs`, import.meta.url));
}

/** A process that holds a lease and answers over HTTP, in one thread. */
export class Holder {
  private constructor(
    readonly process: TestProcess,
    readonly url: string,
    private readonly durationMs: number,
  ) {}

  static async start({ store, more, env }: Place, durationMs: number): Promise<Holder> {
    const args = ['--expose-gc', fileOf('http-holder'), store, String(durationMs), ...more];
    const holder = runProcess(process.execPath, args, { env });
    const [, url = ''] = await holder.waitForOutput(/"url":"([^"]+)"/, 60_000);
    return new Holder(holder, url, durationMs);
  }

  reported(type: string): HolderLine[] {
    const lines = this.process.stdout().split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as HolderLine).filter((line) => line.type === type);
  }

  /** By how much the latest renewal was sent later than it should have been, in milliseconds. */
  get latestMs(): number {
    const sent = this.reported('renewed').map(({ at, tookMs }) => at - tookMs);
    return Math.max(...sent.slice(1).map((at, index) => at - (sent[index] ?? 0) - this.durationMs / 3));
  }

  /** What it holds after garbage has been collected, in bytes. */
  async heap(): Promise<number> {
    const before = this.reported('heap').length;
    this.process.kill('SIGUSR2');
    await expect.poll(() => this.reported('heap').length, { timeout: 20_000 }).toBe(before + 1);
    return this.reported('heap').at(-1)?.bytes ?? Number.NaN;
  }

  /**
   * Asks as health checks do, over a connection of its own: a kept one is idle in between, and may be closed
   * when the server runs short of them.
   */
  async readyz(): Promise<number> {
    const response = await fetch(`${this.url}/readyz`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(10_000),
    });
    await response.arrayBuffer();
    return response.status;
  }
}

export const onFiles = async (): Promise<Place> => ({ store: `file:${newFolder()}`, more: [], env: {} });
export const onS3 = async (): Promise<Place> => {
  const s3 = inject('s3');
  const { name } = await createBucket(s3);
  return { store: `s3://${name}/leases`, more: [s3.endpoint, s3.region], env: awsEnvironment(s3) };
};
