import { callWithTimeout } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';
import { ConfigError, explain } from '../../../core/base/errors.js';
import { objectIn } from '../../../core/base/fields.js';
import { type HttpReply, httpCall } from '../../../core/base/http-call.js';
import {
  DEFAULT_LISTEN_ADDRESS,
  parseListenAddress,
  reachableUrl,
} from '../../../core/settings/listen-address.js';
import { answer } from '../../kit/answer.js';
import type { Call } from '../../kit/call.js';
import { ExitCode, type Io } from '../../kit/io.js';

/** The options of `health`, as they are on the command line. */
interface HealthOptions {
  readonly url?: string;
  readonly live?: boolean;
  readonly timeout?: number;
}

const URL_FORM = 'the URL of a running instance, http://HOST:PORT';

/**
 * `nodelease health`: asks a running instance whether it is ready, or with `live` whether it is alive.
 * Resolves to 0 when it is, else to 1, with one line on standard output: what the health checks of containers
 * expect. It runs every few seconds, and so loads as little as possible.
 */
export async function healthCommand(call: Omit<Call<HealthOptions>, 'settings'>): Promise<number> {
  const { options, io } = call;
  const { live = false, timeout = 2_000 } = options;
  const url = `${urlOf(options.url, io.env)}/${live ? 'livez' : 'readyz'}`;
  const { ok, text, facts } = await ask(url, timeout, io.clock);
  answer(call, { report: { ok, url, problem: ok ? null : text, ...facts }, lines: [text] });
  return ok ? ExitCode.ok : ExitCode.nothing;
}

/**
 * The URL of the instance: the option, else the variable that `run` gives its command, else where `run` in
 * the same environment listens.
 */
function urlOf(option: string | undefined, env: Io['env']): string {
  const given = option ?? (env.NODELEASE_URL || undefined);
  if (given !== undefined) return checkUrl(given, option === undefined ? 'NODELEASE_URL' : '--url');
  const { NODELEASE_HTTP: listening } = env;
  if (!listening) return reachableUrl(DEFAULT_LISTEN_ADDRESS);
  const address = parseListenAddress(listening, 'NODELEASE_HTTP');
  if (address.port === 0)
    throw new ConfigError(
      'NODELEASE_HTTP',
      listening,
      '--url with it (with port 0 the port is not known here)',
    );
  return reachableUrl(address);
}

function checkUrl(text: string, label: string): string {
  if (!URL.canParse(text)) throw new ConfigError(label, text, URL_FORM);
  const { protocol, username, password, search, hash, origin, pathname } = new URL(text);
  if (username !== '' || password !== '')
    throw new ConfigError(label, `${protocol}//…`, `${URL_FORM} (without credentials)`);
  if (protocol !== 'http:' || search !== '' || hash !== '') throw new ConfigError(label, text, URL_FORM);
  return `${origin}${pathname.replace(/\/+$/, '')}`;
}

/** The answer of an instance, or a failure: one line for people, and the fields of the answer. */
async function ask(url: string, timeoutMs: number, clock: Clock) {
  try {
    const reply = await callWithTimeout({ clock, timeoutMs }, (signal) =>
      httpCall(new URL(url), { signal, userAgent: 'nodelease health' }),
    );
    return verdict(reply);
  } catch (error) {
    return { ok: false, text: `${url}: ${explain(error)}`, facts: {} };
  }
}

function verdict({ status, body }: HttpReply) {
  const facts = objectIn(body) ?? {};
  const { status: said, state, nodeId, version, reason } = facts;
  if ((said !== 'ok' && said !== 'unavailable') || typeof state !== 'string') {
    return { ok: false, text: `status ${status}, and not the answer of a nodelease instance`, facts: {} };
  }
  const node = typeof nodeId === 'number' ? `, node id ${nodeId} at version ${version}` : '';
  const why = typeof reason === 'string' ? `: ${reason}` : '';
  const ok = status === 200 && said === 'ok';
  return { ok, text: `${ok ? 'ok' : 'not ok'}, ${state}${node}${why}`, facts };
}
