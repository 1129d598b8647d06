import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { awsEnvironment, createBucket } from '../support/bucket.js';
import { killAll, runProcess, type TestProcess } from '../support/processes.js';
import { newFolder, removeFolders } from './run-support.js';

afterEach(async () => {
  await killAll();
  removeFolders();
});

/** A line of the holder's output. */
interface Told {
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
function clients(name: string, args: readonly (string | number)[]): TestProcess {
  return runProcess('nice', ['-n', '10', process.execPath, fileOf(name), ...args.map(String)]);
}

function fileOf(name: string): string {
  return fileURLToPath(new URL(`../fixtures/programs/${name}.mjs`, import.meta.url));
}

/** A process that holds a lease and answers over HTTP, in one thread. */
class Holder {
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

  told(type: string): Told[] {
    const lines = this.process.stdout().split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Told).filter((line) => line.type === type);
  }

  /** By how much the latest renewal was sent later than it should have been, in milliseconds. */
  get latestMs(): number {
    const sent = this.told('renewed').map(({ at, tookMs }) => at - tookMs);
    return Math.max(...sent.slice(1).map((at, index) => at - (sent[index] ?? 0) - this.durationMs / 3));
  }

  /** What it holds after garbage has been collected, in bytes. */
  async heap(): Promise<number> {
    const before = this.told('heap').length;
    this.process.kill('SIGUSR2');
    await expect.poll(() => this.told('heap').length, { timeout: 20_000 }).toBe(before + 1);
    return this.told('heap').at(-1)?.bytes ?? Number.NaN;
  }

  async readyz(): Promise<number> {
    const response = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(10_000) });
    await response.arrayBuffer();
    return response.status;
  }
}

const onFiles = async (): Promise<Place> => ({ store: `file:${newFolder()}`, more: [], env: {} });
const onS3 = async (): Promise<Place> => {
  const s3 = inject('s3');
  const { name } = await createBucket(s3);
  return { store: `s3://${name}/leases`, more: [s3.endpoint, s3.region], env: awsEnvironment(s3) };
};

describe('the node of a process, on MinIO', () => {
  it('renews its lease in time, and answers health checks, while 10,000 clients idle, 500 dribble, and others send 1 MB of headers', async () => {
    const holder = await Holder.start(await onS3(), 3_000);
    const crowd = clients('http-crowd', [holder.url, 10_000, 500, 4, 8_000]);
    await crowd.waitForOutput(/"there"/, 60_000);
    const statuses: number[] = [];
    let isOver = false;
    void crowd.exit.then(() => {
      isOver = true;
    });
    while (!isOver) {
      statuses.push(await holder.readyz());
      await sleep(100);
    }
    const { opened, refused } = JSON.parse((await crowd.waitForOutput(/\{"type":"over".*\}/, 1_000))[0]);
    expect(opened).toBeGreaterThan(10_500);
    expect(Object.keys(refused)).toEqual(['431']);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(holder.told('lost')).toEqual([]);
    // A third of the lease's duration is what others may take of this machine meanwhile.
    expect(holder.latestMs).toBeLessThan(1_000);
  });
});

describe('200 health checks a second and 100 clients that follow the cluster', () => {
  it('never make a renewal late by more than 100 ms, and leave nothing behind in memory', async () => {
    const holder = await Holder.start(await onFiles(), 3_000);
    const load = clients('http-load', [holder.url, '/readyz', 200, 100, 20_000]);
    await sleep(8_000);
    const early = await holder.heap();
    await sleep(10_000);
    const late = await holder.heap();
    const { code } = await load.exit;
    expect(code).toBe(0);
    const told = JSON.parse(load.stdout());
    expect(told).toMatchObject({ statuses: { 200: told.asked }, failed: 0, streamsOpen: 100, streamsEnded: 0, hellos: 100 });
    expect(told.asked).toBeGreaterThan(3_900);
    expect(holder.latestMs).toBeLessThanOrEqual(100);
    expect(holder.told('lost')).toEqual([]);
    expect(late - early).toBeLessThan(1_000_000);
  });
});
