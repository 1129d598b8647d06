import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withTimeout } from '../../../core/base/abort.js';
import { ConfigError, explain } from '../../../core/base/errors.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { DEFAULT_LISTEN_ADDRESS, isLoopback, reachableUrl } from '../../../core/settings/listen-address.js';
import { parseInteger } from '../../../core/settings/setting.js';
import { FileLeaseStore } from '../../../core/store/file/file-lease-store.js';
import { ClusterFollower } from '../../../node/monitor/cluster-follower.js';
import { REQUEST_TIMEOUT_MS } from '../../../node/runtime/opened-store.js';
import type { NodeAppPart } from '../../http/node-app.js';
import { startConsoleServer } from '../../http/node-server.js';
import { doneAnswer, HttpProblem, route } from '../../http/problem.js';
import { checkWrite } from '../../http/server/access.js';
import { fail } from '../../kit/answer.js';
import { type Call, interruptible, reportFailure } from '../../kit/call.js';
import { ExitCode, exitCodeOfStop, type Io } from '../../kit/io.js';
import { Interrupted } from '../../kit/terminal/signal-relay.js';
import { DemoFailure, DemoStory, type DemoTask, NODES } from './demo-story.js';
import { ACTS, type Act, actOf, DemoView } from './demo-view.js';

/** How long a task may take to end, in milliseconds. */
const STOP_TIMEOUT_MS = 5_000;
/** How many characters of a task's log are kept. */
const KEPT_LOG = 4_000;
/** Thaws the process when its input ends: by the demo, or with it, in whatever way that ends. */
const FREEZE_SCRIPT = 'kill -STOP $0; read end; kill -CONT $0';
type DemoCall = Call<{ readonly once?: boolean }>;

/**
 * `nodelease demo`: a fleet of real processes on the embedded store, in a temporary folder that is removed
 * at the end. It needs no settings, and ignores them. A browser can show its console. Every process that it
 * starts ends with it, in whatever way it ends. Resolves to 0 when SIGINT or SIGTERM has interrupted it or,
 * with `once`, when one take-over has been shown.
 *
 * @param at where the console is. @default 127.0.0.1:7070, or any free port while that is taken
 */
export async function demoCommand(call: DemoCall): Promise<number> {
  const { settings, io } = call;
  const { clock, random } = io;
  const directory = makeFolder();
  const store = new FileLeaseStore({ directory, clock, random });
  try {
    await interruptible(io, (signal) =>
      play(call, store, signal).finally(async () => {
        await store.close();
        rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
      }),
    );
    return ExitCode.ok;
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (error instanceof Interrupted) return exitCodeOfStop(error.signal);
    if (!(error instanceof DemoFailure)) return reportFailure(error, settings, io);
    return fail(io, 'INTERNAL', `the demo failed: ${error.message}`);
  }
}

function makeFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'nodelease-demo-'));
  } catch (cause) {
    const expected = `a folder that this user may write to (${explain(cause)})`;
    throw new ConfigError('TMPDIR', tmpdir(), expected);
  }
}

async function play(
  { options: { once = false }, settings: { http: at }, io }: DemoCall,
  store: FileLeaseStore,
  signal: AbortSignal,
) {
  const { clock, random } = io;
  const session = () => new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
  const cluster = new ClusterFollower({ clock, random, session: session() });
  const isPrivate = isLoopback((at ?? DEFAULT_LISTEN_ADDRESS).host);
  const server = await startConsoleServer(at, {
    clock,
    cluster: async () => cluster,
    parts: isPrivate && !once ? [actsPart((act, id) => story.act(act, id))] : [],
  });
  const ending = once ? 'It ends when it has shown a take-over.' : 'Ctrl-C ends it.';
  const hasKeys = io.keyboard && io.screen() !== undefined && !once;
  const title = [
    `nodelease demo: ${NODES} tasks, ${NODES} node ids. ${ending}`,
    `Console: ${reachableUrl(server.address)}  Leases, while it runs: ${store.url}`,
    ...(hasKeys || once ? [] : ['Try it: kill -9 PID, or kill -STOP PID (freeze), or kill PID (stop)']),
  ];
  const view = new DemoView(title, io, hasKeys);
  const settings = [`--store=${store.url}`, `--nodes=${NODES}`, '--duration=5s', '--grace=1s'];
  const story = new DemoStory({
    session: session(),
    clock,
    view,
    once,
    start: (name) => startTask(name, settings, io),
  });
  const onKey = (key: string) => {
    const asked = actOf(key);
    if (asked) story.act(...asked);
  };
  const endKeys = hasKeys ? io.onKey(onKey) : undefined;
  try {
    await story.play(signal).finally(() => story.end());
  } finally {
    endKeys?.();
    view.end();
    await server.close();
    await cluster.close();
  }
}

/** Lets the console of this machine do what keys do. @param act false where no task holds the node id */
export function actsPart(act: (act: Act, id: number) => boolean): NodeAppPart {
  return {
    offers: { acts: ACTS },
    mount: (app) =>
      route(app, '/api/acts/:act/:id', {
        POST: async ({ req }) => {
          await checkWrite({ kind: 'anybody' }, req.raw);
          const named = ACTS.find((each) => each === req.param('act'));
          if (named === undefined) throw new HttpProblem('not-found', `there is nothing at ${req.path}`);
          const id = parseInteger(req.param('id') ?? '', 'id', 0, NODES - 1);
          if (!act(named, id)) throw new HttpProblem('conflict', `node id ${id} has no task to ${named} now`);
          return doneAnswer();
        },
      }),
  };
}

/**
 * Starts a task in its own session: a Ctrl-C is for the demo, which then ends its tasks in order. Its
 * command is `cat`, which ends with its standard input, and so with the demo, in whatever way that ends.
 */
function startTask(name: string, settings: readonly string[], { program, env, clock }: Io): DemoTask {
  const [file, ...args] = program;
  const own = [`--task-id=${name}`, '--log-level=warn', '--log-format=pretty', '--', 'cat'];
  // Settings of the user's, such as a task id or an endpoint, would spoil the demo.
  const others = Object.entries(env).filter(([variable]) => !/^(NODELEASE_|NODE_ID)/.test(variable));
  const child = spawn(file, [...args, 'run', ...settings, ...own], {
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
    env: Object.fromEntries(others),
  });
  let freezer: ChildProcess | undefined;
  let log = '';
  let end: string | undefined;
  child.stdin.on('error', () => undefined);
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-KEPT_LOG);
  });
  const ended = new Promise<void>((resolve) => {
    const finish = (how: string) => {
      end ??= [how, log.trim().split('\n').at(-1)].filter(Boolean).join(': ');
      resolve();
    };
    child.once('error', (error) => finish(explain(error)));
    child.once('exit', (code, signal) => finish(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  return {
    name,
    pid: child.pid ?? 0,
    end: () => end,
    kill: () => void child.kill('SIGKILL'),
    freeze() {
      freezer ??= spawn('/bin/sh', ['-c', FREEZE_SCRIPT, `${child.pid}`], {
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore'],
      });
    },
    thaw() {
      freezer?.stdin?.end();
      child.kill('SIGCONT');
    },
    async stop() {
      if (end !== undefined) return;
      child.kill('SIGTERM');
      await withTimeout(clock, STOP_TIMEOUT_MS, ended);
      if (end === undefined) child.kill('SIGKILL');
      await ended;
    },
  };
}
