import { onAbort, orAborted, withTimeout } from '../../../core/base/abort.js';
import { explain } from '../../../core/base/errors.js';
import type { CommandConfigSettings } from '../../../node/settings/settings.js';
import type { ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { ZooKeeperError } from '../../../zookeeper/client/zookeeper-error.js';
import {
  type Configuration,
  type ConfigurationEvent,
  openConfiguration,
} from '../../../zookeeper/configuration/configuration.js';
import { SeenReporter } from '../../../zookeeper/configuration/fleet.js';
import { contextsOf, rootOf, turnsPath } from '../../../zookeeper/configuration/layout.js';
import { lock } from '../../../zookeeper/recipes/lock.js';
import type { LockHandle } from '../../../zookeeper/recipes/lock-handle.js';
import type { Logger } from '../log/logger.js';
import type { Io } from '../terminal/io.js';
import type { ForwardedSignal } from '../terminal/signal-relay.js';
import type { Child } from './child.js';
import { configVariables, type Variables } from './config-variables.js';
import type { WorkloadNode } from './workload.js';

/** One run of the command with its configuration. */
export interface ConfiguredRun {
  readonly variables: Variables;
  /** Resolves when the command is to be ended, and started again with other variables. */
  readonly restart: Promise<void>;
  /** To be called when the command has been started. */
  readonly onStart: (child: Child) => void;
}

/** `signal` gives up the start. */
type Surroundings = Pick<Io, 'clock' | 'random'> & { readonly signal: AbortSignal };

/** A configuration as a command has it. */
interface Version {
  readonly variables: Variables;
  readonly revisions: Readonly<Record<string, number>>;
}

/** The pause after a failure to take the turn, in milliseconds. */
const TURN_RETRY_MS = 5_000;
const CLOSE_TIMEOUT_MS = 1_000;
const GOLDEN_RATIO = 0.618_033_988_749_895;

/** When a node has its time within `spreadMs`: the first ids are spread evenly, however many there are. */
export const spreadDelay = (nodeId: number, spreadMs: number) => spreadMs * ((nodeId * GOLDEN_RATIO) % 1);

/** The configuration of the command of a held node: its variables, and what is done when they change. */
export class CommandConfig {
  /** What the command has. */
  #running: Version;
  /** The newest that a command can have. */
  #wanted: Version;
  #wake: () => void = () => undefined;
  /** What no other node has while it restarts. */
  #turn: LockHandle | undefined;

  private constructor(
    private readonly settings: CommandConfigSettings,
    private readonly node: WorkloadNode,
    private readonly surroundings: Surroundings,
    private readonly configuration: Configuration,
    private readonly seen: SeenReporter,
  ) {
    this.#wanted = this.#running = this.#read();
    configuration.onChange(() => this.#changed());
  }

  /**
   * Reads the configuration of a node.
   *
   * @throws {ConfigError} where it makes no variables
   * @throws {ZooKeeperError} where ZooKeeper is away, and no copy is there, or may be used
   */
  static async open(
    settings: CommandConfigSettings,
    node: WorkloadNode,
    surroundings: Surroundings,
  ): Promise<CommandConfig> {
    const { name, snapshot, required } = settings;
    const { lease, log } = node;
    const zookeeper = node.zookeeper as ZooKeeper;
    const { clock, random, signal } = surroundings;
    // The session ends with the lease.
    const onEvent = (event: ConfigurationEvent) => void (lease.signal.aborted || logEvent(event, log));
    const own = { nodeId: lease.id, reports: false, snapshot, signal, onEvent, clock, random };
    const configuration = await openConfiguration(zookeeper, { ...name, ...own });
    try {
      if (required && configuration.source.from === 'snapshot') {
        const message =
          'the configuration could not be read, and a copy does not count with --config-required';
        throw new ZooKeeperError(message, { fault: 'stale', outcome: 'not-applied' });
      }
      // Thousands of properties become variables in one turn of the event loop: a lease may be due for
      // renewal before.
      await clock.sleep(0, signal);
      const place = { zookeeper, clock, random, root: rootOf(name) };
      const seen = new SeenReporter(place, contextsOf(name)[0], lease.id);
      return new CommandConfig(settings, node, surroundings, configuration, seen);
    } catch (error) {
      await configuration.close();
      throw error;
    }
  }

  /** Follows the configuration during one run of the command. */
  async during<T>(run: (configured: ConfiguredRun) => Promise<T>): Promise<T> {
    const ended = new AbortController();
    // The session ends with the lease.
    const forgetLoss = onAbort(this.node.lease.signal, () => ended.abort());
    this.#running = this.#wanted;
    let child: Child | undefined;
    const restart = this.#follow(ended.signal, (signal) => child?.signal(signal));
    const onStart = (started: Child) => {
      child = started;
      this.seen.report(this.#running.revisions);
      const { routing } = this.node;
      // The next node waits for that.
      const onHealthy = () => void this.#endTurn();
      if (routing) routing.begin(onHealthy);
      else onHealthy();
    };
    try {
      return await run({ variables: this.#running.variables, restart, onStart });
    } finally {
      forgetLoss();
      ended.abort();
    }
  }

  /** Ends it. Resolves after a second at the latest, since the session ends the rest; never rejects. */
  async close(): Promise<void> {
    const closed = Promise.all([this.#endTurn(), this.configuration.close(), this.seen.close()]);
    await withTimeout(this.surroundings.clock, CLOSE_TIMEOUT_MS, closed).catch(() => undefined);
  }

  #read(): Version {
    const { values, revisions } = this.configuration;
    return { variables: configVariables(values), revisions };
  }

  #changed(): void {
    try {
      this.#wanted = this.#read();
    } catch (error) {
      this.node.log.error(
        `the command keeps its configuration, for the new one cannot be used: ${explain(error)}`,
      );
    }
    this.#wake();
  }

  /** Resolves when the command is to be started again, and else never. */
  async #follow(ended: AbortSignal, signal: (name: ForwardedSignal) => void): Promise<void> {
    const { onChange } = this.settings;
    const { log, routing, lease } = this.node;
    try {
      for (; ; await orAborted(new Promise<void>((resolve) => (this.#wake = resolve)), ended)) {
        const changed = this.#differing();
        if (changed.length === 0) continue;
        const facts = { variables: changed, revisions: this.#wanted.revisions };
        if (onChange === 'ignore') {
          const kept = 'the command keeps what it has (--on-config-change ignore)';
          log.warn(facts, `the configuration has changed: ${kept}`);
          continue;
        }
        log.info(facts, `the configuration has changed: ${onChange}`);
        await this.#wait(ended);
        ended.throwIfAborted();
        // It may have been taken back meanwhile, or the command be asked to stop. Nothing is awaited here:
        // the next change would go unnoticed.
        if (this.#differing().length === 0 || lease.retiring.aborted) {
          void this.#endTurn();
          continue;
        }
        if (onChange === 'restart') {
          await routing?.suspend();
          return log.info('stopping the command, to start it with its new configuration');
        }
        signal(onChange.slice('signal:'.length) as ForwardedSignal);
        this.#running = this.#wanted;
        this.seen.report(this.#running.revisions);
      }
    } catch (error) {
      if (!ended.aborted) log.error(`the configuration is not followed any more: ${explain(error)}`);
    }
    return new Promise(() => {});
  }

  /** The variables that the command has otherwise than it should. Without any, it runs what is newest. */
  #differing(): readonly string[] {
    const [now, then] = [this.#wanted.variables, this.#running.variables];
    const differing = [...new Set([...now.keys(), ...then.keys()])].filter(
      (name) => now.get(name) !== then.get(name),
    );
    if (differing.length === 0 && this.#running !== this.#wanted) {
      this.#running = this.#wanted;
      this.seen.report(this.#running.revisions);
    }
    return differing;
  }

  /** Waits for this node's time, or for its turn. */
  async #wait(ended: AbortSignal): Promise<void> {
    const { oneByOne, spreadMs, name } = this.settings;
    const { lease, log, zookeeper } = this.node;
    const { clock, random } = this.surroundings;
    if (!oneByOne) return clock.sleep(spreadDelay(lease.id, spreadMs), ended);
    while (!this.#turn?.isValid()) {
      try {
        const path = turnsPath(rootOf(name), contextsOf(name)[0]);
        const turn = lock(zookeeper as ZooKeeper, path, { clock, random, data: lease.taskId });
        this.#turn = await turn.acquire({ signal: ended });
      } catch (error) {
        ended.throwIfAborted();
        log.warn(`waiting for the turn to restart: ${explain(error)}`);
        await clock.sleep(TURN_RETRY_MS, ended);
      }
    }
  }

  async #endTurn(): Promise<void> {
    const turn = this.#turn;
    this.#turn = undefined;
    await turn?.release().catch(() => undefined);
  }
}

function logEvent(event: ConfigurationEvent, log: Logger): void {
  if (event.type === 'read-again') log.info('the configuration can be read again');
  else if (event.type === 'read-failed')
    log.warn(`the configuration could not be read, and stays as it is: ${event.problem}`);
  else if (event.type === 'snapshot-failed')
    log.warn(`the copy of the configuration could not be written: ${event.problem}`);
  else
    log.warn(
      { revisions: event.revisions },
      `the configuration is the copy of ${event.at}, for it could not be read: ${event.problem}`,
    );
}
