import { aborted } from '../../../core/base/abort.js';
import { LeaseLostError, LeaseRetiringError } from '../../../core/lease/model/lease.js';
import { graceAfterLoss } from '../../../core/lease/model/lease-timing.js';
import { DEFAULT_LISTEN_ADDRESS } from '../../../core/settings/listen-address.js';
import { NodeMonitor, nodeHealthJson } from '../../../node/runtime/node-monitor.js';
import { say } from '../../kit/answer.js';
import { type Call, logEnd, logFailure } from '../../kit/call.js';
import { ExitCode, type Io } from '../../kit/io.js';
import { type Logger, loggerFor } from '../../kit/log/logger.js';
import { asksToStop, Interrupted, SignalRelay } from '../../kit/terminal/signal-relay.js';
import { withTimeout } from '../../kit/terminal/with-timeout.js';
import type { RetirePolicy } from '../../settings/settings.js';
import { onRetirement, whyStopping } from '../../supervisor/held.js';
import type { WorkEnd } from '../../supervisor/supervisor.js';
import { WaitFile } from '../../supervisor/wait-file.js';
import { NodeHttp } from '../node-http/node-http.js';
import { runWorkload, type Workload, type WorkloadNode } from '../run/workload.js';

/**
 * `nodelease serve`: holds a node id for the other containers of its task, and describes it over HTTP.
 * The URL is the answer, on one line of standard output. Resolves to 0 when SIGINT or SIGTERM has ended it,
 * with the node id released; programs that ask over HTTP for work on it are asked to end it before. Resolves to
 * 76 as soon as the lease is lost, or the node id is being retired with `--on-retire stop`: then the id is left
 * to expire, since its users have not been asked to end yet.
 *
 * Not guaranteed: that other users of the node id have ended before. The container runtime has to end this
 * process last (ECS by `dependsOn`, Kubernetes by native sidecars).
 */
export async function serveCommand({
  options: { waitFile: path },
  settings,
  io,
}: Call<{ waitFile?: string }>): Promise<number> {
  const signals = new SignalRelay(io.signals);
  const log = await loggerFor(settings, io);
  const monitor = new NodeMonitor();
  const { http: at = DEFAULT_LISTEN_ADDRESS, onRetire = 'drain' } = settings;
  try {
    const waitFile =
      path === undefined ? undefined : await WaitFile.open(path, io.random, (problem) => log.error(problem));
    const open = async (child: Logger) => {
      const http = await NodeHttp.open({ at, settings, io, log: child, monitor, heldForOthers: true });
      try {
        // Not before: while the port is another process', the file may be, too.
        await waitFile?.removeLeftOver();
      } catch (error) {
        await http.close();
        throw error;
      }
      say(io, http.url);
      return http;
    };
    const sidecar = new Sidecar({ io, signals, monitor, waitFile, onRetire });
    const exitCode = await Promise.race([
      runWorkload({ settings, io, signals, log, http: { monitor, open }, heldForOthers: true }, sidecar),
      sidecar.overdue(),
    ]);
    // Lost on the way to its release.
    return sidecar.hasLost ? ExitCode.leaseLost : exitCode;
  } catch (error) {
    return error instanceof Interrupted ? logEnd(error, log) : logFailure(error, log);
  } finally {
    signals.close();
  }
}

/**
 * How long tidying up may hold up the exit when another task may hold the node id already, in milliseconds.
 */
const LOST_LIMIT_MS = 150;
/** How long removing the wait file may hold up the end, in milliseconds. */
const REMOVE_LIMIT_MS = 500;

interface SidecarOptions {
  readonly io: Pick<Io, 'clock'>;
  readonly signals: SignalRelay;
  readonly monitor: NodeMonitor;
  readonly waitFile: WaitFile | undefined;
  readonly onRetire: RetirePolicy;
}

/**
 * The work of other processes with the node id: it continues until a signal ends this process, or the lease
 * is lost.
 */
class Sidecar implements Workload {
  #fileGone: Promise<void> | undefined;
  readonly #loss = new AbortController();

  constructor(private readonly options: SidecarOptions) {}

  get hasLost(): boolean {
    return this.#loss.signal.aborted;
  }

  /**
   * Resolves to the exit code when the lease has been lost and tidying up takes too long (rule 7): only the
   * exit stops the users of the node id. It must not wait for a network that may be the cause of the loss,
   * nor for HTTP clients.
   */
  async overdue(): Promise<number> {
    const { clock } = this.options.io;
    const error = await aborted(this.#loss.signal);
    const graceMs = error instanceof LeaseLostError ? graceAfterLoss(error, clock.monotonic()) : 0;
    // Where there is a grace, no other task can have the node id before it is over.
    await clock.sleep(graceMs || LOST_LIMIT_MS);
    // Bounded itself, and begun at the loss: without it, the file would stay for good.
    await this.#fileGone;
    return ExitCode.leaseLost;
  }

  async run({ lease, log, routing, url, served }: WorkloadNode): Promise<WorkEnd> {
    const { io, signals, monitor, waitFile, onRetire } = this.options;
    // Also after a signal: the users of the node id may still be ending.
    void aborted(lease.signal).then((error) => this.#loss.abort(error));
    const forget = waitFile && this.#keepWritten(waitFile, url);
    routing?.begin();
    const retired = new AbortController();
    const forgetRetirement = onRetirement(lease, () => {
      if (onRetire === 'stop') return retired.abort(lease.retiring.reason);
      log.info(
        'the node id is being retired: it gets no new work, and stays held until its users have ended and this process is asked to end',
      );
    });
    const end = await Promise.race([
      aborted(lease.signal),
      aborted(signals.interrupted),
      aborted(retired.signal),
    ]);
    forgetRetirement();
    // It may come while the first one's end is prepared.
    const hurry = this.#secondSignal();
    monitor.stopping(whyStopping(lease));
    forget?.();
    // Before anything else is given back: no program should begin with a node id that is about to go.
    this.#fileGone =
      waitFile &&
      withTimeout(
        { limitMs: REMOVE_LIMIT_MS, clock: io.clock, log, what: 'removing the wait file' },
        waitFile.remove(),
      );
    await this.#fileGone;
    await routing?.withdraw();
    if (end instanceof Interrupted && lease.isValid()) {
      const exitCode = logEnd(end, log);
      const workEnded = (await served?.leave(lease, hurry)) ?? true;
      if (workEnded || lease.isValid()) return { exitCode, workEnded };
    }
    if (end instanceof LeaseRetiringError)
      log.warn('ending: the node id is being retired, and left to expire while its users are ended');
    return { exitCode: ExitCode.leaseLost, workEnded: false };
  }

  /** Aborts when one more signal asks for the end: its sender is in a hurry. */
  #secondSignal(): AbortSignal {
    const second = new AbortController();
    let isFirst = true;
    // The one that has come is handed over at once.
    this.options.signals.handTo((signal) => {
      if (!isFirst && asksToStop(signal)) second.abort();
      isFirst = false;
    });
    return second.signal;
  }

  /**
   * Keeps the file there while the node id may be used. It says what does not change; `/lease` says for how
   * long the lease holds.
   */
  #keepWritten(waitFile: WaitFile, url: string | undefined): () => void {
    const { monitor } = this.options;
    let isThere = false;
    const update = () => {
      const health = monitor.health();
      const { ready } = health;
      if (ready === isThere) return;
      isThere = ready;
      const { validForMs: _, ...facts } = nodeHealthJson(health, this.options.io.clock);
      const change = ready ? waitFile.write(`${JSON.stringify({ ...facts, url })}\n`) : waitFile.remove();
      // One that failed is tried again at the next event, such as a renewal.
      void change.then((isDone) => {
        if (!isDone && isThere === ready) isThere = !ready;
      });
    };
    update();
    return monitor.onEvent(update);
  }
}
