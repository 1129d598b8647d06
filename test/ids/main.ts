// `npm run prove:ids`: the part that touches the process.

import { parseProofOptions, USAGE } from './proof-options.js';
import { faultsOf, proofReport } from './proof-report.js';
import { runProof } from './proof-run.js';

const parsed = parseProofOptions(process.argv.slice(2));
if (parsed === 'help') {
  process.stdout.write(USAGE);
} else if ('problem' in parsed) {
  process.stderr.write(`prove:ids: ${parsed.problem}\n`);
  process.exitCode = 64;
} else {
  const { ids, threads, nodes, speed, layout, seed, plant } = parsed;
  const planted = plant === undefined ? '' : `, planted: ${plant}`;
  process.stdout.write(
    `${ids} ids of ${layout}, ${threads} threads for ${nodes} node ids, time ${speed} times faster, seed ${seed}${planted}\n`,
  );
  const result = await runProof(parsed);
  process.stdout.write(proofReport(parsed, result));
  if (Object.values(faultsOf(result.tenures)).some((count) => count > 0)) process.exitCode = 1;
}
