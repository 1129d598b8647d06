import { spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { describeId } from '../../chaos/act.js';
import { installed } from '../installed.js';

/**
 * Checks a history of acts with Porcupine, a published checker of linearizability: whether each node id,
 * shard and lock behaves like a register of its owner, whose token rises.
 *
 * @param file an act a line
 * @returns what is wrong, a line each
 * @throws Error when it cannot be built, or a line is no act
 */
export async function nonlinear(file: string): Promise<string[]> {
  const path = await installed('install-porcupine.sh', [], 'install Go 1.24 or later');
  const checker = spawn(path, { stdio: ['pipe', 'pipe', 'inherit'] });
  const [found] = await Promise.all([
    text(checker.stdout),
    pipeline(createReadStream(file), checker.stdin),
    new Promise<void>((resolve, reject) =>
      checker.once('close', (code) =>
        code === 0 ? resolve() : reject(new Error(`${path}: exit code ${code}`)),
      ),
    ),
  ]);
  return found.split('\n').flatMap((line) => {
    const [id, result, acts] = line.split(' ');
    return acts === undefined
      ? []
      : [`${describeId(Number(id))}: ${acts} acts are ${result}, says Porcupine`];
  });
}
