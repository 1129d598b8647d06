// The observer's process: `node observer-main.js PIPE [HISTORY]`. Judges what comes through the pipe and
// reports to its parent what it found.

import { appendFileSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { parseAct } from './act.js';
import { Judge } from './judge.js';
import { END_OF_ACTS, type Observation } from './observer.js';

/** How often it reports to the parent, in milliseconds. */
const REPORT_EVERY_MS = 500;

const [path = '', history] = process.argv.slice(2);
const judge = new Judge();
const report = (observation: Observation, then?: () => void) =>
  process.send?.(observation, undefined, undefined, then);
const glance = () => report({ type: 'glance', glance: judge.glance });

// Open for writing as well, so that the pipe does not end when the last of the tasks does.
const pipe = new Socket({
  fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK),
  readable: true,
  writable: false,
});
let rest = '';
pipe.setEncoding('latin1').on('data', (text: string) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop() ?? '';
  const acts = lines.filter((line) => line !== END_OF_ACTS);
  if (history !== undefined) appendFileSync(history, acts.map((line) => `${line}\n`).join(''));
  for (const line of lines) {
    if (line !== END_OF_ACTS) judge.see(parseAct(line));
    else report({ type: 'findings', findings: judge.findings }, () => process.exit());
  }
});
process.once('disconnect', () => process.exit());
setInterval(glance, REPORT_EVERY_MS);
glance();
