import { writeSync } from 'node:fs';
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';
import { explain } from '../../base/errors.js';
import { codeOf } from '../../base/files.js';
import { REDACTED, withoutSecrets } from '../../base/redaction.js';
import type { Settings } from '../../settings/settings.js';
import { withFlags } from '../../settings/settings-table.js';
import type { Io } from '../terminal/io.js';

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
export const SECRET_PATHS: readonly string[] = SECRET_FIELDS.flatMap((name) => [
  `["${name}"]`,
  `*["${name}"]`,
  `*.*["${name}"]`,
]);

const STANDARD_ERROR = 2;

/**
 * The logger of a command, in the format that its settings and its standard error want. It logs the warnings
 * of Node and the libraries, too.
 *
 * It writes to standard error, each line before the call returns, so that nothing is lost at the exit. A
 * standard error that is closed or does not take the line in time loses the line, and nothing else. Secrets
 * are left out: fields by their names, credentials in texts by their form.
 */
export async function loggerFor(
  { logLevel: level, logFormat }: Pick<Settings, 'logLevel' | 'logFormat'>,
  io: Pick<Io, 'logFormat' | 'onWarning'>,
): Promise<Logger> {
  const isJson = (logFormat ?? io.logFormat) === 'json';
  const destination: DestinationStream = isJson
    ? { write: writeLine }
    : await prettyDestination(io.logFormat === 'color');
  const redact = { paths: [...SECRET_PATHS], censor: REDACTED };
  const log = pino({ name: 'nodelease', level, timestamp: stdTimeFunctions.isoTime, redact }, destination);
  io.onWarning((warning) => log.warn(explain(warning)));
  return log;
}

async function prettyDestination(colorize: boolean): Promise<DestinationStream> {
  const { prettyFactory } = await import('pino-pretty');
  const pretty = prettyFactory({
    colorize,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname,name,event',
    singleLine: true,
  });
  return { write: (line) => writeLine(pretty(line)) };
}

const ATTEMPTS = 10;
const PAUSE_MS = 5;

// Not pino's own destination: that one waits without limit for a reader that does not read, and raises the
// error of one that went away. Neither is a reason for the supervisor, and with it the child, to hang or to
// end.
function writeLine(line: string): void {
  let rest = Buffer.from(withFlags(withoutSecrets(line)));
  for (let attempt = 0; attempt < ATTEMPTS && rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(STANDARD_ERROR, rest));
    } catch (error) {
      if (codeOf(error) !== 'EAGAIN') return;
      attempt += 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
}
