import { onAbort, withTimeout } from '../../core/base/abort.js';
import { explain } from '../../core/base/errors.js';
import { retrying } from '../../core/base/retry.js';
import { WakeUp } from '../../core/base/wake-up.js';
import type { Lease } from '../../core/lease/model/lease.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { ZooKeeperError } from '../../zookeeper/client/zookeeper-error.js';
import {
  type Configuration,
  type ConfigurationEvent,
  openConfiguration,
} from '../../zookeeper/configuration/configuration.js';
import { SeenReporter } from '../../zookeeper/configuration/fleet.js';
import { contextsOf, rootOf, turnsPath } from '../../zookeeper/configuration/layout.js';
import { lock } from '../../zookeeper/recipes/lock.js';
import type { LockHandle } from '../../zookeeper/recipes/lock-handle.js';
import type { Logger } from '../kit/log/logger.js';
import type { Io } from '../kit/terminal/io.js';
import type { ForwardedSignal } from '../kit/terminal/signal-relay.js';
import type { Child } from '../supervisor/child.js';
import type { CommandConfigSettings } from './config-settings.js';
import { configVariables, type Variables } from './config-variables.js';

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

/** The pauses after failures to take the turn. */
const TURN_RETRY = { first: 5_000, max: 5_000 };
const CLOSE_TIMEOUT_MS = 1_000;

const GOLDEN_RATIO = 0.618_033_988_749_895;

/** When a node has its time within `spreadMs`: the first ids are spread evenly, however many there are. */
export const spreadDelay = (nodeId: number, spreadMs: number) => spreadMs * ((nodeId * GOLDEN_RATIO) % 1);

/** What it needs of the node that the command is run with. */
interface ConfiguredNode {
  readonly lease: Lease;
  readonly log: Logger;
  readonly zookeeper: ZooKeeper | undefined;
  /** What sends work to the command; undefined where that is not announced. */
  readonly routing: { begin(onHealthy?: () => void): void; suspend(): Promise<void> } | undefined;
}

/** The configuration of the command of a held node: its variables, and what is done when they change. */
export class CommandConfig {
  readonly #change = new WakeUp();
  /** What the command has. */
  #running: Version;
  /** The newest that a command can have. */
  #wanted: Version;
  /** What no other node has while it restarts. */
  #turn: LockHandle | undefined;

  private constructor(
    private readonly settings: CommandConfigSettings,
    private readonly node: ConfiguredNode,
    private readonly surroundings: Surroundings,
    private readonly configuration: Configuration,
    private readonly seen: SeenReporter,
  ) {
    this.#running = this.#wanted = versionOf(configuration);
    configuration.onChange(() => {
      try {
        this.#wanted = versionOf(configuration);
      } catch (error) {
        node.log.error(
          `the command keeps its configuration, for the new one cannot be used: ${explain(error)}`,
        );
      }
      this.#change.wake();
    });
  }

  /**
   * Reads the configuration of a node.
   *
   * @throws {ConfigError} where it makes no variables
   * @throws {ZooKeeperError} where ZooKeeper is away, and no copy is there, or may be used
   */
  static async open(
    settings: CommandConfigSettings,
    node: ConfiguredNode,
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
        throw new ZooKeeperError(message, 'stale', 'not-applied');
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
      // The next node waits until this one works.
      const onHealthy = () => void this.#endTurn();
      if (this.node.routing) this.node.routing.begin(onHealthy);
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

  /** Resolves when the command is to be started again, and else never. */
  async #follow(ended: AbortSignal, signal: (name: ForwardedSignal) => void): Promise<void> {
    const { onChange } = this.settings;
    const { log, routing } = this.node;
    try {
      for (;;) {
        await this.#change.wait(undefined, ended);
        if (!(await this.#isDue(ended))) continue;
        if (onChange === 'restart') {
          await routing?.suspend();
          return log.info('stopping the command, to start it with its new configuration');
        }
        signal(onChange.slice('signal:'.length) as ForwardedSignal);
        this.#adopt();
      }
    } catch (error) {
      if (!ended.aborted) log.error(`the configuration is not followed any more: ${explain(error)}`);
    }
    return new Promise(() => {});
  }

  /** Resolves to whether the command is to learn of a change, once it is this node's time. */
  async #isDue(ended: AbortSignal): Promise<boolean> {
    const { onChange } = this.settings;
    const { log, lease } = this.node;
    const facts = { variables: this.#differing(), revisions: this.#wanted.revisions };
    if (facts.variables.length === 0) {
      this.#adopt();
      return false;
    }
    if (onChange === 'ignore') {
      log.warn(
        facts,
        'the configuration has changed: the command keeps what it has (--on-config-change ignore)',
      );
      return false;
    }
    log.info(facts, `the configuration has changed: ${onChange}`);
    await this.#waitForTime(ended);
    ended.throwIfAborted();
    // It may have been taken back meanwhile, or the command be asked to stop.
    const isDue = this.#differing().length > 0 && !lease.retiring.aborted;
    if (!isDue) void this.#endTurn();
    return isDue;
  }

  /** Waits for this node's time, or for its turn. */
  async #waitForTime(ended: AbortSignal): Promise<void> {
    const { oneByOne, spreadMs, name } = this.settings;
    const { lease, log, zookeeper } = this.node;
    const { clock, random } = this.surroundings;
    if (!oneByOne) return clock.sleep(spreadDelay(lease.id, spreadMs), ended);
    const path = turnsPath(rootOf(name), contextsOf(name)[0]);
    const turns = lock(zookeeper as ZooKeeper, path, { clock, random, data: lease.taskId });
    const untilHeld = retrying({
      clock,
      random,
      signal: ended,
      backoff: TURN_RETRY,
      mayPass: () => true,
      onFailure: (error) => log.warn(`waiting for the turn to restart: ${explain(error)}`),
    });
    while (!this.#turn?.isValid()) this.#turn = await untilHeld((call) => turns.acquire(call));
  }

  async #endTurn(): Promise<void> {
    const turn = this.#turn;
    this.#turn = undefined;
    await turn?.release().catch(() => undefined);
  }

  /** The names of the variables that the command has otherwise than it should. */
  #differing(): readonly string[] {
    const [now, then] = [this.#wanted.variables, this.#running.variables];
    return [...new Set([...now.keys(), ...then.keys()])].filter((name) => now.get(name) !== then.get(name));
  }

  /** The command has what it should. */
  #adopt(): void {
    if (this.#running === this.#wanted) return;
    this.#running = this.#wanted;
    this.seen.report(this.#running.revisions);
  }
}

/** @throws {ConfigError} where it makes no variables */
function versionOf({ values, revisions }: Configuration): Version {
  return { variables: configVariables(values), revisions };
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
