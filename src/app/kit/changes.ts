import type { SessionState } from '../../zookeeper/client/session-state.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { type Asker, sayJson, sayLines } from './answer.js';
import { onConnecting, watching, type ZooKeeperCall } from './call.js';
import { type Color, paintFor } from './terminal/color.js';
import { printable } from './terminal/text.js';

/** Shows a change: `report` for programs, else each text as a line, with the time before it. */
type ShowChange = (report: object, color: Color | undefined, ...texts: readonly string[]) => void;

/** How a command that watches shows what changes, in the form that its caller wants. */
export function showChanges({ options, io }: Asker): ShowChange {
  return (report, color, ...texts) => {
    const time = new Date(io.clock.now()).toISOString();
    const paint = paintFor(io.screen());
    if (options.json) sayJson(io, { time, ...report });
    else
      sayLines(
        io,
        texts.map((text) => `${time}  ${paint(printable(text), color)}`),
      );
  };
}

/**
 * The changes of the connection, and their colors. `watching`: all of the beginning has been shown.
 * `expired`: the session has ended; a new one shows what follows.
 */
const CONNECTION_COLORS = { watching: 'dim', lost: 'red', expired: 'red', restored: 'green' } as const;

/** Shows a change of the connection. */
export function showConnection(
  show: ShowChange,
  change: keyof typeof CONNECTION_COLORS,
  state: SessionState,
  text: string,
): void {
  const sessionId = 'sessionId' in state ? state.sessionId : null;
  const problem = 'problem' in state ? (state.problem ?? null) : null;
  show({ change, kind: 'connection', sessionId, problem }, CONNECTION_COLORS[change], text);
}

/**
 * Lets `watch` show what changes in ZooKeeper, from the first connection until a signal ends it: resolves to
 * the exit code, 0 for SIGINT and SIGTERM. Changes of the connection are shown as well.
 */
export function watchZooKeeper(
  call: ZooKeeperCall,
  watch: (zookeeper: ZooKeeper, show: ShowChange, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const show = showChanges(call);
  return onConnecting(call, (zookeeper, signal) =>
    watching(signal, async () => {
      await zookeeper.whenConnected({ signal });
      const forget = followConnection(zookeeper, show);
      await watch(zookeeper, show, signal).finally(forget);
    }),
  );
}

/**
 * Shows when the connection is lost, its session expires, and it is restored, until the returned function is
 * called.
 */
function followConnection(
  zookeeper: Pick<ZooKeeper, 'description' | 'onState'>,
  show: ShowChange,
): () => void {
  const { description } = zookeeper;
  let isLost = false;
  return zookeeper.onState((state) => {
    const because = 'problem' in state && state.problem !== undefined ? `: ${state.problem}` : '';
    if (state.status === 'suspended')
      showConnection(show, 'lost', state, `connection to ${description} lost${because}`);
    else if (state.status === 'expired')
      showConnection(show, 'expired', state, `session ${state.sessionId} has expired`);
    else if (state.status === 'connected' && isLost)
      showConnection(
        show,
        'restored',
        state,
        `connection to ${description} restored, session ${state.sessionId}`,
      );
    isLost =
      state.status === 'suspended' || state.status === 'expired' || (isLost && state.status === 'connecting');
  });
}
