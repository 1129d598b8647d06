import { fileURLToPath } from 'node:url';
import { expect, inject } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { type FleetStore, fleetStore, startTask, type Task } from '../../../support/fleet.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { killAll } from '../../../support/processes.js';
import { freePort } from '../../../support/servers/free-ports.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { LONGEST_SESSION, uniqueChroot } from '../../../support/zookeeper.js';

const WORKER = fileURLToPath(new URL('../../../fixtures/programs/worker.mjs', import.meta.url));
// Long enough for a machine on which a write may take seconds: no session is to be lost by chance.
const LEASE = ['--nodes', '3', '--duration', '30s', '--log-level', 'debug'];

/** Where node id 0 is announced, and as what. */
export const NODE = '/discovery/nodes/00/08';
export const SERVICE = '/discovery/servicetypes/orders/0';

/** Where the tasks of one test are announced and registered, and what looks there. */
export class RegisterScene {
  readonly directory: ServiceDirectory<unknown>;

  private constructor(
    readonly connect: string,
    readonly store: FleetStore,
    readonly reader: TreeReader,
  ) {
    this.directory = new ServiceDirectory({
      zookeeper: reader.zookeeper,
      clock: systemClock,
      payload: jsonPayload,
    });
  }

  static async open(): Promise<RegisterScene> {
    const connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
    return new RegisterScene(connect, await fleetStore('file', inject('s3')), new TreeReader(connect));
  }

  /** For `afterEach`: ends all processes and proxies. */
  async close(): Promise<void> {
    await killAll();
    await stopProxies();
    await this.reader.close();
    await this.store.remove();
  }

  start(taskId: string, options: readonly string[] = [], script?: string): Task {
    return startTask(
      this.store,
      [...LEASE, '--task-id', taskId, '--zookeeper', this.connect, ...options],
      script,
    );
  }

  /** A task whose command is the worker; it says `up` when it can have signals. */
  async startWorker(kind: 'http' | 'tcp' | 'none', port: number, options: readonly string[]): Promise<Task> {
    const paths = [SERVICE, '/discovery/endpoints/pay/visa/orders:0', '/services/orders/task', NODE];
    const task = this.start(
      'task',
      options,
      `exec "${process.execPath}" "${WORKER}" ${kind} ${port} "${this.connect}" ${paths.join(' ')}`,
    );
    await task.waitForOutput(/^up$/m);
    return task;
  }

  /** The ids of the instances of the service. */
  async ids(): Promise<string[]> {
    return (await this.directory.instances('orders')).map(({ id }) => id);
  }

  async untilIds(expected: readonly string[]): Promise<void> {
    await expect.poll(() => this.ids()).toEqual(expected);
  }
}

/**
 * Whether the service of a task that has been asked to end was not known to be out within the second that is
 * allowed for it.
 */
export function inVain(task: Task): boolean {
  return /not known to be out yet/.test(task.stderr());
}

/** What a health check is for: a command whose answers come, cease and come again. */
export async function comesAndGoes(scene: RegisterScene, kind: 'http' | 'tcp'): Promise<void> {
  const port = await freePort();
  const target = kind === 'http' ? `http://127.0.0.1:${port}/health` : `tcp:${port}`;
  const service = [
    '--service',
    'orders',
    '--port',
    String(port),
    '--announce',
    'pay:visa',
    '--zookeeper-session-timeout',
    LONGEST_SESSION,
  ];
  const task = await scene.startWorker(kind, port, [
    ...service,
    '--check',
    target,
    '--check-interval',
    '500ms',
    '--check-threshold',
    '2',
  ]);
  await task.waitForOutput(/not announced until .* answers/);
  await scene.reader.until(NODE, (seen) => seen !== undefined);
  expect([await scene.ids(), await scene.reader.at(SERVICE)]).toEqual([[], undefined]);

  task.kill('SIGUSR2');
  await scene.untilIds(['task']);
  await scene.reader.until(SERVICE, (seen) => seen !== undefined);
  await scene.reader.until('/discovery/endpoints/pay/visa/orders:0', (seen) => seen !== undefined);

  task.kill('SIGUSR1');
  await scene.untilIds([]);
  await scene.reader.until(SERVICE, (seen) => seen === undefined);
  await task.waitForOutput(/failed 2 times in a row: the service is taken out/);
  expect(await scene.reader.at(NODE)).toBeDefined();

  task.kill('SIGUSR2');
  await scene.untilIds(['task']);
  // The renewals went on, and the log reports only changes.
  expect(task.log().filter(({ msg }) => /is lost/.test(msg))).toEqual([]);
  const healthy = () => task.log().flatMap(({ fields }) => fields.healthy ?? []);
  await expect.poll(healthy).toContain(false);
  await expect.poll(() => healthy().at(-1)).toBe(true);
  const all = healthy();
  expect(all.every((now, index) => now !== all[index - 1])).toBe(true);

  task.kill('SIGTERM');
  const [, standing] = await task.waitForOutput(/^asked to end, with (.*) there$/m);
  expect((await task.exit).code).toBe(0);
  if (!inVain(task)) expect(standing).toBe(JSON.stringify([NODE]));
  await scene.untilIds([]);
}
