import { callWithTimeout, withTimeout } from '../abort.js';
import type { Clock } from '../clock.js';
import { explain } from '../errors.js';
import { fieldOf, parsed } from '../fields.js';

interface TaskProtectionOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Receives each failure. Must not throw. */
  readonly log: { warn(message: string): void };
}

/** How long a protection outlives its task, or a removal that failed. */
const EXPIRES_MINUTES = 15;
const RENEW_MS = 300_000;
const RETRY_MS = 60_000;
/** The agent itself waits for ECS, for four seconds. */
const TIMEOUT_MS = 5_000;
/** How long the removal may hold up the end of a command. */
const END_TIMEOUT_MS = 1_000;

/**
 * Protects a task of an ECS service from scale-in: neither autoscaling nor a deployment stops it. The returned
 * function says whether it is to be protected. It resolves, once the agent has answered, or five seconds later, to
 * whether it is, and never rejects. One request at a time; a failed one is repeated.
 *
 * Source: the task scale-in protection endpoint, `${ECS_AGENT_URI}/task-protection/v1/state`.
 */
export function taskProtection({ env, clock, log }: TaskProtectionOptions) {
  let isWanted = false;
  let hasFailed = false;
  /** Waits for the next request. */
  let timer: AbortController | undefined;
  let turn = Promise.resolve(false);

  async function put(): Promise<boolean> {
    timer?.abort();
    const wanted = isWanted;
    let isDone = false;
    try {
      const { ECS_AGENT_URI: agent } = env;
      if (!agent) throw new Error('ECS_AGENT_URI is not set, as it is on ECS');
      const ExpiresInMinutes = wanted ? EXPIRES_MINUTES : undefined;
      const { httpCall } = await import('../http-call.js');
      const { status, body } = await callWithTimeout({ clock, timeoutMs: TIMEOUT_MS }, (signal) =>
        httpCall(new URL(`${agent}/task-protection/v1/state`), {
          signal,
          userAgent: 'nodelease',
          put: JSON.stringify({ ProtectionEnabled: wanted, ExpiresInMinutes }),
        }),
      );
      // A refusal has another field, and not always another status.
      isDone = fieldOf(fieldOf(parsed(body), 'protection'), 'ProtectionEnabled') === wanted;
      if (!isDone) throw new Error(body.slice(0, 500) || `answered HTTP ${status} without a body`);
    } catch (error) {
      const what = wanted ? 'set' : 'removed';
      log.warn(`the protection of this task from scale-in is not ${what}: ${explain(error)}`);
    }
    hasFailed = !isDone;
    if (!wanted) return false;
    timer = new AbortController();
    clock.sleep(isDone ? RENEW_MS : RETRY_MS, timer.signal).then(ask, () => undefined);
    return isDone;
  }
  function ask() {
    hasFailed = false;
    turn = turn.then(put);
  }

  return (isBusy: boolean): Promise<boolean> => {
    if (isBusy !== isWanted || hasFailed) {
      isWanted = isBusy;
      ask();
    }
    return turn;
  };
}

/**
 * Returns what protects the task, again and again: until the function that it returns is called, which takes a
 * second at most.
 */
export function taskProtector(options: TaskProtectionOptions) {
  const protect = taskProtection(options);
  return () => {
    void protect(true);
    return () => withTimeout(options.clock, END_TIMEOUT_MS, protect(false));
  };
}
