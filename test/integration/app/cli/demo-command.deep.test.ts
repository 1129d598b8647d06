import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EventClient } from '../../../support/network/event-client.js';
import { cliFile, killAll, runCli, runProcess, type TestProcess } from '../../../support/processes.js';
import { childrenOf, untilDead } from './run-support.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-demo-test-'));
});

afterEach(async () => {
  await killAll();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

// Settings of the surroundings that would spoil it, if it heeded them.
const demo = (...args: string[]) =>
  runCli(['demo', ...args], {
    env: {
      TMPDIR: folder,
      NODELEASE_TASK_ID: 'mine',
      NODELEASE_ENDPOINT: 'http://127.0.0.1:1',
      NODELEASE_NODE_ID: '7',
    },
  });

/** Every process below this one. */
function descendants(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendants(child)]);
}

/** Resolves to all processes of the demo when its three tasks are at work. */
async function atWork(running: TestProcess): Promise<number[]> {
  await running.waitForOutput(/(acquired node id \d at version 1\n[\s\S]*){3}/);
  // Each has a guard and a command as soon as it holds its id, and not before.
  await expect.poll(() => descendants(running.pid).length).toBeGreaterThanOrEqual(9);
  return descendants(running.pid);
}

describe('nodelease demo', () => {
  it('--once shows a task being killed and its node id being taken over at the next version, and ends with 0 and nothing left', async () => {
    const running = demo('--once');
    const pids = await atWork(running);
    await running.waitForOutput(/started in its place/);
    const [successor] = descendants(running.pid).filter((pid) => !pids.includes(pid));
    expect(await running.exit).toEqual({ code: 0, signal: null });
    expect(running.stderr()).toBe('');
    expect(running.stdout()).toMatch(
      /(task-\d) killed by SIGKILL: node id (\d) \(version 1\) expires in [\s\S]*task-4 took over node id \2: version 1 -> 2, \d+\.\ds after the kill\n/,
    );
    await untilDead([...pids, successor ?? 0], 30_000);
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'ends its tasks in order at %s, with 0 and nothing left',
    async (signal) => {
      const running = demo();
      const pids = await atWork(running);
      running.kill(signal);
      expect(await running.exit).toEqual({ code: 0, signal: null });
      expect(running.stdout()).toMatch(/task-1 stopped\n[\s\S]*task-2 stopped\n[\s\S]*task-3 stopped\n/);
      expect(running.stdout().match(/is released, its version 1 is kept/g)).toHaveLength(3);
      await untilDead(pids, 30_000);
      expect(readdirSync(folder)).toEqual([]);
    },
  );

  it('takes a Ctrl-C that reaches it twice, from the terminal and from npm, for one', async () => {
    const running = demo();
    await atWork(running);
    running.kill('SIGINT');
    await sleep(30);
    running.kill('SIGINT');
    expect(await running.exit).toEqual({ code: 0, signal: null });
    expect(running.stdout().match(/is released, its version 1 is kept/g)).toHaveLength(3);
  });

  it('kills tasks that do not end when it asks them to', async () => {
    const running = demo();
    const pids = await atWork(running);
    for (const pid of childrenOf(running.pid)) process.kill(pid, 'SIGSTOP');
    running.kill('SIGINT');
    expect(await running.exit).toEqual({ code: 0, signal: null });
    await untilDead(pids, 30_000);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('shows in a browser that a task is killed, and which task takes over', async () => {
    const running = demo('--http', '127.0.0.1:0');
    const [, url = ''] = await running.waitForOutput(/^Console: (http:\/\/127\.0\.0\.1:\d+) /m);
    const page = await EventClient.open(url);
    // From this act on the demo kills no task by itself; it is refused while a killed task holds the id.
    const stop = async () => (await fetch(`${url}/api/acts/stop/1`, { method: 'POST' })).status;
    await expect.poll(stop, { timeout: 30_000 }).toBe(204);
    const [, victim = '', version] = await running.waitForOutput(
      /(task-\d+) acquired node id 1 at version ([2-9])\n/,
    );
    const [, pid] = await running.waitForOutput(new RegExp(`${victim} \\(pid (\\d+)\\) started`));
    process.kill(Number(pid), 'SIGKILL');
    const ofOne = () => page.events.filter(({ nodeId }) => nodeId === 1);
    await expect
      .poll(
        () =>
          ofOne()
            .slice(-2)
            .map(({ kind }) => kind),
        { timeout: 30_000 },
      )
      .toEqual(['overdue', 'taken-over']);
    const taken = { version: Number(version) + 1 };
    expect(ofOne().at(-1)).toMatchObject({ ...taken, previousTaskId: victim });
    expect(page.node(1)).toMatchObject({ ...taken, state: 'held' });
    expect(page.hellos).toBe(1);
    expect((await fetch(url)).headers.get('content-type')).toMatch(/^text\/html/);
    running.kill('SIGINT');
    expect(await running.exit).toEqual({ code: 0, signal: null });
    await page.ended;
    expect(readdirSync(folder)).toEqual([]);
  });

  it('has its console at another port where the usual one is taken, and refuses a taken port that was asked for', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    const usual = createServer().listen(7_070, '127.0.0.1');
    // Somebody else may have it: it is taken then, too.
    usual.on('error', () => undefined);
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const refused = demo('--http', `127.0.0.1:${port}`);
    expect(await refused.exit).toEqual({ code: 64, signal: null });
    expect(refused.stderr()).toMatch(
      /^nodelease: --http: expected a port that no other program listens on .*\n$/,
    );
    expect(readdirSync(folder)).toEqual([]);
    const running = demo();
    const [, other] = await running.waitForOutput(/^Console: http:\/\/127\.0\.0\.1:(\d+) /m);
    expect(other).not.toBe('7070');
    running.kill('SIGINT');
    expect(await running.exit).toEqual({ code: 0, signal: null });
    taken.close();
    usual.close();
  });

  it('takes a frozen task along when it is killed itself', async () => {
    const running = demo('--http', '127.0.0.1:0');
    const [, url = ''] = await running.waitForOutput(/^Console: (http:\/\/127\.0\.0\.1:\d+) /m);
    const pids = await atWork(running);
    expect((await fetch(`${url}/api/acts/freeze/1`, { method: 'POST' })).status).toBe(204);
    await running.waitForOutput(/the lease of node id 1 has run out/);
    // With the one that waits, and the shell that would thaw.
    const all = [...new Set([...pids, ...descendants(running.pid)])];
    running.kill('SIGKILL');
    await untilDead(all, 30_000);
  });

  it('is driven by the keys of a terminal, which it gives back at Ctrl-C', async () => {
    const typed = join(folder, 'typed');
    execFileSync('mkfifo', [typed]);
    const command = `stty columns 120 rows 30; "${process.execPath}" "${cliFile}" demo --http 127.0.0.1:0; echo "ended with $?"; stty -a`;
    const terminal = runProcess('sh', ['-c', `exec script -qfc '${command}' /dev/null <"$0"`, typed], {
      env: { TMPDIR: folder },
    });
    const keyboard = await open(typed, 'w');
    await terminal.waitForOutput(/acquired node id 1 [\s\S]*4 kill {2}5 freeze {2}6 stop/);
    await keyboard.write('5');
    await terminal.waitForOutput(/frozen by SIGSTOP: node id 1 [\s\S]*took over node id 1: version 1 -> 2/);
    await terminal.waitForOutput(/continues by SIGCONT[\s\S]*has ended \(exit code 76/);
    await keyboard.write('\x03');
    await terminal.waitForOutput(/ended with 0\r\n[\s\S]*\nisig icanon .* echo /);
    await keyboard.close();
    expect(await terminal.exit).toEqual({ code: 0, signal: null });
    expect(readdirSync(folder)).toEqual(['typed']);
  });

  it('takes all its processes along when it is killed itself, the waiting one included', async () => {
    const running = demo('--once');
    const pids = await atWork(running);
    await running.waitForOutput(/started in its place/);
    const all = [...new Set([...pids, ...descendants(running.pid)])];
    running.kill('SIGKILL');
    await untilDead(all, 30_000);
  });
});
