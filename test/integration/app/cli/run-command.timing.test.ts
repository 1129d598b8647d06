import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { FaultProxy } from '../../../support/network/fault-proxy.js';
import { killAll, runCli, runProcess } from '../../../support/processes.js';
import { S3StandIn } from '../../../support/s3-stand-in.js';
import { CHILDREN, membersOf } from './guard-support.js';
import { newFolder, numbers, removeFolders, shell, untilDead } from './run-support.js';

afterEach(async () => {
  await killAll();
  removeFolders();
});

describe('nodelease run', () => {
  it('passes SIGTERM on and frees the node id for a waiting task within a second of the command’s end', async () => {
    const store = `file:${newFolder()}`;
    const holder = shell(
      `trap 'date +%s%N; exit 0' TERM; echo held; while :; do sleep 0.05; done`,
      '--store',
      store,
      '--nodes',
      '1',
    );
    await holder.waitForOutput(/held/);
    const next = shell('date +%s%N; echo $NODE_ID_VERSION', '--store', store);
    await next.waitForOutput(/no node id is free/);
    holder.kill('SIGTERM');
    expect((await holder.exit).code).toBe(0);
    expect((await next.exit).code).toBe(0);
    const ended = Number(numbers(holder.stdout())[0]) / 1e6;
    const [begun = 0, version] = numbers(next.stdout());
    expect(version).toBe(2);
    expect(begun / 1e6 - ended).toBeLessThan(1_000);
  });

  it('is not held up for long by a store that does not answer the release', async () => {
    const server = await S3StandIn.start();
    const proxy = new FaultProxy();
    try {
      const { hostname, port } = new URL(server.endpoint);
      const endpoint = `http://127.0.0.1:${await proxy.start(hostname, Number(port))}`;
      const store = ['--store', `s3://${server.bucket}/run`, '--endpoint', endpoint, '--region', 'us-east-1'];
      const script = `trap 'exit 5' TERM; echo held; while :; do sleep 0.05; done`;
      const run = runCli(['run', ...store, '--', 'sh', '-c', script], {
        env: { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' },
      });
      await run.waitForOutput(/held/);
      proxy.stall('both');
      const asked = performance.now();
      run.kill('SIGTERM');
      expect((await run.exit).code).toBe(5);
      expect(performance.now() - asked).toBeLessThan(8_000);
      // Whatever the libraries warn of is a line of the log as well.
      for (const line of run.stderr().trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('msg');
    } finally {
      await proxy.stop();
      await server.stop();
    }
  });
});

describe('nodelease run with a lease that is lost', () => {
  it('asks the whole group to end, and kills it before the deadline, when the store is out of reach', async () => {
    const folder = newFolder();
    const store = join(folder, 'leases');
    const script = `${CHILDREN} trap 'echo asked' TERM; echo command $$; while :; do sleep 0.05; done`;
    const run = shell(script, '--store', `file:${store}`, '--duration', '6s', '--nodes', '1');
    const { pids } = await membersOf(run);
    runProcess('sh', ['-c', `mv ${store} ${store}.away && : > ${store}`]);
    const cut = performance.now();
    await run.waitForOutput(/asked/);
    await untilDead(pids);
    expect((await run.exit).code).toBe(76);
    expect(performance.now() - cut).toBeLessThan(6_000);
    expect(run.stderr()).toMatch(/ending the command before its lease runs out/);
  });
});
