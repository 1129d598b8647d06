import { decodeId } from '../../src/core/id/index.js';
import type { TenureReport } from './proof-messages.js';
import { LAYOUTS, type ProofOptions, type ProofResult } from './proof-run.js';

const grouped = (value: number) => Math.round(value).toLocaleString('en-US');
const mib = (bytes: number) => `${grouped(bytes / 2 ** 20)} MiB`;

/** How many ids have something wrong with them, of each kind. */
export function faultsOf(tenures: readonly TenureReport[]) {
  const sum = (kind: 'repeated' | 'disordered' | 'foreign' | 'outside') =>
    tenures.reduce((all, { faults }) => all + faults[kind], 0);
  return {
    repeated: sum('repeated'),
    disordered: sum('disordered'),
    foreign: sum('foreign'),
    outside: sum('outside'),
  };
}

/** The lines that a run ends with. */
export function proofReport(options: ProofOptions, result: ProofResult): string {
  const { tenures, ids, seconds } = result;
  const count = (is: (tenure: TenureReport) => boolean) => grouped(tenures.filter(is).length);
  const endings = [...new Set(tenures.map(({ ending }) => ending))].sort();
  const handovers = tenures.filter((tenure, index) =>
    tenures.slice(0, index).some((other) => changesHands(other, tenure)),
  ).length;
  const faults = faultsOf(tenures);
  const rows: [string, string][] = [
    ['ids', grouped(ids)],
    ['made before', grouped(faults.repeated)],
    ['not in order', grouped(faults.disordered)],
    ['with another node', grouped(faults.foreign)],
    ['out of range', grouped(faults.outside)],
    [
      'tenures',
      `${grouped(tenures.length)} (${endings.map((ending) => `${count((tenure) => tenure.ending === ending)} ${ending}`).join(', ')})`,
    ],
    ['take-overs', `${count(({ from }) => from === 'expired')} of expired leases`],
    ['in other hands', `${grouped(handovers)} tenures of a node id that another thread had before`],
    ['steps of clocks', grouped(tenures.reduce((all, { steps }) => all + steps, 0))],
    [
      'time',
      `${seconds.toFixed(1)} s (${result.cpuSeconds.toFixed(1)} s of processors), ${result.storeSeconds.toFixed(0)} s by the store's clock`,
    ],
    ['ids a second', grouped(ids / seconds)],
    ['memory', `${mib(result.bitmapBytes)} of bits, ${mib(result.residentBytes)} resident`],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`);
  return [...lines, ...examples(options, tenures), ''].join('\n');
}

function changesHands(before: TenureReport, after: TenureReport): boolean {
  return before.nodeId === after.nodeId && before.thread !== after.thread;
}

const EXAMPLES = 5;

/** The first ids that repeat, and who may have made each of them. */
function examples({ layout }: ProofOptions, tenures: readonly TenureReport[]): string[] {
  const found = tenures.flatMap((tenure) => tenure.faults.examples.map((id) => ({ id, tenure })));
  return found.slice(0, EXAMPLES).flatMap(({ id, tenure }) => {
    const { timeMs, nodeId, sequence } = decodeId(id, LAYOUTS[layout]());
    const spans = tenures.filter(
      ({ first, last, ...other }) =>
        other.nodeId === nodeId && first !== undefined && first <= id && id <= last,
    );
    return [
      `REPEATED ${id}: ${new Date(timeMs).toISOString()}, node id ${nodeId}, sequence ${sequence}`,
      ...spans.map(
        (other) =>
          `  ${other === tenure ? 'found in' : 'within'} version ${other.version}, thread ${other.thread}, ${other.ending}`,
      ),
    ];
  });
}
