import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { systemClock, systemRandom } from '../system.js';
import { runCommandLine } from './command-line.js';

// The only file that touches the process' arguments, environment and exit.

const packageFile: { version: string } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

process.exit(
  await runCommandLine(
    process.argv.slice(2),
    {
      env: process.env,
      hostname: hostname(),
      processId: process.pid,
      clock: systemClock,
      random: systemRandom,
      signals: process,
      stdout: (text) => process.stdout.write(text),
      stderr: (text) => process.stderr.write(text),
      onWarning: (listener) => process.removeAllListeners('warning').on('warning', listener),
      logFormat: !process.stderr.isTTY ? 'json' : process.env.NO_COLOR ? 'plain' : 'color',
    },
    packageFile.version,
  ),
);
