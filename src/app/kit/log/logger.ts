import { type Logger, pino, stdTimeFunctions } from 'pino';
import { explain } from '../../../core/base/errors.js';
import { REDACTED, withoutSecrets } from '../../../core/base/redaction.js';
import type { Settings } from '../../settings/settings.js';
import type { Io } from '../io.js';

export type { Logger } from 'pino';

/** The fields whose values are secret, wherever they are. */
const SECRET_FIELDS = [
  'authorization',
  'token',
  'secret',
  'password',
  'credentials',
  'zookeeper-auth',
  'zookeeperAuth',
  'auth',
];

/** The paths of secret fields in what is logged: at its top, and two levels below. */
const SECRET_PATHS: readonly string[] = SECRET_FIELDS.flatMap((name) => [
  `["${name}"]`,
  `*["${name}"]`,
  `*.*["${name}"]`,
]);

/**
 * The logger of a command, in the format that its settings and its standard error want. It logs the warnings
 * of Node and the libraries, too.
 *
 * Secrets are left out: fields by their names, credentials in texts by their form.
 */
export async function loggerFor(
  { logLevel: level, logFormat }: Pick<Settings, 'logLevel' | 'logFormat'>,
  io: Pick<Io, 'logFormat' | 'onWarning' | 'stderr'>,
): Promise<Logger> {
  const isJson = (logFormat ?? io.logFormat) === 'json';
  const format = isJson ? (line: string) => line : await prettyFormat(io.logFormat === 'color');
  // Not pino's own destination: that one waits without limit for a reader that does not read.
  const destination = {
    write: (line: string) => io.stderr(withoutSecrets(format(line))),
  };
  const redact = { paths: [...SECRET_PATHS], censor: REDACTED };
  const log = pino({ name: 'nodelease', level, timestamp: stdTimeFunctions.isoTime, redact }, destination);
  io.onWarning((warning) => log.warn(explain(warning)));
  return log;
}

/** Control characters in a line of JSON, other than ends of lines and tabs: others' texts may hold them. */
const CONTROLS = /\\(?:u00[01][\da-f]|[bfr])|[\x7f-\x9f]|(\\.)/g;

async function prettyFormat(colorize: boolean): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty');
  const pretty = prettyFactory({
    colorize,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname,name,event',
    singleLine: true,
  });
  return (line) => pretty(line.replace(CONTROLS, (_, other = '\uFFFD') => other));
}
